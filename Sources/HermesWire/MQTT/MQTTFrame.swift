// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// A control packet as cut from the stream: the first byte, and the unparsed bytes after the fixed header.
package struct MQTTFrame: WireFrame {
    /// The first byte: the type in the upper four bits, and the flags in the lower four.
    package let header: UInt8
    /// The bytes after the fixed header: a slice of the read buffer.
    package var body: ByteBuffer

    package init(header: UInt8, body: ByteBuffer) {
        self.header = header
        self.body = body
    }

    /// The packet's type; nil for the number 0, which is forbidden.
    package var type: MQTTPacketType? { MQTTPacketType(rawValue: header >> 4) }
    /// The lower four bits of the first byte.
    package var flags: UInt8 { header & 0x0F }

    package var encodedBytes: Int {
        1 + MQTTVariableByteInteger.encodedBytes(body.readableBytes) + body.readableBytes
    }

    /// Returns the size in bytes of the packet at the start of the given bytes; nil if its length field is incomplete
    /// or malformed.
    package static func encodedBytes(atStartOf bytes: ByteBuffer) -> Int? {
        let length = MQTTVariableByteInteger.peek(bytes, at: bytes.readerIndex + 1)
        guard case .value(let length, let prefix) = length else { return nil }
        return 1 + prefix + length
    }

    package func write(into buffer: inout ByteBuffer) throws(WireError) {
        guard body.readableBytes <= MQTTVariableByteInteger.max else {
            throw .frameTooLong(body.readableBytes, limit: MQTTVariableByteInteger.max)
        }
        buffer.reserveCapacity(minimumWritableBytes: 5 + body.readableBytes)
        buffer.writeInteger(header)
        MQTTVariableByteInteger.write(body.readableBytes, into: &buffer)
        buffer.writeImmutableBuffer(body)
    }
}
