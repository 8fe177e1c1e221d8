// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Cuts a stream into MQTT control packets; ``MQTTPacket`` parses them. A broker uses ``MQTTInputDecoder``.
package struct MQTTFrameDecoder: FrameDecoder {
    /// The longest body that is accepted by default, in bytes.
    package static let defaultMaxBytes = 1_048_576

    /// The longest accepted body, in bytes. It may change between packets, because CONNECT has a lower limit.
    package var maxFrameBytes: Int

    /// Creates a decoder.
    ///
    /// - Parameter maxFrameBytes: the longest body that is accepted, in bytes.
    package init(maxFrameBytes: Int = Self.defaultMaxBytes) {
        self.maxFrameBytes = maxFrameBytes
    }

    package mutating func next(from buffer: inout ByteBuffer) throws(WireError) -> MQTTFrame? {
        let start = buffer.readerIndex
        guard let header = buffer.getInteger(at: start, as: UInt8.self) else { return nil }
        guard let type = MQTTPacketType(rawValue: header >> 4) else {
            throw WireError(.unknownType, "MQTT has no control packet type 0 (2.1.2)")
        }
        if let flags = type.requiredFlags, header & 0x0F != flags {
            throw WireError(.badMagic, "a fixed header of \(type) has the flags \(flags) [MQTT-2.1.3-1]")
        }
        switch MQTTVariableByteInteger.peek(buffer, at: start + 1) {
        case .incomplete:
            return nil
        case .malformed:
            throw WireError(.badLength, "a remaining length takes more than four bytes (1.5.5)")
        case .value(let length, let prefixBytes):
            guard length <= maxFrameBytes else { throw .frameTooLong(length, limit: maxFrameBytes) }
            guard buffer.readableBytes - 1 - prefixBytes >= length else { return nil }
            buffer.moveReaderIndex(forwardBy: 1 + prefixBytes)
            return buffer.readSlice(length: length).map { MQTTFrame(header: header, body: $0) }
        }
    }
}
