// Hermes
// SPDX-License-Identifier: Apache-2.0

public import Hermes

// In tests a number in the source is an account or a group, and a text is a message.
extension UserID: ExpressibleByIntegerLiteral {
    /// Wraps a number in the source.
    public init(integerLiteral value: UInt32) { self.init(rawValue: value) }
}

extension GroupID: ExpressibleByIntegerLiteral {
    /// Wraps a number in the source.
    public init(integerLiteral value: UInt32) { self.init(rawValue: value) }
}

extension MessageID: ExpressibleByStringLiteral {
    /// Wraps a text in the source.
    public init(stringLiteral value: String) { self.init(rawValue: value) }
}
