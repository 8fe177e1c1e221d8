// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// Detects which pushes to topics and rooms did not arrive. Within an epoch, the server numbers the pushes to a topic
/// without gaps.
///
/// Missed pushes cannot be fetched. The first push to a topic says nothing about earlier pushes. The same is true for
/// the first push of a new epoch, which begins after a restart of the server.
struct TopicTracker: Sendable {
    private struct Place {
        var epoch: UInt64
        var seq: UInt64
        /// A larger number means that the last push to the topic arrived more recently.
        var age: UInt64
    }

    /// The largest number of watched topics. Before a further topic is added, the topic that was silent for the longest
    /// time is forgotten.
    static let maxTopics = 1_000

    private var places: [ExactText: Place] = [:]
    private var age: UInt64 = 0
    /// The number of missed pushes in all.
    private(set) var missed: UInt64 = 0

    /// Notes that a push arrived.
    ///
    /// - Parameter isKept: whether the push is a retained one, which the server sends to a new subscriber. If the topic
    ///   is not watched yet, a retained push does not begin the topic's numbering.
    /// - Returns: the numbers of the missed pushes before this push; nil if none is known to be missing.
    mutating func arrived(_ seq: UInt64, epoch: UInt64, on topic: String, isKept: Bool = false) -> ClosedRange<UInt64>?
    {
        age &+= 1
        let topic = ExactText(topic)
        guard let last = places[topic] else {
            if !isKept { insert(Place(epoch: epoch, seq: seq, age: age), topic) }
            return nil
        }
        guard last.epoch == epoch else {
            places[topic] = Place(epoch: epoch, seq: seq, age: age)
            return nil
        }
        places[topic] = Place(epoch: epoch, seq: max(last.seq, seq), age: age)
        // No server counts that far, so `.max` is not a push number.
        guard last.seq < .max, seq > last.seq + 1 else { return nil }
        // The numbers come from the server. The range's `count` would trap if it did not fit into an `Int`.
        missed &+= seq - 1 - last.seq
        return last.seq + 1...seq - 1
    }

    /// Forgets a topic. The next push to it begins a new numbering.
    mutating func forget(_ topic: String) { places[ExactText(topic)] = nil }

    /// Forgets all topics.
    mutating func forgetAll() { places = [:] }

    private mutating func insert(_ place: Place, _ topic: ExactText) {
        if places.count >= Self.maxTopics, let oldest = places.min(by: { $0.value.age < $1.value.age }) {
            places[oldest.key] = nil
        }
        places[topic] = place
    }
}
