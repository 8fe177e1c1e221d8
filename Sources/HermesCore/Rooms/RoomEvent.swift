// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Something that happened in a room, in no protocol's words.
///
/// Rooms are live: an event is published to the room's topic (``TopicName/init(room:)``), reaches those who are there,
/// and is forgotten. Each gateway writes events in its own protocol, once per encoding and publication, and turns its
/// clients' frames into events. So no gateway has to know another's frames. A publication carries an event as its kind
/// and a payload (``RoomPayloads``); the bytes of a publisher whose protocol has that form are passed on unchanged, and
/// nothing is parsed for subscribers of the same form.
package struct RoomEvent: Hashable, Sendable {
    /// The content of an event.
    package enum Content: Hashable, Sendable {
        case joined(RoomMember)
        case left(RoomMember)
        case said(RoomMember, String)
        case gave(RoomMember, RoomGift)
        /// The server tells the room something.
        case noticed(String, at: Timestamp)
        /// The server removed the client that this is sent to.
        case kicked(RoomRemoval)
        /// The application's own, with its type; the server does not look into it.
        case application(UInt16, ByteBuffer)
    }

    package let room: RoomName
    package let content: Content
    /// The account that caused it; nil for the server and for clients without an account.
    package let sender: UserID?
    /// A notice's place in the sequence of the room's notices; nil if they are not numbered, and for other events.
    package let place: TopicNumbers.Place?

    package init(_ content: Content, in room: RoomName, sender: UserID? = nil, place: TopicNumbers.Place? = nil) {
        self.room = room
        self.content = content
        self.sender = sender
        self.place = place
    }
}

extension RoomEvent {
    /// The kind of an event, without its details: enough to pass the event on.
    package enum Kind: Hashable, Sendable {
        case joined
        case left
        case said
        case gave
        case noticed
        case kicked
        /// The application's own type. It may be any number: a client of a protocol in which the lower ones are the
        /// application's, too, may use one of ``number``'s, and does not become the server by that.
        case application(UInt16)

        /// The lowest type that is the application's in every protocol.
        package static let firstApplicationType: UInt16 = 16

        /// The kind with a number.
        ///
        /// - Returns: nil for numbers below 16 without a meaning.
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

        /// The number under which subscribers of the room's topic are told the kind; it never changes.
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

        /// Whether only the server does this.
        package var isServers: Bool {
            switch self {
            case .noticed, .kicked: true
            case .joined, .left, .said, .gave, .application: false
            }
        }

        /// Whether it is a client's event with a number that belongs to the server elsewhere.
        package var looksLikeServers: Bool {
            guard case .application(let type) = self else { return false }
            return Kind(number: type)?.isServers ?? false
        }

        /// The order in which events are dropped for a member that does not read fast enough.
        package var dropClass: Publication.DropClass {
            switch self {
            case .said: .text
            case .joined, .left: .presence
            // The application's own may be worth money.
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

    /// The member that caused the event, as the others see it; nil for events of the server and of the application.
    package var member: RoomMember? {
        switch self {
        case .joined(let member), .left(let member), .said(let member, _), .gave(let member, _): member
        case .noticed, .kicked, .application: nil
        }
    }

    /// Checks an event that a client asks the server to publish.
    ///
    /// - Throws: `.tooLarge`; `.invalidArgument` if an application's own event has a type that is not its own, or too
    ///   many bytes.
    package func check() throws(HermesError) {
        switch self {
        case .joined(let member), .left(let member):
            try member.check()
        case .said(_, let text), .noticed(let text, _):
            try RoomLimits.check(text: text)
        case .gave(_, let gift):
            guard gift.name.utf8.count <= RoomLimits.maxNameBytes, gift.url.utf8.count <= RoomLimits.maxURLBytes else {
                throw HermesError(.tooLarge, "a gift's name is at most 256 bytes, its url 1,024")
            }
        case .application(let type, let data):
            guard type >= RoomEvent.Kind.firstApplicationType, data.readableBytes <= RoomLimits.maxApplicationBytes
            else { throw Self.badApplicationEvent }
        case .kicked:
            break
        }
    }

    /// The error for an application's own event that cannot be published.
    package static var badApplicationEvent: HermesError {
        HermesError(.invalidArgument, "custom.type is 16 to 65,535, its data at most 64 KiB")
    }
}
