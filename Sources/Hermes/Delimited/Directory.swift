// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An account as others may see it.
public struct Account: Hashable, Sendable {
    /// The account's number.
    public var uid: UInt32
    /// The account's name.
    public var nickName: String
    /// The URL of the account's picture; may be empty.
    public var avatarURL: String
    /// Whether one of the account's devices is connected.
    public var isOnline: Bool

    package init(uid: UInt32, nickName: String, avatarURL: String, isOnline: Bool) {
        self.uid = uid
        self.nickName = nickName
        self.avatarURL = avatarURL
        self.isOnline = isOnline
    }
}

/// A device of the caller's account.
public struct Device: Hashable, Sendable {
    /// The device's id.
    public var id: String
    /// The device's name for people.
    public var name: String
    /// The platform, for example "iOS 18.2".
    public var platform: String
    /// Whether the device is connected.
    public var isOnline: Bool
    /// The last time at which the device was connected, in milliseconds since 1970.
    public var lastSeenMilliseconds: Int64
    /// Whether it is the device that asks.
    public var isCurrent: Bool
}

/// Whether an account is online.
public struct Presence: Hashable, Sendable {
    /// The account.
    public var uid: UInt32
    /// Whether one of its devices is connected.
    public var isOnline: Bool
    /// When the last device disconnected, in milliseconds since 1970; 0 while online or if unknown.
    public var lastSeenMilliseconds: Int64
}
