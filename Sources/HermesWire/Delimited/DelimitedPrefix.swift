// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The length before a Delimited frame: a base-128 varint, least significant group first, of at most five bytes.
///
/// Five bytes have room for 35 bits, three more than a length needs. Between ``WebSocketPackets`` and the decoder,
/// these extra bits mark the pieces of a text message. No client can send them: a binary message with such a prefix is
/// refused.
package enum DelimitedPrefix {
    /// The longest prefix in bytes.
    package static let maxBytes = 5
    /// The bit that marks a piece of a text message.
    static let text: UInt64 = 1 << 32
    /// The bit that marks a piece of a text message if another piece follows.
    static let more: UInt64 = 1 << 33

    /// Returns the encoded size of a length: one byte for each 7 bits.
    package static func encodedBytes(_ length: UInt32) -> Int {
        max(1, (UInt32.bitWidth - length.leadingZeroBitCount + 6) / 7)
    }

    /// Appends the length of a body, and reserves room for the body.
    ///
    /// - Throws: WireError `.frameTooLong` if the body takes 4 GiB or more. If the function throws, it writes nothing.
    package static func write(_ bodyBytes: Int, into buffer: inout ByteBuffer) throws(WireError) {
        guard var rest = UInt32(exactly: bodyBytes) else {
            throw .frameTooLong(bodyBytes, limit: Int(clamping: UInt32.max))
        }
        buffer.reserveCapacity(minimumWritableBytes: maxBytes + bodyBytes)
        while rest >= 0x80 {
            buffer.writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        buffer.writeInteger(UInt8(truncatingIfNeeded: rest))
    }

    /// Appends the prefix of a piece of a text message.
    static func writeText(_ bytes: UInt32, isLast: Bool, into buffer: inout ByteBuffer) {
        var rest = UInt64(bytes) | text | (isLast ? 0 : more)
        for _ in 1..<maxBytes {
            buffer.writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        buffer.writeInteger(UInt8(truncatingIfNeeded: rest))
    }

    /// Reads a prefix without moving the buffer's reader index.
    ///
    /// - Parameter offset: the distance of the prefix from the reader index, in bytes.
    /// - Returns: the length with the extra bits (35 bits together), and the size of the prefix in bytes; nil if more
    ///   bytes are needed.
    /// - Throws: WireError `.badLength` if the prefix takes more than five bytes.
    package static func peek(
        _ buffer: ByteBuffer,
        at offset: Int = 0
    ) throws(WireError) -> (length: UInt64, prefixBytes: Int)? {
        var length: UInt64 = 0
        let start = buffer.readerIndex + offset
        for index in 0..<maxBytes {
            guard let byte = buffer.getInteger(at: start + index, as: UInt8.self) else { return nil }
            length |= UInt64(byte & 0x7F) << (7 * UInt64(index))
            if byte < 0x80 { return (length, index + 1) }
        }
        throw WireError(.badLength, "the length before a frame takes more than \(maxBytes) bytes")
    }
}
