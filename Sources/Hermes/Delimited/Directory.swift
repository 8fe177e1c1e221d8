// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// An account as others may see it.
public struct Account: Hashable, Sendable {
    /// The account's number.
    public var uid: UserID
    /// The account's name.
    public var nickName: String
    /// The account's picture; nil if it has none.
    public var avatarURL: URL?
    /// Whether one of the account's devices is connected.
    public var isOnline: Bool

    package init(uid: UserID, nickName: String, avatarURL: URL?, isOnline: Bool) {
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
    /// The last time at which the device was connected.
    public var lastSeen: Date
    /// Whether this is the device that sent the request.
    public var isCurrent: Bool
}

/// The online status of an account.
public struct Presence: Hashable, Sendable {
    /// The account.
    public var uid: UserID
    /// Whether one of its devices is connected.
    public var isOnline: Bool
    /// The time at which the account's last device disconnected; nil if the account is online or the time is unknown.
    public var lastSeen: Date?
}
