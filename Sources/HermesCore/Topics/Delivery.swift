// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The form in which one protocol writes publications; one number for each.
package struct EncodingSlot: Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// A whole LiveRoom frame.
    package static let liveRoom = Self(rawValue: 0)
    /// A whole Delimited frame.
    package static let delimited = Self(rawValue: 1)
    /// What MQTT 3.1.1 subscribers share.
    package static let mqttV311 = Self(rawValue: 2)
    /// What MQTT 5 subscribers share.
    package static let mqttV5 = Self(rawValue: 3)
}

/// A publication on its way to the subscribers of one loop, with its encodings: each protocol encodes once a loop.
///
/// Owner: the loop of the ``TopicShard`` that made it. A subscriber may keep it; then it stays as it is.
package final class Delivery {
    package private(set) var publication: Publication
    private var firstSlot: EncodingSlot?
    private var firstBytes = ByteBuffer()
    private var others: [(slot: EncodingSlot, bytes: ByteBuffer)] = []

    package init(_ publication: Publication) {
        self.publication = publication
        firstSlot = publication.encodedSlot
        firstBytes = publication.encoded ?? ByteBuffer()
    }

    /// The publication in the form of `slot`; `encode` runs for the first subscriber that asks.
    package func encoded(_ slot: EncodingSlot, by encode: (Publication) -> ByteBuffer) -> ByteBuffer {
        if firstSlot == slot { return firstBytes }
        for other in others where other.slot == slot { return other.bytes }
        let bytes = encode(publication)
        if firstSlot == nil {
            firstSlot = slot
            firstBytes = bytes
        } else {
            others.append((slot, bytes))
        }
        return bytes
    }

    /// Makes the object carry another publication; only while nobody else holds it.
    func reset(to publication: Publication) {
        self.publication = publication
        firstSlot = publication.encodedSlot
        firstBytes = publication.encoded ?? ByteBuffer()
        if !others.isEmpty { others.removeAll(keepingCapacity: true) }
    }
}

/// Whoever gets publications. Called on the shard's loop only.
package protocol TopicSubscriber: AnyObject {
    /// Takes a publication. Must not block; may subscribe, unsubscribe and publish.
    ///
    /// - Parameter subscription: the one that matched; where several of the subscriber's did, it stands for all of them.
    func deliver(_ delivery: Delivery, for subscription: TopicSubscription)
}
