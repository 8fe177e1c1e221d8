// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Numbers the pushes to each topic, from 1, within an epoch; for a room's topic, the notices to the room. The numbers
/// are only in memory: a restart begins a new epoch, and so does a full table. Numbers of two epochs cannot be
/// compared. Pure.
package struct TopicNumbers {
    /// A place in a topic's sequence.
    package struct Place: Hashable, Sendable {
        package let epoch: UInt64
        package let seq: UInt64

        package init(epoch: UInt64, seq: UInt64) {
            self.epoch = epoch
            self.seq = seq
        }
    }

    private let maxTopics: Int
    private var epoch = Self.newEpoch()
    private var seqs: [TopicName: UInt64] = [:]

    /// - Parameter maxTopics: the number of counted topics; beyond it, all begin anew.
    package init(maxTopics: Int) { self.maxTopics = max(1, maxTopics) }

    /// The place of a topic's next push; the same until it is ``used(_:on:)``.
    package mutating func next(on topic: TopicName) -> Place {
        if seqs.count >= maxTopics, seqs[topic] == nil {
            seqs = [:]
            epoch = Self.newEpoch()
        }
        return Place(epoch: epoch, seq: (seqs[topic] ?? 0) + 1)
    }

    /// A push with this place was published.
    package mutating func used(_ place: Place, on topic: TopicName) { seqs[topic] = place.seq }

    /// Random, so that a clock that was put back repeats none; fits into a signed number, for clients that have no
    /// other.
    private static func newEpoch() -> UInt64 { UInt64.random(in: 1...UInt64(Int64.max)) }
}

extension PublicationDetails {
    private static let epochName = "epoch"
    private static let seqName = "seq"

    /// The user properties with a place, for subscribers of the topic.
    package static func properties(of place: TopicNumbers.Place) -> [(name: String, value: String)] {
        [(epochName, String(place.epoch)), (seqName, String(place.seq))]
    }

    /// The place in the user properties; nil: there is none.
    package var place: TopicNumbers.Place? {
        let (epoch, seq) = (number(Self.epochName), number(Self.seqName))
        return epoch == nil && seq == nil ? nil : TopicNumbers.Place(epoch: epoch ?? 0, seq: seq ?? 0)
    }

    private func number(_ name: String) -> UInt64? {
        userProperties.first { $0.name == name }.flatMap { UInt64($0.value) }
    }
}
