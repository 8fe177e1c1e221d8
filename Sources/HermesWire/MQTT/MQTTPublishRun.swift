// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// PUBLISH packets that came side by side with the same flags and the same topic: what is true of their beginning has to
/// be found out only once.
///
/// Cut from what was read in one go, so that nothing ever waits for a run to become longer. The packets are whole, long
/// enough for their topic and, with QoS 1 and 2, for a packet identifier; nothing else was looked at.
package struct MQTTPublishRun: Hashable, Sendable {
    /// The packets: a slice of what was read.
    package let bytes: ByteBuffer
    /// Where the first packet's topic begins, counted from the beginning of the bytes, like all that follows.
    package let topicStart: Int
    /// What follows the topic, of each packet; at least two. A packet begins where the one before ends.
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

    /// One packet by itself.
    package func frame(_ index: Int) -> MQTTPublishFrame {
        let start = index == 0 ? 0 : Int(bodies[index - 1].upperBound)
        let headerBytes = Int(bodies[index].lowerBound) - topicBytes - 2 - start
        let slice = bytes.getSlice(at: bytes.readerIndex + start, length: Int(bodies[index].upperBound) - start)
        return MQTTPublishFrame(bytes: slice ?? ByteBuffer(), headerBytes: headerBytes)
    }
}

/// Finds whole PUBLISH packets at the beginning of what was read, as many as begin with the same.
struct MQTTPublishScan {
    /// More are left to the next look, so that no publisher has the event loop to itself.
    static let maxCount = 1_024

    /// Topics that are not for subscribers alone begin with it.
    private static let serverPrefix = Array("hermes/".utf8)

    /// What all packets take; 0 if the first is no whole PUBLISH.
    private(set) var bytes = 0
    /// What the first packet's fixed header takes.
    private(set) var headerBytes = 0
    /// What follows the topic, of each packet; empty for one alone.
    private(set) var bodies: [Range<UInt32>] = []

    /// What is wrong is not counted in: it is for the frame decoder to say.
    init(_ input: UnsafeRawBufferPointer, maxFrameBytes: Int) {
        guard let first = input.first, first >> 4 == MQTTPacketType.publish.rawValue,
            let packet = Self.packet(input, at: 0, maxFrameBytes: maxFrameBytes)
        else { return }
        bytes = packet.upperBound
        headerBytes = packet.lowerBound
        // A retained, repeated or nameless one stands for itself.
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
                // What is for the server itself may be a request that takes its time: no other is looked at meanwhile.
                guard !name.dropFirst(2).starts(with: Self.serverPrefix) else { return }
                bodies.reserveCapacity(min(Self.maxCount, input.count / bytes))
                bodies.append(UInt32(packet.lowerBound + same)..<UInt32(packet.upperBound))
            }
            bodies.append(UInt32(next.lowerBound + same)..<UInt32(next.upperBound))
            bytes = next.upperBound
        }
    }

    /// What follows the fixed header of a whole packet; nil if it is not whole, too long, or its length is malformed.
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
