// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The key of a session: its owner and its client id. If two owners use the same client id, they have two sessions.
/// Client ids are compared byte by byte.
public struct SessionKey: Hashable, Sendable {
    package let owner: SessionOwner
    package let clientID: String

    package init(owner: SessionOwner, clientID: String) {
        self.owner = owner
        self.clientID = clientID
    }

    /// The number by which a client's own publications are recognized, for the option "no local". It is the same for
    /// all connections of the client to this process, and never 0.
    package var publisher: UInt64 { max(1, UInt64(bitPattern: Int64(hashValue))) }

    /// Compares the owners, and the client ids byte by byte.
    public static func == (left: Self, right: Self) -> Bool {
        left.owner == right.owner && left.clientID.hasBytes(of: right.clientID)
    }

    /// Hashes the owner and the bytes of the client id.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(owner)
        clientID.hashBytes(into: &hasher)
    }
}

/// The number that the store gives to a durable session and never reuses. A session that is not stored has a negative
/// number.
public struct DurableSessionID: RawRepresentable, Hashable, Comparable, Sendable {
    /// The number.
    public let rawValue: Int64

    /// Creates an id from a number.
    public init(rawValue: Int64) { self.rawValue = rawValue }

    /// Compares the numbers.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
