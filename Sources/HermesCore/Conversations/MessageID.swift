// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The id of a message: 16 bytes, sortable by time and unguessable.
///
/// An id has 48 bits for the time in milliseconds, 16 bits for a count within the millisecond, and 64 random bits. The
/// count begins at a random number. The text of an id has 26 characters of Crockford's base 32, like a ULID.
public struct MessageID: Sendable, Hashable, Comparable, CustomStringConvertible {
    package let high: UInt64
    package let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Creates an id from its 16 bytes.
    ///
    /// - Returns: nil if there are not exactly 16 bytes.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads the text form, in upper or lower case.
    ///
    /// - Returns: nil for any other length or character, and for more than 128 bits.
    package init?(_ text: some StringProtocol) {
        guard text.utf8.count == 26 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for (position, byte) in text.utf8.enumerated() {
            guard let digit = Self.digit(of: byte) else { return nil }
            if position == 0 && digit > 7 { return nil }
            high = high << 5 | low >> 59
            low = low << 5 | digit
        }
        self.init(high: high, low: low)
    }

    /// The 16 bytes, with the most significant byte first.
    package var bytes: [UInt8] {
        [high, low].flatMap { word in
            stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) }
        }
    }

    /// The time at which the id was created, if the clock was right at that time.
    package var timestamp: Timestamp { Timestamp(rawValue: Int64(high >> 16)) }

    /// The text form, of 26 characters.
    public var description: String {
        String(unsafeUninitializedCapacity: 26) { text in
            var high = high
            var low = low
            for position in stride(from: 25, through: 0, by: -1) {
                text[position] = Self.alphabet[Int(low & 31)]
                low = low >> 5 | high << 59
                high >>= 5
            }
            return 26
        }
    }

    /// Compares the numbers.
    public static func < (left: Self, right: Self) -> Bool { (left.high, left.low) < (right.high, right.low) }

    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    private static func digit(of byte: UInt8) -> UInt64? {
        let upper = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") ? byte - 32 : byte
        return alphabet.firstIndex(of: upper).map(UInt64.init)
    }
}

/// Generates ascending message ids. They ascend even within one millisecond, and even if the clock goes back.
package struct MessageIDGenerator: Sendable {
    private var last = MessageID(high: 0, low: 0)
    private var random = SystemRandomNumberGenerator()

    package init() {}

    /// Returns the next id.
    package mutating func next(now: Timestamp) -> MessageID {
        let milliseconds = UInt64(max(0, now.rawValue)) & 0xFFFF_FFFF_FFFF
        // No two ids have the same upper half, so a store can use upper halves as keys. The count of the first id in a
        // millisecond begins at a random number, and the next ids count up from there. A millisecond has room for at
        // least 32,768 ids; further ids take the numbers of the next millisecond.
        let isLater = milliseconds > last.high >> 16
        let high = isLater ? milliseconds << 16 | random.next() & 0x7FFF : last.high &+ 1
        last = MessageID(high: high, low: random.next())
        return last
    }
}
