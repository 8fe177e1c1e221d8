// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An event in a room.
public struct RoomEvent: Hashable, Sendable {
    /// A kind of event, with its values. Newer versions add kinds, so a `switch` over them needs a `default`.
    #if hasAttribute(nonexhaustive)
    @nonexhaustive
    #endif
    public enum Kind: Hashable, Sendable {
        /// The user joined.
        case joined
        /// The user left.
        case left
        /// The user sent this text.
        case text(String)
        /// The user sent this gift.
        case gift(name: String, count: Int, url: URL?)
        /// Content that the application defines: a LiveRoom frame type, usually 16 or above, and the bytes of the
        /// content.
        case custom(type: UInt16, data: [UInt8])
        /// A notice from the server to everyone in the room.
        case notice(String)
        /// The server removed this connection from the room, or did not let it enter the room again after a reconnect.
        case kicked(reason: String)
    }

    /// The room's name; empty if the protocol does not transmit it.
    public var room: String
    /// The user that the event is about; nil if there is none, as in notices.
    public var user: RoomUser?
    /// The account of an authenticated sender; otherwise nil.
    public var uid: UserID?
    /// The kind of event.
    public var kind: Kind

    package init(room: String, user: RoomUser?, uid: UserID? = nil, kind: Kind) {
        self.room = room
        self.user = user
        self.uid = uid
        self.kind = kind
    }
}

extension RoomEvent {
    /// The length of the event's texts and data, in bytes.
    package var textBytes: Int {
        let user = user.map { $0.name.utf8.count + ($0.iconURL?.absoluteString.utf8.count ?? 0) } ?? 0
        return switch kind {
        case .joined, .left: user
        case .text(let text), .notice(let text), .kicked(let text): user + text.utf8.count
        case .gift(let name, _, let url): user + name.utf8.count + (url?.absoluteString.utf8.count ?? 0)
        case .custom(_, let data): user + data.count
        }
    }
}

extension RoomEvent {
    init?(_ event: Hermes_V1_RoomEvent) {
        let kind: Kind
        switch event.event {
        case .joined: kind = .joined
        case .left: kind = .left
        case .text(let text): kind = .text(text.text)
        case .gift(let gift): kind = .gift(name: gift.name, count: Int(gift.count), url: URL(wire: gift.url))
        case .custom(let custom):
            kind = .custom(type: UInt16(truncatingIfNeeded: custom.type), data: [UInt8](custom.data))
        case .notice(let notice): kind = .notice(notice.text)
        case .kicked(let kicked): kind = .kicked(reason: kicked.reason)
        case nil: return nil
        }
        self.init(
            room: event.room,
            user: event.hasUser ? RoomUser(event.user) : nil,
            uid: event.uid == 0 ? nil : UserID(rawValue: event.uid),
            kind: kind
        )
    }
}
