// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// A packet that a broker reads. Each frequent kind of packet has its own case, which is cheap to create. All other
/// packets are frames.
package enum MQTTInput: WireFrame {
    /// A PUBLISH as received, header included, so that its bytes can be forwarded.
    case publish(MQTTPublishFrame)
    /// Several adjacent PUBLISH packets with the same flags and topic, at most ``MQTTPublishRun/maxCount``. A run
    /// contains no packet with RETAIN or DUP, no packet without a topic, no packet to a topic below `hermes/`, and no
    /// packet whose length takes more bytes than necessary.
    case publishes(MQTTPublishRun)
    /// A PUBACK, PUBREC, PUBREL or PUBCOMP without a reason code, which means success.
    case acknowledgement(MQTTPacketType, packetID: UInt16)
    /// Any other packet.
    case other(MQTTFrame)

    package var encodedBytes: Int {
        switch self {
        case .publish(let frame): frame.bytes.readableBytes
        case .publishes(let run): run.bytes.readableBytes
        case .acknowledgement: 4
        case .other(let frame): frame.encodedBytes
        }
    }

    package var frameCount: Int {
        if case .publishes(let run) = self { run.count } else { 1 }
    }

    package func write(into buffer: inout ByteBuffer) throws(WireError) {
        switch self {
        case .publish(let frame):
            buffer.writeImmutableBuffer(frame.bytes)
        case .publishes(let run):
            buffer.writeImmutableBuffer(run.bytes)
        case .acknowledgement(let type, let packetID):
            buffer.writeInteger(type.rawValue << 4 | (type.requiredFlags ?? 0))
            buffer.writeInteger(UInt8(2))
            buffer.writeInteger(packetID)
        case .other(let frame):
            try frame.write(into: &buffer)
        }
    }
}

/// A PUBLISH as received.
package struct MQTTPublishFrame: Hashable, Sendable {
    /// The whole packet: a slice of the read buffer.
    package let bytes: ByteBuffer
    /// The size of the fixed header, in bytes.
    package let headerBytes: Int

    package init(bytes: ByteBuffer, headerBytes: Int) {
        self.bytes = bytes
        self.headerBytes = headerBytes
    }

    /// Whether the remaining length takes as few bytes as possible [MQTT-1.5.5-1].
    package var isLengthShortest: Bool {
        MQTTVariableByteInteger.isShortest(
            headerBytes: headerBytes,
            remainingLength: bytes.readableBytes - headerBytes
        )
    }

    /// The packet as a frame.
    package var frame: MQTTFrame {
        MQTTFrame(header: bytes.getInteger(at: bytes.readerIndex) ?? 0, body: body)
    }

    package var body: ByteBuffer {
        bytes.getSlice(at: bytes.readerIndex + headerBytes, length: max(0, bytes.readableBytes - headerBytes))
            ?? ByteBuffer()
    }
}

/// Cuts a client's stream into packets, by the same rules as ``MQTTFrameDecoder``.
package struct MQTTInputDecoder: FrameDecoder {
    private var decoder: MQTTFrameDecoder

    package init(maxFrameBytes: Int) { decoder = MQTTFrameDecoder(maxFrameBytes: maxFrameBytes) }

    package mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> MQTTInput? {
        let (short, scan) = buffer.withUnsafeReadableBytes { bytes in
            let short = Self.peekShort(bytes)
            let limit = decoder.maxFrameBytes
            return (short, short == 0 ? MQTTPublishScan(bytes, maxFrameBytes: limit) : MQTTPublishScan())
        }
        if short != 0, let type = MQTTPacketType(rawValue: UInt8(truncatingIfNeeded: short >> 28)) {
            buffer.moveReaderIndex(forwardBy: 4)
            return .acknowledgement(type, packetID: UInt16(truncatingIfNeeded: short))
        }
        guard scan.bytes > 0 else { return try decoder.next(from: &buffer).map { .other($0) } }
        guard let bytes = buffer.readSlice(length: scan.bytes) else { return nil }
        guard scan.bodies.isEmpty else {
            return .publishes(MQTTPublishRun(bytes: bytes, topicStart: scan.headerBytes + 2, bodies: scan.bodies))
        }
        return .publish(MQTTPublishFrame(bytes: bytes, headerBytes: scan.headerBytes))
    }

    /// Returns the next four bytes if they are an acknowledgement with a non-zero packet identifier and nothing else;
    /// otherwise 0.
    private static func peekShort(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        guard bytes.count >= 4 else { return 0 }
        let word = UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
        switch word >> 16 {
        case 0x4002, 0x5002, 0x6202, 0x7002: return word & 0xFFFF == 0 ? 0 : word
        default: return 0
        }
    }
}
