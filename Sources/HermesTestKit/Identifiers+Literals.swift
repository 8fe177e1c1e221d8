// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes

// In tests, an integer literal can be the id of an account or a group, and a string literal the id of a message.
extension UserID: ExpressibleByIntegerLiteral {
    /// Creates the id from a literal.
    public init(integerLiteral value: UInt32) { self.init(rawValue: value) }
}

extension GroupID: ExpressibleByIntegerLiteral {
    /// Creates the id from a literal.
    public init(integerLiteral value: UInt32) { self.init(rawValue: value) }
}

extension MessageID: ExpressibleByStringLiteral {
    /// Creates the id from a literal.
    public init(stringLiteral value: String) { self.init(rawValue: value) }
}
