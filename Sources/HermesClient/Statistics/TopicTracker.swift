// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Notices which pushes to topics and rooms did not arrive: within an epoch the server numbers them without gaps. A value.
///
/// What was missed cannot be fetched. The first push of a topic, and the first of another epoch (the server has started
/// anew), say nothing about those before.
struct TopicTracker: Sendable {
    private struct Place {
        var epoch: UInt64
        var seq: UInt64
        /// The higher, the later it was looked at.
        var age: UInt64
    }

    /// So many topics are watched; beyond that the one that was silent for longest is forgotten.
    static let maxTopics = 1_000

    private var places: [String: Place] = [:]
    private var age: UInt64 = 0
    /// How many pushes were missed in all.
    private(set) var missed: UInt64 = 0

    /// A push arrived.
    ///
    /// - Parameter isKept: it is one that the server kept for later subscribers: it tells nothing of a topic that is not
    ///   watched yet.
    /// - Returns: the numbers of those before it that did not arrive; nil if none is known to be missing.
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
        // Nobody counts so far: then it is not a number of the server's.
        guard last.seq < .max, seq > last.seq + 1 else { return nil }
        // Not the range's count, which traps where it is no Int: the numbers are the other side's.
        missed &+= seq - 1 - last.seq
        return last.seq + 1...seq - 1
    }

    /// What comes from now on is not missed.
    mutating func forget(_ topic: String) { places[topic] = nil }

    /// Nothing is subscribed to any more, as far as is known.
    mutating func forgetAll() { places = [:] }

    private mutating func insert(_ place: Place, _ topic: String) {
        if places.count >= Self.maxTopics, let oldest = places.min(by: { $0.value.age < $1.value.age }) {
            places[oldest.key] = nil
        }
        places[topic] = place
    }
}
