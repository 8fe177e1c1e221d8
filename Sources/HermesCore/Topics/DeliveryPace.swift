// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The number of deliveries of runs that a loop makes in one piece, so that other connections wait for it only
/// briefly. Pure.
///
/// A run costs a subscriber that keeps up one write for all its publications, and one that does not keep up a
/// thousand times as much. So the number follows the time that the last runs took.
package struct DeliveryPace: Sendable {
    /// The time that the deliveries of one piece should take.
    static let time = Duration.milliseconds(5)
    /// Fewer deliveries are not measured, and are never cut.
    package static let least = 2_048
    /// Takes some tens of milliseconds if subscribers that kept up suddenly do not. Sixty publications reach a thousand
    /// subscribers in one piece, which is about as cheap for each as a longer run.
    package static let greatest = 65_536

    package private(set) var most = greatest

    package init() {}

    /// Follows a measurement: at once to fewer deliveries, by steps to more.
    package mutating func learn(_ deliveries: Int, _ time: Duration) {
        let ideal = Double(deliveries) * (Self.time / max(time, .microseconds(1)))
        most = max(Self.least, min(Int(min(ideal, Double(Self.greatest))), 2 * most))
    }
}
