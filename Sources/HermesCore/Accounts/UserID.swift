// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The number of an account, from 1 to 2³¹−1, because IMPB carries the number as int32. A number is never reused.
public struct UserID: RawRepresentable, Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The number.
    public let rawValue: Int32

    /// - Returns: nil for 0 and below.
    public init?(rawValue: Int32) {
        guard rawValue > 0 else { return nil }
        self.rawValue = rawValue
    }

    /// - Returns: nil for values outside 1 … 2³¹−1.
    package init?(_ value: some BinaryInteger) {
        guard let rawValue = Int32(exactly: value) else { return nil }
        self.init(rawValue: rawValue)
    }

    /// The number in decimal.
    public var description: String { String(rawValue) }

    /// Compares the numbers.
    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
