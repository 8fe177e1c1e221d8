// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The slot in which a publication keeps an encoding that a gateway has made. Each gateway declares its own slots, with
/// numbers that no other gateway uses. The core does not know these slots.
public struct EncodingSlot: Hashable, Sendable {
    /// The number.
    public let rawValue: UInt8

    /// Creates the slot with a number. The initializer is inlined into the gateways, so that a slot is a constant
    /// there.
    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }
}

/// A publication for the subscribers of one loop, with its encodings: each protocol encodes it once per loop.
///
/// Owner: the loop of the ``TopicShard`` that made it. A subscriber may keep the object. The publication of a kept
/// object stays the same.
package final class Delivery {
    @exclusivity(unchecked)
    package private(set) var publication: Publication
    /// The publication's QoS.
    @exclusivity(unchecked)
    package private(set) var qos: QoS
    /// The publication's publisher.
    @exclusivity(unchecked)
    package private(set) var publisher: UInt64
    private var isKept = false
    @exclusivity(unchecked)
    private var firstSlot: EncodingSlot?
    private var firstBytes = ByteBuffer()
    /// The start of ``firstBytes`` in memory; nil until the bytes are borrowed.
    @exclusivity(unchecked)
    private var firstStart: UnsafeRawPointer?
    @exclusivity(unchecked)
    private var firstCount = 0
    private var others: [(slot: EncodingSlot, bytes: ByteBuffer)] = []

    package init(_ publication: consuming Publication) {
        qos = publication.qos
        publisher = publication.publisher
        firstSlot = publication.encodedSlot
        firstBytes = publication.encoded ?? ByteBuffer()
        self.publication = publication
    }

    /// Returns the publication in the encoding of `slot`. `encode` runs only for the first subscriber that asks for
    /// this encoding.
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

    /// Returns the bytes of ``encoded(_:by:)`` without changing a reference count. Such a change is an atomic
    /// operation. It would wait for all earlier writes, and would cost as much as the rest of a delivery.
    ///
    /// - Returns: bytes that are valid until the subscriber returns from
    ///   ``TopicSubscriber/deliver(_:for:)-(Delivery,_)``.
    @inline(__always)
    package func borrowed(_ slot: EncodingSlot, by encode: (Publication) -> ByteBuffer) -> UnsafeRawBufferPointer {
        if firstSlot == slot, let firstStart { return UnsafeRawBufferPointer(start: firstStart, count: firstCount) }
        return borrowedAnew(slot, by: encode)
    }

    @inline(never)
    private func borrowedAnew(
        _ slot: EncodingSlot,
        by encode: (Publication) -> ByteBuffer
    ) -> UnsafeRawBufferPointer {
        // This object keeps the storage alive, and shared bytes are never written.
        let bytes = encoded(slot, by: encode).withUnsafeReadableBytesWithStorageManagement { bytes, _ in bytes }
        if firstSlot == slot {
            firstStart = bytes.baseAddress
            firstCount = bytes.count
        }
        return bytes
    }

    /// Returns an existing encoding, for subscribers that keep it. The buffer is not much larger than the encoding. It
    /// is empty if the publication was not encoded for this slot.
    package func compact(_ slot: EncodingSlot) -> ByteBuffer {
        if firstSlot == slot {
            firstBytes = firstBytes.compacted()
            firstStart = nil
            return firstBytes
        }
        for index in others.indices where others[index].slot == slot {
            others[index].bytes = others[index].bytes.compacted()
            return others[index].bytes
        }
        return ByteBuffer()
    }

    /// Returns the publication with a copy of the payload, for subscribers that keep the publication. The buffer into
    /// which the payload was read can then be freed.
    package func kept() -> Publication {
        if !isKept {
            // The publication is changed in place. A copy of it would change the reference counts of all its parts.
            publication.own()
            isKept = true
        }
        return publication
    }

    /// Reuses the object for another publication. This is allowed only while nothing else refers to the object.
    func reset(to publication: Publication) {
        self.publication = publication
        qos = publication.qos
        publisher = publication.publisher
        isKept = false
        firstSlot = publication.encodedSlot
        firstBytes = publication.encoded ?? ByteBuffer()
        firstStart = nil
        if !others.isEmpty { others.removeAll(keepingCapacity: true) }
    }
}

/// A subscriber of topics. It is called only on the shard's loop.
package protocol TopicSubscriber: AnyObject {
    /// Receives a publication. The subscriber must not block. It may subscribe, unsubscribe and publish.
    ///
    /// - Parameter subscription: the matching subscription. If several of the subscriber's subscriptions match, this
    ///   one represents all of them.
    func deliver(_ delivery: Delivery, for subscription: TopicSubscription)

    /// Receives publications that arrived together. By default, the subscriber gets them one after the other.
    func deliver(_ run: DeliveryRun, for subscription: TopicSubscription)
}
