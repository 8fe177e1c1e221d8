// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// MQTT's variable byte integers: base 128, least significant group first, at most four bytes (1.5.5).
package enum MQTTVariableByteInteger {
    /// The largest value: 268,435,455.
    package static let max = 268_435_455

    /// Returns the encoded size of a value of 0 … ``max``, in bytes.
    package static func encodedBytes(_ value: Int) -> Int {
        switch value {
        case ..<128: 1
        case ..<16_384: 2
        case ..<2_097_152: 3
        default: 4
        }
    }

    /// Whether a packet's fixed header has the fewest bytes that its remaining length needs [MQTT-1.5.5-1].
    static func isShortest(headerBytes: Int, remainingLength: Int) -> Bool {
        headerBytes == 1 + encodedBytes(remainingLength)
    }

    /// Appends a value of 0 … ``max``, in the fewest bytes [MQTT-1.5.5-1].
    package static func write(_ value: Int, into buffer: inout ByteBuffer) {
        assert((0...max).contains(value), "callers check the length")
        var rest = value
        while rest >= 0x80 {
            buffer.writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        buffer.writeInteger(UInt8(truncatingIfNeeded: rest))
    }

    /// The result of reading an integer at an index.
    enum Peeked: Hashable {
        /// More bytes are needed.
        case incomplete
        /// The integer is longer than four bytes.
        case malformed
        /// The value and its encoded size.
        case value(Int, bytes: Int)
    }

    /// Reads an integer without moving the buffer's reader index.
    static func peek(_ buffer: ByteBuffer, at index: Int) -> Peeked {
        var value = 0
        for position in 0..<4 {
            guard let byte = buffer.getInteger(at: index + position, as: UInt8.self) else { return .incomplete }
            value |= Int(byte & 0x7F) << (7 * position)
            if byte < 0x80 { return .value(value, bytes: position + 1) }
        }
        return .malformed
    }
}
