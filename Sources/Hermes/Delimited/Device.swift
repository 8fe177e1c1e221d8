// Hermes
// SPDX-License-Identifier: Apache-2.0

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A device of the caller's account.
public struct Device: Hashable, Sendable {
    /// The device's id.
    public var id: String
    /// The device's display name.
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
