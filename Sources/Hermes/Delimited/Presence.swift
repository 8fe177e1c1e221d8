// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The online status of an account.
public struct Presence: Hashable, Sendable {
    /// The account.
    public var uid: UserID
    /// Whether one of the account's devices is connected.
    public var isOnline: Bool
    /// The time at which the account's last device disconnected; nil if the account is online or the time is unknown.
    public var lastSeen: Date?
}
