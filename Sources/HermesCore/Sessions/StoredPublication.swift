// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// A stored publication.
package struct StoredPublication: Sendable {
    package let topic: TopicName
    /// The payload, in a separate buffer. A payload may be kept for a long time, so it is not a slice of a read buffer.
    package let payload: ByteBuffer
    /// The publisher's QoS; a subscriber may get a lower QoS.
    package let qos: QoS
    /// The publisher's retain flag.
    package let retain: Bool
    package let details: PublicationDetails?
    package let publishedAt: Timestamp
    /// The source that pays for the publication while it is retained.
    package var source = CommitSource.server

    /// Creates a publication with a copy of the payload.
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

    /// Creates a stored publication from a connection's publication, with a copy of the payload.
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

    /// Creates a publication with this payload buffer. The buffer is not copied, because it has no other owner.
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

    /// Returns a publication with an empty payload. When it is retained, it removes the topic's retained publication.
    package static func removal(of topic: TopicName, at now: Timestamp) -> StoredPublication {
        StoredPublication(topic: topic, payload: ByteBuffer(), qos: .atLeastOnce, retain: true, publishedAt: now)
    }

    /// Whether the payload is empty. When such a publication is retained, it removes the topic's retained publication
    /// [MQTT-3.3.1-6].
    package var isEmpty: Bool { payload.readableBytes == 0 }

    /// Whether the publication has expired.
    package func hasExpired(at now: Timestamp) -> Bool { details?.hasExpired(at: now) ?? false }

    /// The size of the publication for limits, in bytes.
    package var weight: Int { payload.readableBytes &+ topic.rawValue.utf8.count &+ (details?.weight ?? 0) &+ 32 }
}

/// A publication in the queue of one durable session.
package struct QueuedPublication: Sendable {
    /// The publication's number in the session's queue, contiguous from 1.
    package let seq: UInt64
    /// The QoS of the delivery: at least once or exactly once.
    package let qos: QoS
    /// The identifiers of the matching subscriptions.
    package let identifiers: [UInt32]
    /// The retain flag of the delivery.
    package let retain: Bool
    /// The text of the shared subscription, `$share/…`, through which the publication arrived. The publication can move
    /// to another member of that subscription. The text is nil if the publication arrived through an ordinary
    /// subscription of the session.
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

    /// The size of the publication for limits, in bytes. It includes the identifiers and the text of the shared
    /// subscription, which are stored with the publication.
    package var weight: Int { publication.weight &+ PublicationTarget.addedWeight(identifiers, share) }
}

/// A part of a session's queue, as it was read from the store.
package struct QueuePage: Sendable, RandomAccessCollection {
    /// The publications in ascending order of their seqs.
    package var publications: [QueuedPublication]
    /// The last seq that was read; the next page begins after it. A damaged entry is read, but it is not in
    /// ``publications``.
    package var upTo: UInt64
    /// Whether the queue had no further publications.
    package var isAtEnd: Bool

    package init(_ publications: [QueuedPublication] = [], upTo: UInt64, isAtEnd: Bool) {
        self.publications = publications
        self.upTo = upTo
        self.isAtEnd = isAtEnd
    }

    package var startIndex: Int { publications.startIndex }
    package var endIndex: Int { publications.endIndex }

    package subscript(position: Int) -> QueuedPublication { publications[position] }
}

/// A queue that a publication goes to, and the options of its delivery.
package struct PublicationTarget: Sendable, Hashable {
    package let session: DurableSessionID
    package let qos: QoS
    package let identifiers: [UInt32]
    package let retain: Bool
    /// The text of the shared subscription, `$share/…`, through which the publication arrives; nil for an ordinary
    /// subscription.
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

    /// Returns the number of bytes that a publication adds to this queue.
    package func weight(of publication: StoredPublication) -> Int { publication.weight &+ addedWeight }

    /// The number of bytes that the identifiers and the text of the shared subscription add to a publication.
    package var addedWeight: Int { Self.addedWeight(identifiers, share) }

    /// Returns the bytes of the identifiers and of the text of the shared subscription. The identifiers and the text
    /// are stored with each publication, and the client chooses how long they are.
    fileprivate static func addedWeight(_ identifiers: [UInt32], _ share: String?) -> Int {
        4 &* identifiers.count &+ (share?.utf8.count ?? 0)
    }
}

extension Publication {
    /// Creates the live form of a stored publication, for connected subscribers.
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
