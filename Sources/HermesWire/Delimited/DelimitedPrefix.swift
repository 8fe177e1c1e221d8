// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The length before a Delimited frame: a base-128 varint, least significant group first, of at most five bytes.
package enum DelimitedPrefix {
    /// The longest prefix in bytes.
    package static let maxBytes = 5

    /// Returns the encoded size of a length: one byte for each 7 bits.
    package static func encodedBytes(_ length: UInt32) -> Int {
        max(1, (UInt32.bitWidth - length.leadingZeroBitCount + 6) / 7)
    }

    /// Appends a length, and reserves room for the body.
    ///
    /// - Throws: WireError `.frameTooLong` if it is 4 GiB or more; then nothing was written.
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

    /// Reads a length, without moving the buffer.
    ///
    /// - Returns: the length (up to 35 bits) and how many bytes it takes; nil if more bytes are needed.
    /// - Throws: WireError `.badLength` if it takes more than five bytes.
    package static func peek(_ buffer: ByteBuffer) throws(WireError) -> (length: UInt64, prefixBytes: Int)? {
        var length: UInt64 = 0
        for index in 0..<maxBytes {
            guard let byte = buffer.getInteger(at: buffer.readerIndex + index, as: UInt8.self) else { return nil }
            length |= UInt64(byte & 0x7F) << (7 * UInt64(index))
            if byte < 0x80 { return (length, index + 1) }
        }
        throw WireError(.badLength, "the length before a frame takes more than \(maxBytes) bytes")
    }
}
