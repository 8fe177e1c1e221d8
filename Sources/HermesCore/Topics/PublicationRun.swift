// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Publications that arrived together from one publisher to one topic. Their bytes are adjacent, in the encoding of one
/// protocol. A run is immutable.
///
/// The cost per subscriber arises only once for the whole run. This makes a busy publisher cheap. A subscriber that
/// cannot use the bytes gets separate publications.
package struct PublicationRun: Sendable {
    package let topic: TopicName
    /// The encoding of the bytes.
    package let slot: EncodingSlot
    package let bytes: ByteBuffer
    /// For each publication, a range of ``bytes`` that ends where the publication ends. The first bytes of the range
    /// depend on the encoding of the slot. Each publication begins where the previous publication ends.
    package let bodies: [Range<UInt32>]
    /// The number of bytes between the beginning of a range in ``bodies`` and the payload. The payload is the rest of
    /// the range.
    package let payloadOffset: Int
    /// The sender of each ``Publication``.
    package let sender: UserID?
    package let qos: QoS
    package let publisher: UInt64

    package init(
        topic: TopicName,
        slot: EncodingSlot,
        bytes: ByteBuffer,
        bodies: [Range<UInt32>],
        payloadOffset: Int,
        sender: UserID?,
        qos: QoS,
        publisher: UInt64
    ) {
        self.topic = topic
        self.slot = slot
        self.bytes = bytes
        self.bodies = bodies
        self.payloadOffset = payloadOffset
        self.sender = sender
        self.qos = qos
        self.publisher = publisher
    }

    package var count: Int { bodies.count }

    /// Returns a run of some of the publications.
    func part(_ range: Range<Int>) -> Self {
        guard range.count < count, let last = range.last else { return self }
        let start = range.lowerBound == 0 ? 0 : bodies[range.lowerBound - 1].upperBound
        return Self(
            topic: topic,
            slot: slot,
            bytes: slice(start..<bodies[last].upperBound),
            bodies: bodies[range].map { $0.lowerBound - start..<$0.upperBound - start },
            payloadOffset: payloadOffset,
            sender: sender,
            qos: qos,
            publisher: publisher
        )
    }

    /// Returns the same run in a buffer of about the size of its contents.
    func compacted() -> Self {
        Self(
            topic: topic,
            slot: slot,
            bytes: bytes.compacted(),
            bodies: bodies,
            payloadOffset: payloadOffset,
            sender: sender,
            qos: qos,
            publisher: publisher
        )
    }

    /// The publication at an index.
    package subscript(index: Int) -> Publication {
        let start = index == 0 ? 0 : bodies[index - 1].upperBound
        let payload = min(bodies[index].lowerBound &+ UInt32(payloadOffset), bodies[index].upperBound)
        return Publication(
            topic: topic,
            payload: slice(payload..<bodies[index].upperBound),
            kind: Publication.plainKind,
            sender: sender,
            qos: qos,
            publisher: publisher,
            encodedSlot: slot,
            encoded: slice(start..<bodies[index].upperBound)
        )
    }

    private func slice(_ range: Range<UInt32>) -> ByteBuffer {
        bytes.getSlice(at: bytes.readerIndex + Int(range.lowerBound), length: range.count) ?? ByteBuffer()
    }

    /// The size of the run for the limits of queues, in bytes.
    var weight: Int { bytes.readableBytes &+ 128 &+ 8 &* bodies.count }
}

/// A run for the subscribers of one loop.
///
/// Owner: the loop of the ``TopicShard`` that made it.
package final class DeliveryRun {
    package let run: PublicationRun
    /// The separate publications. They are created when the first subscriber needs them.
    package private(set) lazy var deliveries: [Delivery] = run.bodies.indices.map { Delivery(run[$0]) }

    /// The bytes for subscribers that keep them, in a buffer of about their size.
    package private(set) lazy var compactBytes = run.bytes.compacted()

    package init(_ run: PublicationRun) { self.run = run }
}

extension TopicSubscriber {
    package func deliver(_ run: DeliveryRun, for subscription: TopicSubscription) {
        subscription.deliverOneByOne(run)
    }
}

extension TopicSubscription {
    /// Delivers the run's publications one by one, for a subscriber that cannot process the run as a whole.
    package final func deliverOneByOne(_ run: DeliveryRun) {
        for delivery in run.deliveries { deliver(delivery) }
    }
}

/// One publication, or a run of them.
package enum PublicationBatch: Sendable {
    case one(Publication)
    case run(PublicationRun)

    var topic: TopicName {
        switch self {
        case .one(let publication): publication.topic
        case .run(let run): run.topic
        }
    }

    var count: Int {
        switch self {
        case .one: 1
        case .run(let run): run.count
        }
    }

    var weight: Int {
        switch self {
        case .one(let publication): publication.weight
        case .run(let run): run.weight
        }
    }

    /// Returns the same publications in buffers of about the size of their contents, so that they can be kept.
    func compacted() -> Self {
        switch self {
        case .one(let publication): .one(publication.compacted())
        case .run(let run): .run(run.compacted())
        }
    }

    /// The length, in bytes, up to which each subscriber copies a frame. All subscribers share longer frames that need
    /// no acknowledgement.
    package static let copiedUpTo = 4_096

    /// The approximate number of bytes that each subscriber copies.
    var copiedBytes: Int {
        switch self {
        case .one(let publication):
            publication.payload.readableBytes > Self.copiedUpTo ? 64 : publication.payload.readableBytes &+ 64
        case .run(let run):
            run.qos == .atMostOnce && run.bytes.readableBytes > Self.copiedUpTo ? 64 : run.bytes.readableBytes
        }
    }
}

extension ByteBuffer {
    /// Returns the same bytes in a buffer of about their size.
    func compacted() -> ByteBuffer {
        storageCapacity <= 2 * readableBytes + 64 ? self : ByteBuffer(bytes: readableBytesView)
    }
}
