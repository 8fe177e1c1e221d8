// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// A publication as the store keeps it.
package struct StoredPublication: Sendable {
    package let topic: TopicName
    /// A buffer of its own, not a slice of what was received: it may stay for long.
    package let payload: ByteBuffer
    /// As it was published; subscribers may get it with less.
    package let qos: QoS
    /// The publisher's flag.
    package let retain: Bool
    package let details: PublicationDetails?
    package let publishedAt: Timestamp

    /// Copies the payload.
    package init(
        topic: TopicName,
        payload: ByteBuffer,
        qos: QoS,
        retain: Bool = false,
        details: PublicationDetails? = nil,
        publishedAt: Timestamp
    ) {
        self.topic = topic
        var copy = ByteBuffer()
        if payload.readableBytes > 0 {
            copy = ByteBufferAllocator().buffer(capacity: payload.readableBytes)
            copy.writeImmutableBuffer(payload)
        }
        self.payload = copy
        self.qos = qos
        self.retain = retain
        self.details = details
        self.publishedAt = publishedAt
    }

    /// What a connection published; copies the payload.
    package init(_ publication: Publication, publishedAt: Timestamp) {
        self.init(
            topic: publication.topic,
            payload: publication.payload,
            qos: publication.qos,
            retain: publication.retain,
            details: publication.details,
            publishedAt: publishedAt
        )
    }

    /// Takes a payload that is nobody else's.
    package init(
        topic: TopicName,
        ownedPayload: ByteBuffer,
        qos: QoS,
        retain: Bool,
        details: PublicationDetails?,
        publishedAt: Timestamp
    ) {
        self.topic = topic
        self.payload = ownedPayload
        self.qos = qos
        self.retain = retain
        self.details = details
        self.publishedAt = publishedAt
    }

    /// Retained, it removes what a topic has.
    package static func removal(of topic: TopicName, at now: Timestamp) -> StoredPublication {
        StoredPublication(topic: topic, payload: ByteBuffer(), qos: .atLeastOnce, retain: true, publishedAt: now)
    }

    /// One without a payload; retained, it removes what is there [MQTT-3.3.1-6].
    package var isEmpty: Bool { payload.readableBytes == 0 }

    /// Whether its time is over.
    package func hasExpired(at now: Timestamp) -> Bool {
        guard let expiresAt = details?.expiresAt else { return false }
        return expiresAt <= now
    }

    /// What it counts for where publications are limited by bytes.
    package var weight: Int { payload.readableBytes &+ topic.rawValue.utf8.count &+ (details?.weight ?? 0) &+ 32 }
}

/// A publication in the queue of one durable session.
package struct QueuedPublication: Sendable {
    /// Its place in the session's queue, contiguous from 1.
    package let seq: UInt64
    /// What it is delivered with: at least once or exactly once.
    package let qos: QoS
    /// The identifiers of the subscriptions that it came by.
    package let identifiers: [UInt32]
    /// The retain flag to deliver it with.
    package let retain: Bool
    /// The shared subscription that it came by, `$share/…`: it may go to another member; nil: by one of its own.
    package let share: String?
    package let publication: StoredPublication

    package init(
        seq: UInt64,
        qos: QoS,
        identifiers: [UInt32],
        retain: Bool,
        share: String? = nil,
        publication: StoredPublication
    ) {
        self.seq = seq
        self.qos = qos
        self.identifiers = identifiers
        self.retain = retain
        self.share = share
        self.publication = publication
    }

    /// The packet id it is delivered with, the same over all connections, so that none needs to be stored.
    package var packetID: UInt16 { Self.packetID(of: seq) }

    /// The packet id of a seq: 1 … 65,535 in turn.
    package static func packetID(of seq: UInt64) -> UInt16 { UInt16(truncatingIfNeeded: (seq &- 1) % 65_535) &+ 1 }
}

/// In which queue a publication goes, and how.
package struct PublicationTarget: Sendable, Hashable {
    package let session: DurableSessionID
    package let qos: QoS
    package let identifiers: [UInt32]
    package let retain: Bool
    /// The shared subscription that it comes by, `$share/…`.
    package let share: String?

    package init(
        session: DurableSessionID,
        qos: QoS,
        identifiers: [UInt32] = [],
        retain: Bool = false,
        share: String? = nil
    ) {
        self.session = session
        self.qos = qos
        self.identifiers = identifiers
        self.retain = retain
        self.share = share
    }
}

extension Publication {
    /// What is stored, for subscribers that are connected.
    package init(_ stored: StoredPublication) {
        self.init(
            topic: stored.topic,
            payload: stored.payload,
            kind: Publication.plainKind,
            qos: stored.qos,
            retain: stored.retain,
            details: stored.details
        )
    }
}
