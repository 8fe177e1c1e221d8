// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

/// An event that matters only when it happens. It arrives only if the client is connected, and neither the server nor
/// the client stores it.
///
/// ```swift
/// for await event in client.ephemeralEvents {
///     if case .typing(let uid, in: _, let isTyping) = event.kind { showPencil(uid, isTyping) }
/// }
/// ```
public struct EphemeralEvent: Hashable, Sendable {
    /// A kind of event, with its values. Newer versions add kinds, so a `switch` over them needs a `default`.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Kind: Hashable, Sendable {
        /// A user is typing in a conversation, or has stopped typing.
        case typing(UserID, in: Conversation, isTyping: Bool)
        /// A watched account came online or went offline.
        case presence(Presence)
        /// An event in a room that the client has entered.
        case room(RoomEvent)
        /// The pushes with these numbers did not arrive and cannot be fetched. The topic of a room is "room/NAME".
        case missedPushes(topic: String, numbers: ClosedRange<UInt64>)
        /// Data that another account sent to set up a peer-to-peer link or a call. If the data is nil, the other
        /// account has ended the link or call.
        case signal(from: UserID, sessionID: String, data: [UInt8]?)
        /// A notice from the server's operator.
        case notice(String)
    }

    /// The kind of event, with its values.
    public let kind: Kind

    package init(_ kind: Kind) { self.kind = kind }

    /// The room event; nil if the event is of another kind.
    public var room: RoomEvent? { if case .room(let event) = kind { event } else { nil } }
}

extension EphemeralEvent {
    init?(_ event: Hermes_V1_Ephemeral) {
        switch event.event {
        case .typing(let typing):
            let uid = UserID(rawValue: typing.uid)
            self.init(.typing(uid, in: Conversation(typing.conversation), isTyping: !typing.stopped))
        case .presence(let presence):
            self.init(.presence(Presence(presence)))
        case .room(let room):
            guard let event = RoomEvent(room) else { return nil }
            self.init(.room(event))
        case .signal(let signal):
            let data: [UInt8]?
            switch signal.signal.signal {
            case .data(let bytes): data = [UInt8](bytes)
            case .end: data = nil
            case .address, nil: return nil
            }
            let uid = UserID(rawValue: signal.fromUid)
            self.init(.signal(from: uid, sessionID: signal.signal.sessionID, data: data))
        case nil:
            return nil
        }
    }
}
