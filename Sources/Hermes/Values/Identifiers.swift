// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An account's number, 1 to 2^31 - 1.
public struct UserID: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible {
    /// The number.
    public var rawValue: UInt32

    /// Wraps a number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The number in decimal.
    public var description: String { String(rawValue) }
}

/// A group's number.
public struct GroupID: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible {
    /// The number.
    public var rawValue: UInt32

    /// Wraps a number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The number in decimal.
    public var description: String { String(rawValue) }
}

/// The id that the server gave to a message: 26 characters, sortable by time.
public struct MessageID: RawRepresentable, Hashable, Codable, Sendable, CustomStringConvertible {
    /// The text.
    public var rawValue: String

    /// Wraps a text.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The text.
    public var description: String { rawValue }
}
