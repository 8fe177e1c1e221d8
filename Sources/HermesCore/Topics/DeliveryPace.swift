// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Decides how many deliveries of runs a loop makes in one piece, so that others do not wait long for it. Pure.
///
/// A subscriber that keeps up takes a run by one write, however long the run is. A subscriber that needs each
/// publication in a form of its own costs a thousand times as much. So the number follows the time that the last runs
/// took.
package struct DeliveryPace: Sendable {
    /// The time that the deliveries of one piece should take.
    static let time = Duration.milliseconds(5)
    /// Fewer deliveries take some milliseconds at most. They are never cut.
    package static let least = 16_384
    /// The largest number. If subscribers that kept up suddenly do not, it takes some tenths of a second, once.
    package static let greatest = 262_144

    package private(set) var most = greatest

    package init() {}

    /// Follows a measurement: down at once, up by steps.
    package mutating func learn(_ deliveries: Int, _ time: Duration) {
        let ideal = Double(deliveries) * (Self.time / max(time, .microseconds(1)))
        most = max(Self.least, min(Int(min(ideal, Double(Self.greatest))), 2 * most))
    }
}
