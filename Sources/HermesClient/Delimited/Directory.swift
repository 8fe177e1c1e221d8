// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An account as others may see it.
public struct Account: Hashable, Sendable {
    /// The account's number.
    public var uid: UInt32
    /// The account's name.
    public var nickName: String
    /// May be empty.
    public var avatarURL: String
    /// Whether one of its devices is connected.
    public var isOnline: Bool
}

/// A device of one's own account.
public struct Device: Hashable, Sendable {
    /// What the device calls itself.
    public var id: String
    /// For people.
    public var name: String
    /// For example "iOS 18.2".
    public var platform: String
    /// Whether it is connected.
    public var isOnline: Bool
    /// In milliseconds since 1970.
    public var lastSeenMilliseconds: Int64
    /// Whether it is this one.
    public var isCurrent: Bool
}

/// Whether somebody is there.
public struct Presence: Hashable, Sendable {
    /// Whose.
    public var uid: UInt32
    /// Whether a device is connected.
    public var isOnline: Bool
    /// When the last device went away, in milliseconds since 1970; 0 while online or if unknown.
    public var lastSeenMilliseconds: Int64
}
