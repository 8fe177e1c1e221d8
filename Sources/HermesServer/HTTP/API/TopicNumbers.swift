// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// Numbers the pushes to each topic, from 1, within an epoch. The numbers are only in memory: a restart begins a new
/// epoch, and so does a full table. Numbers of two epochs cannot be compared. Pure.
struct TopicNumbers {
    /// A place in a topic's sequence.
    struct Place: Hashable {
        let epoch: UInt64
        let seq: UInt64
    }

    private let maxTopics: Int
    private var epoch = Self.newEpoch()
    private var seqs: [TopicName: UInt64] = [:]

    /// - Parameter maxTopics: the number of counted topics; beyond it, all counts begin anew.
    init(maxTopics: Int) { self.maxTopics = max(1, maxTopics) }

    /// The place of a topic's next push; the same until it is ``used(_:on:)``.
    mutating func next(on topic: TopicName) -> Place {
        if seqs.count >= maxTopics, seqs[topic] == nil {
            seqs = [:]
            epoch = Self.newEpoch()
        }
        return Place(epoch: epoch, seq: (seqs[topic] ?? 0) + 1)
    }

    /// A push with this place was published.
    mutating func used(_ place: Place, on topic: TopicName) { seqs[topic] = place.seq }

    /// Random, so that a clock that is set back repeats none. Fits into a signed number, for clients without unsigned
    /// numbers.
    private static func newEpoch() -> UInt64 { UInt64.random(in: 1...UInt64(Int64.max)) }
}

extension PublicationDetails {
    /// The user properties for MQTT 5 subscribers.
    static func properties(of place: TopicNumbers.Place) -> [(name: String, value: String)] {
        [("epoch", String(place.epoch)), ("seq", String(place.seq))]
    }
}
