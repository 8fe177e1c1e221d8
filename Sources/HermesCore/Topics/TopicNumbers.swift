// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Numbers the pushes to each topic, from 1, within an epoch. For a room's topic, this type numbers the notices to the
/// room. The numbers are only in memory. A new epoch begins at a restart, and when the table is full. Numbers of two
/// epochs cannot be compared. This type does no I/O.
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

    /// - Parameter maxTopics: the largest number of counted topics. When a further topic would be counted, a new epoch
    ///   begins for all topics.
    package init(maxTopics: Int) { self.maxTopics = max(1, maxTopics) }

    /// Returns the place of a topic's next push. It stays the same until it is passed to ``used(_:on:)``.
    package mutating func next(on topic: TopicName) -> Place {
        if seqs.count >= maxTopics, seqs[topic] == nil {
            seqs = [:]
            epoch = Self.newEpoch()
        }
        return Place(epoch: epoch, seq: (seqs[topic] ?? 0) + 1)
    }

    /// Records that a push with this place was published. A place of an earlier epoch is ignored.
    package mutating func used(_ place: Place, on topic: TopicName) {
        if place.epoch == epoch { seqs[topic] = place.seq }
    }

    /// Returns the number of a new epoch. It is random, so it does not repeat an earlier epoch even if the clock was
    /// set back. It fits into a signed number, for clients that have only signed numbers.
    private static func newEpoch() -> UInt64 { UInt64.random(in: 1...UInt64(Int64.max)) }
}

extension PublicationDetails {
    private static let epochName = "epoch"
    private static let seqName = "seq"

    /// Returns the user properties that contain a place, for the topic's subscribers.
    package static func properties(of place: TopicNumbers.Place) -> [(name: String, value: String)] {
        [(epochName, String(place.epoch)), (seqName, String(place.seq))]
    }

    /// The place in the user properties; nil if there is none.
    package var place: TopicNumbers.Place? {
        let (epoch, seq) = (number(Self.epochName), number(Self.seqName))
        return epoch == nil && seq == nil ? nil : TopicNumbers.Place(epoch: epoch ?? 0, seq: seq ?? 0)
    }

    private func number(_ name: String) -> UInt64? {
        userProperties.first { $0.name == name }.flatMap { UInt64($0.value) }
    }
}
