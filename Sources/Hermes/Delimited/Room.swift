// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A user as the others in a room see it.
public struct RoomUser: Hashable, Sendable {
    /// The application's own ranking.
    public var level: Int32
    /// The name that the others see.
    public var name: String
    /// The URL of the user's picture; may be empty.
    public var iconURL: String

    /// Creates a user.
    public init(name: String, level: Int32 = 1, iconURL: String = "") {
        self.name = name
        self.level = level
        self.iconURL = iconURL
    }
}

/// An event in a room.
public struct RoomEvent: Hashable, Sendable {
    /// The kind of event.
    public enum Kind: Hashable, Sendable {
        /// The user joined.
        case joined
        /// The user left.
        case left
        /// The user said this.
        case text(String)
        /// The user gave this gift.
        case gift(name: String, count: Int32, url: String)
        /// The application's own: a LiveRoom frame type from 16 on, and its bytes.
        case custom(type: UInt16, data: [UInt8])
        /// A notice from the server to everyone.
        case notice(String)
        /// The server removed this connection from the room.
        case kicked(reason: String)
    }

    /// The room; empty where the protocol does not name it.
    public var room: String
    /// The user that the event is about; nil in notices.
    public var user: RoomUser?
    /// The account of an authenticated sender; otherwise 0.
    public var uid: UInt32
    /// The kind of event.
    public var kind: Kind

    /// Creates an event.
    public init(room: String, user: RoomUser?, uid: UInt32 = 0, kind: Kind) {
        self.room = room
        self.user = user
        self.uid = uid
        self.kind = kind
    }
}
