// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An account's number, 1 to 2^31 - 1. A number in the source is one: `account(id: 7)`.
public struct UserID: RawRepresentable, Hashable, Codable, Sendable, ExpressibleByIntegerLiteral,
    CustomStringConvertible
{
    /// The number.
    public var rawValue: UInt32

    /// Wraps a number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Wraps a number in the source.
    public init(integerLiteral value: UInt32) { rawValue = value }

    /// The number in decimal.
    public var description: String { String(rawValue) }
}

/// A group's number. A number in the source is one.
public struct GroupID: RawRepresentable, Hashable, Codable, Sendable, ExpressibleByIntegerLiteral,
    CustomStringConvertible
{
    /// The number.
    public var rawValue: UInt32

    /// Wraps a number.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Wraps a number in the source.
    public init(integerLiteral value: UInt32) { rawValue = value }

    /// The number in decimal.
    public var description: String { String(rawValue) }
}

/// The id that the server gave to a message: 26 characters, sortable by time. A text in the source is one.
public struct MessageID: RawRepresentable, Hashable, Codable, Sendable, ExpressibleByStringLiteral,
    CustomStringConvertible
{
    /// The text.
    public var rawValue: String

    /// Wraps a text.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Wraps a text in the source.
    public init(stringLiteral value: String) { rawValue = value }

    /// The text.
    public var description: String { rawValue }
}
