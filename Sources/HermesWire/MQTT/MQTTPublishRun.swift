// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Adjacent PUBLISH packets with the same flags and the same topic, so that the receiver examines flags and topic only
/// once.
///
/// The packets come from the bytes that have already been read, so no packet waits for a longer run. Each packet is
/// complete. It is long enough for its topic and, with QoS 1 and 2, for a packet identifier. Its remaining length
/// takes as few bytes as possible. Nothing else has been checked.
package struct MQTTPublishRun: Hashable, Sendable {
    /// The packets: a slice of the read buffer.
    package let bytes: ByteBuffer
    /// The offset of the first packet's topic. All offsets of the run count from the beginning of its bytes.
    package let topicStart: Int
    /// For each packet, the range of offsets after its topic. There is at least one packet. Each packet begins where
    /// the previous one ends.
    package let bodies: [Range<UInt32>]

    package init(bytes: ByteBuffer, topicStart: Int, bodies: [Range<UInt32>]) {
        self.bytes = bytes
        self.topicStart = topicStart
        self.bodies = bodies
    }

    package var count: Int { bodies.count }

    package var topicBytes: Int { Int(bodies[0].lowerBound) - topicStart }

    package var qos: MQTTQoS {
        MQTTQoS(rawValue: (bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) ?? 0) >> 1 & 0b11) ?? .atMostOnce
    }

    /// Returns a run of only the packets with these indices.
    package func part(_ range: Range<Int>) -> Self {
        guard range.count < count, let last = range.last else { return self }
        let start = range.lowerBound == 0 ? 0 : bodies[range.lowerBound - 1].upperBound
        let length = Int(bodies[last].upperBound - start)
        return Self(
            bytes: bytes.getSlice(at: bytes.readerIndex + Int(start), length: length) ?? ByteBuffer(),
            topicStart: Int(bodies[range.lowerBound].lowerBound - start) - topicBytes,
            bodies: bodies[range].map { $0.lowerBound - start..<$0.upperBound - start }
        )
    }

    /// Returns the packet identifier of a packet of QoS 1 or 2. It may be 0, which is not valid.
    ///
    /// - Parameters:
    ///   - bytes: the bytes of the run.
    ///   - body: the packet's range in ``bodies``.
    package static func packetID(_ bytes: UnsafeRawBufferPointer, _ body: Range<UInt32>) -> UInt16 {
        let index = Int(body.lowerBound)
        return UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
    }

    /// Returns one packet.
    package func frame(_ index: Int) -> MQTTPublishFrame {
        let start = index == 0 ? 0 : Int(bodies[index - 1].upperBound)
        let headerBytes = Int(bodies[index].lowerBound) - topicBytes - 2 - start
        let slice = bytes.getSlice(at: bytes.readerIndex + start, length: Int(bodies[index].upperBound) - start)
        return MQTTPublishFrame(bytes: slice ?? ByteBuffer(), headerBytes: headerBytes)
    }
}

/// Finds the complete PUBLISH packets with the same flags and topic at the start of the bytes that were read.
struct MQTTPublishScan {
    /// The largest number of packets in a run. The limit keeps one publisher from occupying the event loop for long.
    /// The next scan finds the packets after the run.
    static let maxCount = 1_024

    /// The prefix of the topics whose publications are requests to the server itself.
    private static let serverPrefix = Array("hermes/".utf8)

    /// The size of all found packets in bytes; 0 if the input does not begin with a complete PUBLISH.
    private(set) var bytes = 0
    /// The size of the first packet's fixed header in bytes.
    private(set) var headerBytes = 0
    /// For each packet, the range of offsets after its topic; empty if there is only one packet.
    private(set) var bodies: [Range<UInt32>] = []

    /// Creates the result of a scan that found nothing.
    init() {}

    /// Scans the input. Stops at the first error, which the frame decoder reports later.
    init(_ input: UnsafeRawBufferPointer, maxFrameBytes: Int) {
        guard let first = input.first, first >> 4 == MQTTPacketType.publish.rawValue,
            let packet = Self.packet(input, at: 0, maxFrameBytes: maxFrameBytes)
        else { return }
        bytes = packet.upperBound
        headerBytes = packet.lowerBound
        // A publication that is retained, marked as duplicate or without a topic is never part of a run. A publication
        // whose remaining length takes too many bytes is not part of a run either, because the bytes of a run are
        // forwarded [MQTT-1.5.5-1].
        guard first & 0b1001 == 0, first & 0b0110 != 0b0110, packet.count > 2, Self.isLengthShortest(of: packet, at: 0)
        else { return }
        let topicBytes = Int(input[packet.lowerBound]) << 8 | Int(input[packet.lowerBound + 1])
        let same = 2 + topicBytes
        let least = same + (first & 0b0110 == 0 ? 0 : 2)
        guard topicBytes > 0, packet.count >= least else { return }
        let name = UnsafeRawBufferPointer(rebasing: input[packet.lowerBound..<packet.lowerBound + same])
        while bodies.count < Self.maxCount, bytes < input.count, input[bytes] == first,
            let next = Self.packet(input, at: bytes, maxFrameBytes: maxFrameBytes), next.count >= least,
            Self.isLengthShortest(of: next, at: bytes),
            UnsafeRawBufferPointer(rebasing: input[next.lowerBound..<next.lowerBound + same]).hasSameBytes(as: name)
        {
            if bodies.isEmpty {
                // A publication to the server itself may be a slow request, so it is never part of a run.
                guard !name.dropFirst(2).starts(with: Self.serverPrefix) else { return }
                bodies.reserveCapacity(min(Self.maxCount, input.count / bytes))
                bodies.append(UInt32(packet.lowerBound + same)..<UInt32(packet.upperBound))
            }
            bodies.append(UInt32(next.lowerBound + same)..<UInt32(next.upperBound))
            bytes = next.upperBound
        }
    }

    /// Whether the remaining length of the packet at an index takes as few bytes as possible.
    ///
    /// - Parameter packet: the range after the fixed header.
    private static func isLengthShortest(of packet: Range<Int>, at start: Int) -> Bool {
        MQTTVariableByteInteger.isShortest(headerBytes: packet.lowerBound - start, remainingLength: packet.count)
    }

    /// Returns the range after the fixed header of the packet at an index; nil if the packet is incomplete or too long,
    /// or if its length is malformed.
    private static func packet(
        _ input: UnsafeRawBufferPointer,
        at start: Int,
        maxFrameBytes: Int
    ) -> Range<Int>? {
        var length = 0
        for position in 0..<4 {
            let index = start + 1 + position
            guard index < input.count else { return nil }
            let byte = input[index]
            length |= Int(byte & 0x7F) << (7 * position)
            guard byte >= 0x80 else {
                guard length <= maxFrameBytes, input.count - index - 1 >= length else { return nil }
                return index + 1..<index + 1 + length
            }
        }
        return nil
    }
}
