// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Publications of one publisher to one topic that arrived together, with adjacent bytes in one protocol's encoding.
/// Immutable.
///
/// The cost per subscriber is paid once for all of them, which makes a busy publisher cheap. A subscriber that cannot
/// use the bytes gets separate publications.
package struct PublicationRun: Sendable {
    package let topic: TopicName
    /// The encoding of the bytes.
    package let slot: EncodingSlot
    package let bytes: ByteBuffer
    /// For each publication, a range of ``bytes`` that ends where the publication ends. What the range begins with
    /// depends on the encoding of the slot. Each publication begins where the one before ends.
    package let bodies: [Range<UInt32>]
    /// The number of bytes between the beginning of such a range and the payload, which is the rest.
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

    /// Some of the publications.
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

    /// The same in a buffer of about its size.
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

    /// One of the publications.
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

    /// The size that it counts for in queues.
    var weight: Int { bytes.readableBytes &+ 128 &+ 8 &* bodies.count }
}

/// A run for the subscribers of one loop.
///
/// Owner: the loop of the ``TopicShard`` that made it.
package final class DeliveryRun {
    package let run: PublicationRun
    /// The separate publications, made for the first subscriber that needs them.
    package private(set) lazy var deliveries: [Delivery] = run.bodies.indices.map { Delivery(run[$0]) }

    /// The bytes for subscribers that keep them, in a buffer of just their size.
    package private(set) lazy var compactBytes = run.bytes.compacted()

    package init(_ run: PublicationRun) { self.run = run }
}

extension TopicSubscriber {
    package func deliver(_ run: DeliveryRun, for subscription: TopicSubscription) {
        subscription.deliverOneByOne(run)
    }
}

extension TopicSubscription {
    /// Delivers the run one by one, for a subscriber that cannot take it whole.
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

    /// The same in buffers of about their size, to be kept.
    func compacted() -> Self {
        switch self {
        case .one(let publication): .one(publication.compacted())
        case .run(let run): .run(run.compacted())
        }
    }

    /// Longer frames without acknowledgement are shared by all subscribers.
    package static let copiedUpTo = 4_096

    /// The approximate bytes that each subscriber copies.
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
    /// The same bytes in a buffer of about their size.
    func compacted() -> ByteBuffer {
        storageCapacity <= 2 * readableBytes + 64 ? self : ByteBuffer(bytes: readableBytesView)
    }
}
