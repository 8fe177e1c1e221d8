// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Notices which pushes to topics and rooms did not arrive. Within an epoch the server numbers them without gaps. A
/// value.
///
/// Missed pushes cannot be fetched. The first push of a topic, and the first of a new epoch (after a restart of the
/// server), say nothing about earlier ones.
struct TopicTracker: Sendable {
    private struct Place {
        var epoch: UInt64
        var seq: UInt64
        /// The larger, the more recently the topic was used.
        var age: UInt64
    }

    /// The number of watched topics; beyond it, the topic that was silent for longest is forgotten.
    static let maxTopics = 1_000

    private var places: [String: Place] = [:]
    private var age: UInt64 = 0
    /// The number of missed pushes in all.
    private(set) var missed: UInt64 = 0

    /// A push arrived.
    ///
    /// - Parameter isKept: whether the server retained it for later subscribers. It then says nothing about a topic
    ///   that is not watched yet.
    /// - Returns: the numbers of missed pushes before it; nil if none is known to be missing.
    mutating func arrived(_ seq: UInt64, epoch: UInt64, on topic: String, isKept: Bool = false) -> ClosedRange<UInt64>?
    {
        age &+= 1
        guard let last = places[topic] else {
            if !isKept { insert(Place(epoch: epoch, seq: seq, age: age), topic) }
            return nil
        }
        guard last.epoch == epoch else {
            places[topic] = Place(epoch: epoch, seq: seq, age: age)
            return nil
        }
        places[topic] = Place(epoch: epoch, seq: max(last.seq, seq), age: age)
        // No server counts that far: it is not a push number.
        guard last.seq < .max, seq > last.seq + 1 else { return nil }
        // Not the range's count, which traps if it is no Int: the numbers come from the server.
        missed &+= seq - 1 - last.seq
        return last.seq + 1...seq - 1
    }

    /// Forgets a topic: pushes from now on are not missed.
    mutating func forget(_ topic: String) { places[topic] = nil }

    /// Forgets all topics: no subscription is known any more.
    mutating func forgetAll() { places = [:] }

    private mutating func insert(_ place: Place, _ topic: String) {
        if places.count >= Self.maxTopics, let oldest = places.min(by: { $0.value.age < $1.value.age }) {
            places[oldest.key] = nil
        }
        places[topic] = place
    }
}
