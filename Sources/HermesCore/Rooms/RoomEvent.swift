// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Something that happened in a room, in a form that does not depend on a protocol.
///
/// Rooms are live: an event is published to the room's topic (``TopicName/init(room:)``), reaches the clients that are
/// in the room, and is not stored. Each gateway translates its clients' frames to events, and writes events in its own
/// protocol. A gateway writes a publication once per encoding. So a gateway does not need to know the frames of other
/// gateways. A publication carries the kind of the event and a payload (``RoomPayloads``). If the publisher's protocol
/// uses this form of payloads, the publisher's bytes are passed on unchanged. Subscribers whose protocol also uses this
/// form get these bytes without parsing.
package struct RoomEvent: Hashable, Sendable {
    /// The content of an event.
    package enum Content: Hashable, Sendable {
        case joined(RoomMember)
        case left(RoomMember)
        case said(RoomMember, String)
        case gave(RoomMember, RoomGift)
        /// A notice of the server to the room.
        case noticed(String, at: Timestamp)
        /// The server removed the client that gets this event.
        case kicked(RoomRemoval)
        /// An event that the application defines, with its type. The server does not interpret it.
        case application(UInt16, ByteBuffer)
    }

    package let room: RoomName
    package let content: Content
    /// The account that caused the event; nil for the server and for clients without an account.
    package let sender: UserID?
    /// A notice's place in the sequence of the room's notices; nil if notices are not numbered, and for other events.
    package let place: TopicNumbers.Place?

    package init(_ content: Content, in room: RoomName, sender: UserID? = nil, place: TopicNumbers.Place? = nil) {
        self.room = room
        self.content = content
        self.sender = sender
        self.place = place
    }
}

extension RoomEvent {
    /// The kind of an event, without its details. The kind is sufficient to pass the event on.
    package enum Kind: Hashable, Sendable {
        case joined
        case left
        case said
        case gave
        case noticed
        case kicked
        /// An event that the application defines, with its type. The type may be any number: in some protocols, the
        /// numbers below 16 also belong to the application. If a client of such a protocol uses the ``number`` of a
        /// server's event, the event still counts as an application's event.
        case application(UInt16)

        /// The lowest type that belongs to the application in every protocol.
        package static let firstApplicationType: UInt16 = 16

        /// Creates the kind with a number.
        ///
        /// - Returns: nil for a number below 16 that has no meaning.
        package init?(number: UInt16) {
            switch number {
            case 0: self = .joined
            case 1: self = .left
            case 2: self = .said
            case 3: self = .gave
            case 4: self = .noticed
            case 5: self = .kicked
            case Self.firstApplicationType...: self = .application(number)
            default: return nil
            }
        }

        /// The number by which subscribers of the room's topic recognize the kind. The number never changes.
        package var number: UInt16 {
            switch self {
            case .joined: 0
            case .left: 1
            case .said: 2
            case .gave: 3
            case .noticed: 4
            case .kicked: 5
            case .application(let type): type
            }
        }

        /// Whether only the server may publish events of this kind.
        package var isServers: Bool {
            switch self {
            case .noticed, .kicked: true
            case .joined, .left, .said, .gave, .application: false
            }
        }

        /// Whether this is an application's event whose type equals the ``number`` of a server's event.
        package var looksLikeServers: Bool {
            guard case .application(let type) = self else { return false }
            return Kind(number: type)?.isServers ?? false
        }

        /// The class that decides which events are dropped first for a member that does not read fast enough.
        package var dropClass: Publication.DropClass {
            switch self {
            case .said: .text
            case .joined, .left: .presence
            // Like gifts, an application's events may be worth money.
            case .gave, .application: .gift
            case .noticed, .kicked: .control
            }
        }
    }
}

extension RoomEvent.Content {
    package var kind: RoomEvent.Kind {
        switch self {
        case .joined: .joined
        case .left: .left
        case .said: .said
        case .gave: .gave
        case .noticed: .noticed
        case .kicked: .kicked
        case .application(let type, _): .application(type)
        }
    }

    /// The member that caused the event, as the other members see it; nil for events of the server and of the
    /// application.
    package var member: RoomMember? {
        switch self {
        case .joined(let member), .left(let member), .said(let member, _), .gave(let member, _): member
        case .noticed, .kicked, .application: nil
        }
    }

    /// Checks an event that a client asks the server to publish.
    ///
    /// - Throws: `.tooLarge`; `.invalidArgument` if an application's event has a type below
    ///   ``RoomEvent/Kind/firstApplicationType``.
    package func check() throws(HermesError) {
        switch self {
        case .joined(let member), .left(let member):
            try member.check()
        case .said(_, let text), .noticed(let text, _):
            try RoomLimits.check(text: text)
        case .gave(_, let gift):
            guard gift.name.utf8.count <= RoomLimits.maxNameBytes, gift.url.utf8.count <= RoomLimits.maxURLBytes else {
                throw HermesError(.tooLarge, "a gift's name has at most 256 bytes, and its url at most 1,024 bytes")
            }
        case .application(let type, let data):
            guard type >= RoomEvent.Kind.firstApplicationType else { throw Self.badApplicationEvent }
            guard data.readableBytes <= RoomLimits.maxApplicationBytes else {
                throw Self.tooLongApplicationEvent
            }
        case .kicked:
            break
        }
    }

    /// The error for an application's event whose type is reserved or too large.
    package static var badApplicationEvent: HermesError {
        HermesError(.invalidArgument, "custom.type must be 16 to 65,535")
    }

    /// The error for an application's event with too much data.
    package static var tooLongApplicationEvent: HermesError {
        HermesError(.tooLarge, "custom.data is at most 64 KiB")
    }
}
