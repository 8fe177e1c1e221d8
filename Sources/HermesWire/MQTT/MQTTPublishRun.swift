// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Adjacent PUBLISH packets with the same flags and the same topic, so that the receiver examines that beginning once.
///
/// They come from one read, so that nothing waits for a longer run. Each packet is complete and long enough for its
/// topic and, with QoS 1 and 2, for a packet identifier; nothing else was checked.
package struct MQTTPublishRun: Hashable, Sendable {
    /// The packets: a slice of the read buffer.
    package let bytes: ByteBuffer
    /// The offset of the first packet's topic from the beginning of the bytes; the other offsets count from there too.
    package let topicStart: Int
    /// For each packet, the range after its topic; at least one. A packet begins at the end of the one before it.
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

    /// Returns some of the packets.
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

    /// Returns the packet identifier of a packet of QoS 1 or 2; 0 is not valid.
    ///
    /// - Parameters:
    ///   - bytes: those of the run.
    ///   - body: one of ``bodies``.
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

/// Finds the complete PUBLISH packets with the same beginning at the start of a read.
struct MQTTPublishScan {
    /// The longest run. The next scan takes the rest, so that no publisher holds the event loop.
    static let maxCount = 1_024

    /// The prefix of topics that the server itself serves.
    private static let serverPrefix = Array("hermes/".utf8)

    /// The size of all packets; 0 if the first is not a complete PUBLISH.
    private(set) var bytes = 0
    /// The size of the first packet's fixed header.
    private(set) var headerBytes = 0
    /// For each packet, the range after its topic; empty for a single packet.
    private(set) var bodies: [Range<UInt32>] = []

    /// Nothing.
    init() {}

    /// Stops at the first error; the frame decoder reports it.
    init(_ input: UnsafeRawBufferPointer, maxFrameBytes: Int) {
        guard let first = input.first, first >> 4 == MQTTPacketType.publish.rawValue,
            let packet = Self.packet(input, at: 0, maxFrameBytes: maxFrameBytes)
        else { return }
        bytes = packet.upperBound
        headerBytes = packet.lowerBound
        // A publication that is retained, repeated or without a topic is never part of a run.
        guard first & 0b1001 == 0, first & 0b0110 != 0b0110, packet.count > 2 else { return }
        let topicBytes = Int(input[packet.lowerBound]) << 8 | Int(input[packet.lowerBound + 1])
        let same = 2 + topicBytes
        let least = same + (first & 0b0110 == 0 ? 0 : 2)
        guard topicBytes > 0, packet.count >= least else { return }
        let name = UnsafeRawBufferPointer(rebasing: input[packet.lowerBound..<packet.lowerBound + same])
        while bodies.count < Self.maxCount, bytes < input.count, input[bytes] == first,
            let next = Self.packet(input, at: bytes, maxFrameBytes: maxFrameBytes), next.count >= least,
            UnsafeRawBufferPointer(rebasing: input[next.lowerBound..<next.lowerBound + same]).hasSameBytes(as: name)
        {
            if bodies.isEmpty {
                // A publication for the server itself may be a slow request, so no other is read with it.
                guard !name.dropFirst(2).starts(with: Self.serverPrefix) else { return }
                bodies.reserveCapacity(min(Self.maxCount, input.count / bytes))
                bodies.append(UInt32(packet.lowerBound + same)..<UInt32(packet.upperBound))
            }
            bodies.append(UInt32(next.lowerBound + same)..<UInt32(next.upperBound))
            bytes = next.upperBound
        }
    }

    /// The range after the fixed header of a complete packet; nil if it is incomplete, too long, or has a malformed
    /// length.
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
