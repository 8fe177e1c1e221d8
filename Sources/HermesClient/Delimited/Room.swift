// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How one appears to the others in a room.
public struct RoomUser: Hashable, Sendable {
    /// The application's own ranking.
    public var level: Int32
    /// The name shown.
    public var name: String
    /// May be empty.
    public var iconURL: String

    /// Creates a user.
    public init(name: String, level: Int32 = 1, iconURL: String = "") {
        self.name = name
        self.level = level
        self.iconURL = iconURL
    }
}

/// Something happened in a room.
public struct RoomEvent: Hashable, Sendable {
    /// What happened.
    public enum Kind: Hashable, Sendable {
        /// Somebody came.
        case joined
        /// Somebody left.
        case left
        /// Somebody said this.
        case text(String)
        /// Somebody gave this.
        case gift(name: String, count: Int32, url: String)
        /// The application's own: a LiveRoom frame type from 16 on, and its bytes.
        case custom(type: UInt16, data: [UInt8])
        /// A text of the server to all.
        case notice(String)
        /// This connection was removed from the room, because of this.
        case kicked(reason: String)
    }

    /// The room; empty where the protocol does not tell.
    public var room: String
    /// Whom it is about; nil in notices.
    public var user: RoomUser?
    /// The account, where the sender is authenticated; otherwise 0.
    public var uid: UInt32
    /// What happened.
    public var kind: Kind

    /// Creates an event.
    public init(room: String, user: RoomUser?, uid: UInt32 = 0, kind: Kind) {
        self.room = room
        self.user = user
        self.uid = uid
        self.kind = kind
    }
}
