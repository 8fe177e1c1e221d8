// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// What a broker reads: the packets of which there are many in a form that costs nothing to make, the others as frames.
package enum MQTTInput: WireFrame {
    /// A PUBLISH, whole: the very bytes that came, header included, for those who pass them on.
    case publish(MQTTPublishFrame)
    /// A PUBACK, PUBREC, PUBREL or PUBCOMP without a reason code: it was successful.
    case acknowledgement(MQTTPacketType, packetID: UInt16)
    /// Any other packet.
    case other(MQTTFrame)

    package var encodedBytes: Int {
        switch self {
        case .publish(let frame): frame.bytes.readableBytes
        case .acknowledgement: 4
        case .other(let frame): frame.encodedBytes
        }
    }

    package func write(into buffer: inout ByteBuffer) throws(WireError) {
        switch self {
        case .publish(let frame):
            buffer.writeImmutableBuffer(frame.bytes)
        case .acknowledgement(let type, let packetID):
            buffer.writeInteger(type.rawValue << 4 | (type.requiredFlags ?? 0))
            buffer.writeInteger(UInt8(2))
            buffer.writeInteger(packetID)
        case .other(let frame):
            try frame.write(into: &buffer)
        }
    }
}

/// A PUBLISH as it came.
package struct MQTTPublishFrame: Hashable, Sendable {
    /// The whole packet: a slice of what was read.
    package let bytes: ByteBuffer
    /// How many bytes the fixed header takes.
    package let headerBytes: Int

    package init(bytes: ByteBuffer, headerBytes: Int) {
        self.bytes = bytes
        self.headerBytes = headerBytes
    }

    /// As any other frame.
    package var frame: MQTTFrame {
        MQTTFrame(header: bytes.getInteger(at: bytes.readerIndex) ?? 0, body: body)
    }

    package var body: ByteBuffer {
        bytes.getSlice(at: bytes.readerIndex + headerBytes, length: max(0, bytes.readableBytes - headerBytes))
            ?? ByteBuffer()
    }
}

/// Cuts what a client sends; the same rules as ``MQTTFrameDecoder``.
package struct MQTTInputDecoder: FrameDecoder {
    private var decoder: MQTTFrameDecoder

    package init(maxFrameBytes: Int) { decoder = MQTTFrameDecoder(maxFrameBytes: maxFrameBytes) }

    package mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> MQTTInput? {
        let short = Self.peekShort(buffer)
        if short != 0, let type = MQTTPacketType(rawValue: UInt8(truncatingIfNeeded: short >> 28)) {
            buffer.moveReaderIndex(forwardBy: 4)
            return .acknowledgement(type, packetID: UInt16(truncatingIfNeeded: short))
        }
        let start = buffer.readerIndex
        let before = buffer
        guard let frame = try decoder.next(from: &buffer) else { return nil }
        guard frame.header >> 4 == MQTTPacketType.publish.rawValue else { return .other(frame) }
        let length = buffer.readerIndex - start
        guard let bytes = before.getSlice(at: start, length: length) else { return .other(frame) }
        return .publish(MQTTPublishFrame(bytes: bytes, headerBytes: length - frame.body.readableBytes))
    }

    /// The next four bytes if they are an acknowledgement of just a packet identifier that is not 0; else 0.
    private static func peekShort(_ buffer: ByteBuffer) -> UInt32 {
        guard let word = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self) else { return 0 }
        switch word >> 16 {
        case 0x4002, 0x5002, 0x6202, 0x7002: return word & 0xFFFF == 0 ? 0 : word
        default: return 0
        }
    }
}
