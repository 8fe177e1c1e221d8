// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@Suite struct MQTTPacketTests {
    static let cases: [(MQTTPacketType, MQTTVersion)] = MQTTPacketType.allCases.flatMap { type in
        MQTTVersion.allCases.compactMap { type == .auth && $0 == .v311 ? nil : (type, $0) }
    }

    /// Such a text may come from another protocol.
    @Test(arguments: [MQTTProperty.contentType("a\0b"), .userProperty("a\0b", "c"), .userProperty("a", "b\0c")])
    func `a property never holds U+0000`(_ property: MQTTProperty) throws {
        var buffer = ByteBuffer()
        #expect { try property.write(into: &buffer) } throws: { ($0 as? WireError)?.code == .notEncodable }
    }

    @Test(arguments: cases)
    func `what is written reads back as it was`(type: MQTTPacketType, version: MQTTVersion) throws {
        var random = SeededGenerator(seed: UInt64(type.rawValue) << 8 | UInt64(version.rawValue))
        for _ in 0..<300 {
            let packet = random.packet(type, version)
            var buffer = ByteBuffer()
            try packet.write(into: &buffer, version: version)
            var decoder = MQTTFrameDecoder()
            let frame = try #require(try decoder.next(from: &buffer))
            #expect(buffer.readableBytes == 0)
            #expect(try MQTTPacket(frame, version: version) == packet)
        }
    }

    @Test(arguments: cases)
    func `a frame may come in any pieces`(type: MQTTPacketType, version: MQTTVersion) throws {
        var random = SeededGenerator(seed: 7)
        let frame = try random.packet(type, version).frame(version: version)
        var bytes = ByteBuffer()
        try frame.write(into: &bytes)
        expectFrame(bytes.bytes, from: MQTTFrameDecoder(), is: frame)
    }

    @Test(arguments: cases)
    func `a body that is cut short or goes on is refused or reads as another packet, and never traps`(
        type: MQTTPacketType,
        version: MQTTVersion
    ) throws {
        var random = SeededGenerator(seed: 11)
        for _ in 0..<40 {
            let frame = try random.packet(type, version).frame(version: version)
            for length in 0..<frame.body.readableBytes {
                let cut = frame.body.getSlice(at: frame.body.readerIndex, length: length) ?? ByteBuffer()
                _ = try? MQTTPacket(MQTTFrame(header: frame.header, body: cut), version: version)
            }
            var changed = frame.body.bytes
            for _ in 0..<50 where !changed.isEmpty {
                changed[Int.random(in: changed.indices, using: &random)] = UInt8.random(in: 0 ... .max, using: &random)
                let packet = try? MQTTPacket(
                    MQTTFrame(header: frame.header, body: ByteBuffer(bytes: changed)),
                    version: version
                )
                // An accepted packet can be written again.
                if let packet { #expect(throws: Never.self) { try packet.frame(version: version) } }
            }
        }
    }

    // 5.0 [MQTT-1.5.5-1]
    @Test(arguments: [
        (0, "00"), (127, "7f"), (128, "8001"), (16_383, "ff7f"), (16_384, "808001"), (2_097_151, "ffff7f"),
        (2_097_152, "80808001"), (268_435_455, "ffffff7f"),
    ])
    func `a variable byte integer takes the fewest bytes`(value: Int, hex: String) throws {
        var bytes = ByteBuffer()
        MQTTVariableByteInteger.write(value, into: &bytes)
        #expect(bytes == (try ByteBuffer(plainHexEncodedBytes: hex)))
        #expect(MQTTVariableByteInteger.encodedBytes(value) == hex.count / 2)
    }

    @Test func `random streams of all packets come through random pieces`() throws {
        try expectRoundTrip(through: MQTTFrameDecoder(), seed: 3) { random in
            let (type, version) = Self.cases[Int.random(in: Self.cases.indices, using: &random)]
            return try random.packet(type, version).frame(version: version)
        }
    }

    @Test func `a long publication fed byte by byte takes linear time`() throws {
        var random = SeededGenerator(seed: 5)
        let publish = MQTTPublish(topic: "t", payload: random.body(900_000...900_000))
        var bytes = ByteBuffer()
        try MQTTPacket.publish(publish).write(into: &bytes, version: .v5)
        expectPatience(bytes.bytes, from: MQTTFrameDecoder())
    }
}
