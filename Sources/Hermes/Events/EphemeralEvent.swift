// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An event that matters only now: it arrives if the client is connected, and nobody keeps it.
///
/// ```swift
/// for await event in client.ephemeralEvents {
///     if let typing = event.typing { showPencil(typing.uid, typing.isTyping) }
/// }
/// ```
///
/// The value that belongs to the kind is set; all others are nil.
public struct EphemeralEvent: Hashable, Sendable {
    /// A kind of event. Newer versions add kinds, so a `switch` over them needs a `default`.
    public struct Kind: Hashable, Sendable, CustomStringConvertible {
        /// The kind's name, for logs.
        public let description: String

        /// A user is typing, or stopped: ``EphemeralEvent/typing``.
        public static let typing = Kind(description: "typing")
        /// A watched account came online or went offline: ``EphemeralEvent/presence``.
        public static let presence = Kind(description: "presence")
        /// An event in a room that the client has entered: ``EphemeralEvent/room``.
        public static let room = Kind(description: "room")
        /// Pushes to a topic or a room did not arrive: ``EphemeralEvent/missedPushes``.
        public static let missedPushes = Kind(description: "missedPushes")
        /// Set-up data for a peer-to-peer link or a call: ``EphemeralEvent/signal``.
        public static let signal = Kind(description: "signal")
        /// A notice from the server's operator: ``EphemeralEvent/notice``.
        public static let notice = Kind(description: "notice")
    }

    package enum Body: Hashable, Sendable {
        case typing(Typing)
        case presence(Presence)
        case room(RoomEvent)
        case missedPushes(MissedPushes)
        case signal(Signal)
        case notice(String)
    }

    package let body: Body

    package init(_ body: Body) { self.body = body }

    /// The kind of event.
    public var kind: Kind {
        switch body {
        case .typing: .typing
        case .presence: .presence
        case .room: .room
        case .missedPushes: .missedPushes
        case .signal: .signal
        case .notice: .notice
        }
    }

    /// Who is typing where.
    public var typing: Typing? { if case .typing(let typing) = body { typing } else { nil } }
    /// Who came online or went offline.
    public var presence: Presence? { if case .presence(let presence) = body { presence } else { nil } }
    /// The event in a room.
    public var room: RoomEvent? { if case .room(let event) = body { event } else { nil } }
    /// The pushes that did not arrive.
    public var missedPushes: MissedPushes? { if case .missedPushes(let missed) = body { missed } else { nil } }
    /// The set-up data.
    public var signal: Signal? { if case .signal(let signal) = body { signal } else { nil } }
    /// The notice's text.
    public var notice: String? { if case .notice(let text) = body { text } else { nil } }
}

/// A user is typing, or stopped.
public struct Typing: Hashable, Sendable {
    /// The conversation.
    public let conversation: Conversation
    /// The user.
    public let uid: UserID
    /// Whether the user is typing; false: stopped.
    public let isTyping: Bool
}

/// Pushes that did not arrive and cannot be fetched.
public struct MissedPushes: Hashable, Sendable {
    /// The topic; a room is the topic "room/NAME".
    public let topic: String
    /// The numbers of the pushes.
    public let numbers: ClosedRange<UInt64>
}

/// Set-up data for a peer-to-peer link or a call.
public struct Signal: Hashable, Sendable {
    /// The other account.
    public let fromUID: UserID
    /// The id of the link or call.
    public let sessionID: String
    /// The data; nil: the other end is done.
    public let data: [UInt8]?
}
