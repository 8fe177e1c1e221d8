// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// A publication to a topic. All subscribers share its payload.
package struct Publication: Sendable {
    /// The class of a publication. It determines what is dropped for a slow subscriber: publications of the lowest
    /// class are dropped first.
    package enum DropClass: UInt8, Sendable, Comparable {
        /// Chat text. A slow viewer loses the oldest texts first.
        case text
        /// Events of users that join or leave.
        case presence
        /// Gifts and other paid items.
        case gift
        /// Notices of the server. They are never dropped. If a subscriber cannot receive a notice, its connection is
        /// closed.
        case control

        package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// The meaning of the payload.
    package enum Kind: Hashable, Sendable {
        /// The publisher determines the meaning. In a room, the payload is a text.
        case plain
        /// An event in a room, in the form of ``RoomPayloads``.
        case room(RoomEvent.Kind)

        var dropClass: DropClass {
            switch self {
            case .plain: .text
            case .room(let kind): kind.dropClass
            }
        }

        /// The number of the room event's kind (``RoomEvent/Kind/number``); nil for a plain publication.
        package var number: UInt16? {
            switch self {
            case .plain: nil
            case .room(let kind): kind.number
            }
        }
    }

    /// The ``kind`` of publications that are not room events.
    package static let plainKind = Kind.plain

    package let topic: TopicName
    /// The bytes that subscribers of the topic get. The core does not interpret them.
    package private(set) var payload: ByteBuffer
    package private(set) var kind: Kind
    package private(set) var dropClass: DropClass
    /// The sender's account; nil for anonymous publishers and the server.
    package let sender: UserID?

    /// The publisher's QoS.
    package let qos: QoS
    /// The publisher's retain flag, for subscribers with the option "retain as published".
    package let retain: Bool
    /// Further properties; nil if there are none.
    package let details: PublicationDetails?
    /// The publishing client (``SessionKey/publisher``), for subscribers with the option "no local"; 0 if there is
    /// none.
    package private(set) var publisher: UInt64
    /// The slot of the encoding that is stored in ``encoded``.
    package private(set) var encodedSlot: EncodingSlot?
    /// An encoding that exists already, because the publication was received in it.
    package private(set) var encoded: ByteBuffer?
    /// The shared subscriptions for which the receiving member is chosen elsewhere, for example because some members'
    /// sessions are kept.
    package var decided: DecidedShares?

    package init(
        topic: TopicName,
        payload: ByteBuffer,
        kind: Kind,
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

    /// Returns the same publication in buffers of about the size of their contents.
    func compacted() -> Publication {
        var publication = self
        publication.payload = payload.compacted()
        publication.encoded = encoded?.compacted()
        return publication
    }

    /// Replaces the payload with a copy, and drops other encodings.
    mutating func own() {
        payload = ByteBuffer(bytes: payload.readableBytesView)
        dropEncoding()
    }

    /// Returns the same publication with a copy of the payload, and without other encodings.
    package func owned() -> Publication {
        var publication = self
        publication.own()
        return publication
    }

    /// Returns the same publication with another publisher (``SessionKey/publisher``).
    package func by(_ publisher: UInt64) -> Publication {
        var publication = self
        publication.publisher = publisher
        return publication
    }

    /// Returns the same publication with the given shared subscriptions as ``decided``.
    package func deciding(_ shares: DecidedShares?) -> Publication {
        var publication = self
        publication.decided = shares
        return publication
    }

    /// Returns the same publication with another kind and that kind's drop class.
    package func ofKind(_ kind: Kind) -> Publication {
        guard kind != self.kind else { return self }
        var publication = self
        publication.kind = kind
        publication.dropClass = kind.dropClass
        publication.dropEncoding()
        return publication
    }

    /// The publication in the form for another node. That node makes its own encodings, and must not choose members of
    /// shared subscriptions. It does not know the publisher, because the numbers of clients (``SessionKey/publisher``)
    /// differ between nodes.
    var elsewhere: Publication {
        var publication = self
        publication.dropEncoding()
        publication.publisher = 0
        publication.decided = .all
        return publication
    }

    private mutating func dropEncoding() { (encodedSlot, encoded) = (nil, nil) }

    /// The length in bytes of a message that contains only the topic and the payload.
    package var leastMessageBytes: Int { payload.readableBytes &+ topic.rawValue.utf8.count &+ 4 }

    /// An upper bound of a message's length in bytes, for a subscriber with at most one subscription identifier. A
    /// PUBLISH packet has at most 13 bytes in addition to topic, payload and properties (MQTT 5.0, 3.3). The identifier
    /// and a topic alias take at most 8 bytes, and the type of a room's event takes fewer than 64.
    package var mostMessageBytes: Int {
        leastMessageBytes &+ 20 &+ (kind == Self.plainKind ? 0 : 64) &+ (details?.weight ?? 0)
    }

    /// The size of the publication for the limits of queues, in bytes.
    package var weight: Int {
        payload.readableBytes &+ topic.rawValue.utf8.count &+ 128 &+ (details?.weight ?? 0)
    }
}
