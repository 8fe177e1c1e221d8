// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The key of a session: the same client id of two owners is two sessions. Client ids are compared byte by byte.
public struct SessionKey: Hashable, Sendable {
    package let owner: SessionOwner
    package let clientID: String

    package init(owner: SessionOwner, clientID: String) {
        self.owner = owner
        self.clientID = clientID
    }

    public static func == (left: Self, right: Self) -> Bool {
        left.owner == right.owner && left.clientID.hasBytes(of: right.clientID)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(owner)
        clientID.hashBytes(into: &hasher)
    }
}

/// The store's number of a durable session; never reused.
public struct DurableSessionID: RawRepresentable, Hashable, Comparable, Sendable {
    public let rawValue: Int64

    public init(rawValue: Int64) { self.rawValue = rawValue }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
