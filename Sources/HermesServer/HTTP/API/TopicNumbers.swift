// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// Numbers what is pushed to each topic, from 1, within an epoch. The numbers are in memory alone: a start of the server
/// draws another epoch, and so does a table that is full. Numbers of two epochs cannot be compared. Pure.
struct TopicNumbers {
    /// A place in a topic's sequence.
    struct Place: Hashable {
        let epoch: UInt64
        let seq: UInt64
    }

    private let maxTopics: Int
    private var epoch = Self.newEpoch()
    private var seqs: [TopicName: UInt64] = [:]

    /// - Parameter maxTopics: so many topics are counted; beyond that all begin anew.
    init(maxTopics: Int) { self.maxTopics = max(1, maxTopics) }

    /// The place of a topic's next push. It is the next one's, too, until it is ``used(_:on:)``.
    mutating func next(on topic: TopicName) -> Place {
        if seqs.count >= maxTopics, seqs[topic] == nil {
            seqs = [:]
            epoch = Self.newEpoch()
        }
        return Place(epoch: epoch, seq: (seqs[topic] ?? 0) + 1)
    }

    /// A push with this place was published.
    mutating func used(_ place: Place, on topic: TopicName) { seqs[topic] = place.seq }

    /// By chance, so that a clock that was put back gives none twice; fits into a signed number, for those who have no other.
    private static func newEpoch() -> UInt64 { UInt64.random(in: 1...UInt64(Int64.max)) }
}

extension PublicationDetails {
    /// As subscribers of MQTT 5 see it.
    static func properties(of place: TopicNumbers.Place) -> [(name: String, value: String)] {
        [("epoch", String(place.epoch)), ("seq", String(place.seq))]
    }
}
