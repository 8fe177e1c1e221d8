// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Something published to a topic. Immutable; the payload is shared over all subscribers.
package struct Publication: Sendable {
    /// What may be left out first where a subscriber cannot keep up; the lower, the sooner.
    package enum DropClass: UInt8, Sendable, Comparable {
        /// Chat text: a viewer loses the oldest first.
        case text
        /// Joins and leaves.
        case presence
        /// Gifts and whatever was paid for.
        case gift
        /// Notices of the server; never left out: a subscriber that cannot take one is closed.
        case control

        package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// The ``kind`` of what no protocol of rooms has given one: a number that LiveRoom does not use.
    package static let plainKind: UInt16 = 15

    package let topic: TopicName
    /// The body, as the publisher's protocol has it.
    package let payload: ByteBuffer
    /// What the body is, in the terms of the publisher's protocol; LiveRoom's frame type for rooms.
    package let kind: UInt16
    package let dropClass: DropClass
    /// The account it comes from; nil for anonymous publishers and for the server.
    package let sender: UserID?

    /// How surely the publisher wants it handed over.
    package let qos: QoS
    /// The publisher's retain flag, for subscribers that want it as published.
    package let retain: Bool
    /// What else there is to say; nil for nothing.
    package let details: PublicationDetails?
    /// The number of the publishing connection, for subscribers that do not want their own; 0 for nobody's.
    package let publisher: UInt64
    /// The form that ``encoded`` has.
    package let encodedSlot: EncodingSlot?
    /// A form that is there already: the received bytes.
    package let encoded: ByteBuffer?
    /// The shared subscriptions whose member is chosen elsewhere, for some of their members' sessions are kept.
    package var decided: DecidedShares?

    package init(
        topic: TopicName,
        payload: ByteBuffer,
        kind: UInt16,
        dropClass: DropClass = .text,
        sender: UserID? = nil,
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        details: PublicationDetails? = nil,
        publisher: UInt64 = 0,
        encodedSlot: EncodingSlot? = nil,
        encoded: ByteBuffer? = nil
    ) {
        self.topic = topic
        self.payload = payload
        self.kind = kind
        self.dropClass = dropClass
        self.sender = sender
        self.qos = qos
        self.retain = retain
        self.details = details
        self.publisher = publisher
        self.encodedSlot = encoded == nil ? nil : encodedSlot
        self.encoded = encoded
    }

    /// The same with a copy of the payload, and without other forms of it.
    package func owned() -> Publication {
        Publication(
            topic: topic,
            payload: ByteBuffer(bytes: payload.readableBytesView),
            kind: kind,
            dropClass: dropClass,
            sender: sender,
            qos: qos,
            retain: retain,
            details: details,
            publisher: publisher
        )
        .deciding(decided)
    }

    /// The same with the shared subscriptions whose member is chosen elsewhere.
    package func deciding(_ shares: DecidedShares?) -> Publication {
        guard shares != nil || decided != nil else { return self }
        var publication = self
        publication.decided = shares
        return publication
    }

    /// The same as another kind.
    package func ofKind(_ kind: UInt16) -> Publication {
        guard kind != self.kind else { return self }
        return Publication(
            topic: topic,
            payload: payload,
            kind: kind,
            dropClass: dropClass,
            sender: sender,
            qos: qos,
            retain: retain,
            details: details,
            publisher: publisher
        )
        .deciding(decided)
    }

    /// What it counts for where publications wait: its bytes and what surrounds them.
    package var weight: Int { payload.readableBytes &+ 128 &+ (details?.weight ?? 0) }
}
