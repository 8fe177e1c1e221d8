// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Publications of one publisher to one topic that came together, and whose bytes lie side by side in the form of one
/// protocol. Immutable.
///
/// What each subscriber costs is paid once for all of them: this is what makes a busy publisher cheap. To whoever cannot
/// use the bytes it is the same as so many publications.
package struct PublicationRun: Sendable {
    package let topic: TopicName
    /// The form that the bytes have.
    package let slot: EncodingSlot
    package let bytes: ByteBuffer
    /// What follows the topic in each publication's bytes, counted from the beginning of all; with a QoS above 0 the packet
    /// identifier comes first. Each publication begins where the one before ends.
    package let bodies: [Range<UInt32>]
    /// How many bytes of a body come before the payload.
    package let payloadOffset: Int
    /// As of each ``Publication``.
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

    /// What it counts for where publications wait.
    var weight: Int { bytes.readableBytes &+ 128 &+ 8 &* bodies.count }
}

/// A run on its way to the subscribers of one loop.
///
/// Owner: the loop of the ``TopicShard`` that made it.
package final class DeliveryRun {
    package let run: PublicationRun
    /// The publications one by one, for those who need it; made for the first that asks.
    package private(set) lazy var deliveries: [Delivery] = run.bodies.indices.map { Delivery(run[$0]) }

    /// The bytes for those who keep them, so that no more memory is held than what they take.
    package private(set) lazy var compactBytes = run.bytes.compacted()

    package init(_ run: PublicationRun) { self.run = run }
}

extension TopicSubscriber {
    package func deliver(_ run: DeliveryRun, for subscription: TopicSubscription) {
        subscription.deliverOneByOne(run)
    }
}

extension TopicSubscription {
    /// For a subscriber that cannot take the run as it is.
    package final func deliverOneByOne(_ run: DeliveryRun) {
        for delivery in run.deliveries { deliver(delivery) }
    }
}

/// What is published together: one publication, or a run of them.
enum PublicationBatch: Sendable {
    case one(Publication)
    case run(PublicationRun)

    var topic: TopicName {
        switch self {
        case .one(let publication): publication.topic
        case .run(let run): run.topic
        }
    }

    var weight: Int {
        switch self {
        case .one(let publication): publication.weight
        case .run(let run): run.weight
        }
    }
}

extension ByteBuffer {
    /// The same bytes in a storage of about their size.
    func compacted() -> ByteBuffer {
        storageCapacity <= 2 * readableBytes + 64 ? self : ByteBuffer(bytes: readableBytesView)
    }
}
