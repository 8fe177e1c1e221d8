// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Decides how many deliveries of runs (``PublicationRun``) a loop makes without a break, so that other work of the
/// loop does not wait long. This type does no I/O.
///
/// A subscriber that keeps up gets a run with a single write, however long the run is. A subscriber that needs each
/// publication in a separate form costs a thousand times as much. So the number of deliveries is adapted to the time
/// that the last runs took.
package struct DeliveryPace: Sendable {
    /// The time that the deliveries between two breaks should take.
    static let time = Duration.milliseconds(5)
    /// The smallest value of ``most``. This number of deliveries takes at most a few milliseconds, and is never split
    /// into parts.
    package static let least = 16_384
    /// The greatest value of ``most``. If subscribers suddenly no longer keep up, this number of deliveries takes a few
    /// tenths of a second, but only once.
    package static let greatest = 262_144

    package private(set) var most = greatest

    package init() {}

    /// Adapts ``most`` to a measurement. The number falls at once, and rises in steps.
    package mutating func learn(_ deliveries: Int, _ time: Duration) {
        let ideal = Double(deliveries) * (Self.time / max(time, .microseconds(1)))
        most = max(Self.least, min(Int(min(ideal, Double(Self.greatest))), 2 * most))
    }
}
