// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Writes the server's WebSocket frames. They are not masked, and each message is one frame.
package enum WebSocketOutput {
    /// The longest header of a frame, in bytes.
    package static let maxHeaderBytes = 10

    /// Appends the header of a message; the caller appends the payload.
    package static func writeHeader(of length: Int, isText: Bool = false, into bytes: inout ByteBuffer) {
        writeHeader(isText ? 0x81 : 0x82, length, into: &bytes)
    }

    /// Appends the answer to a ping.
    package static func writePong(_ payload: ByteBuffer, into bytes: inout ByteBuffer) {
        writeHeader(0x8A, payload.readableBytes, into: &bytes)
        bytes.writeImmutableBuffer(payload)
    }

    /// Appends a close frame.
    package static func writeClose(_ code: UInt16, into bytes: inout ByteBuffer) {
        writeHeader(0x88, 2, into: &bytes)
        bytes.writeInteger(code)
    }

    private static func writeHeader(_ first: UInt8, _ length: Int, into bytes: inout ByteBuffer) {
        bytes.writeInteger(first)
        switch length {
        case ...125: bytes.writeInteger(UInt8(truncatingIfNeeded: length))
        case 126...65_535:
            bytes.writeInteger(UInt8(126))
            bytes.writeInteger(UInt16(truncatingIfNeeded: length))
        default:
            bytes.writeInteger(UInt8(127))
            bytes.writeInteger(UInt64(length))
        }
    }
}
