// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@Suite("IMPB frames")
struct IMPBFrameTests {
    static let vectors = try? Vectors("impb")
    let vectors: Vectors

    init() throws {
        vectors = try Vectors("impb")
    }

    @Test(arguments: vectors?.good ?? [])
    func `every good vector, fed in every way, and written again`(_ vector: Vectors.Good) throws {
        let bytes = [UInt8](hex: vector.hex)
        // The friend request is a body without a frame. The tests of the schema read it.
        guard let seq = vector.seq, let type = vector.type else { return #expect(vector.name == "friend-request-body") }
        let frame = IMPBFrame(
            seq: seq,
            type: IMPBFrameType(rawValue: UInt8(type)),
            body: ByteBuffer(bytes: bytes.dropFirst(8))
        )
        expectFrame(bytes, from: IMPBFrameDecoder(), is: frame)
        #expect(frame.type.isKnown)
        #expect(try frame.encoded() == bytes)
        #expect(frame.encodedBytes == bytes.count)
    }

    @Test
    func `all good vectors are there`() {
        #expect(vectors.good.count == 17)
        #expect(vectors.bad.count == 4)
    }

    @Test
    func `another first byte is an error, at the first byte`() throws {
        let bytes = try vectors.bytes("bad-magic")
        expectError(.badMagic, for: bytes, behind: try vectors.bytes("c2c-text"), from: IMPBFrameDecoder())
        expectError(.badMagic, for: [0x16], behind: try vectors.bytes("ping"), from: IMPBFrameDecoder())
    }

    @Test
    func `an unknown type is a frame, to be answered with an error`() throws {
        let bytes = try vectors.bytes("unknown-type")
        let frame = IMPBFrame(seq: 1, type: IMPBFrameType(rawValue: 9))
        expectFrame(bytes, from: IMPBFrameDecoder(), is: frame)
        #expect(!frame.type.isKnown)
        #expect(!IMPBFrameType(rawValue: 0).isKnown)
    }

    @Test
    func `a body that is not protobuf is a frame, and an error only when it is parsed`() throws {
        let bytes = try vectors.bytes("request-body-not-protobuf")
        let frame = IMPBFrame(seq: 1, type: .request, body: ByteBuffer(bytes: [0xFF, 0xFF, 0xFF]))
        expectFrame(bytes, from: IMPBFrameDecoder(), is: frame)
        let error = #expect(throws: WireError.self) { try IMPB_Common(wire: frame.body) }
        #expect(error?.code == .badBody)
    }

    @Test(arguments: ["ping", "ping-max-seq", "ping-with-body"])
    func `a ping goes back byte for byte, with a body too`(_ name: String) throws {
        let bytes = try vectors.bytes(name)
        var receiver = Receiver(IMPBFrameDecoder())
        receiver.receive(bytes)
        let frame = try #require(receiver.frames.first)
        #expect(frame.type == .ping)
        #expect(try frame.encoded() == bytes)
        expectFrame(bytes, from: IMPBFrameDecoder(), is: frame)
    }

    @Test
    func `a length above the limit is an error as soon as the header is there`() throws {
        let header: [UInt8] = [0x81, 0, 0, 0, 1, 3, 0x10, 0x01]
        expectError(
            .frameTooLong,
            for: header,
            behind: try vectors.bytes("ping"),
            from: IMPBFrameDecoder(maxFrameBytes: 4_096)
        )
        var atTheLimit = Receiver(IMPBFrameDecoder(maxFrameBytes: 4_097))
        atTheLimit.receive(header + [UInt8](repeating: 7, count: 4_097))
        #expect(atTheLimit.frames.count == 1)
    }

    @Test
    func `a body that the header cannot tell is refused, and nothing is written`() throws {
        var buffer = ByteBuffer()
        let longest = IMPBFrame(seq: 1, type: .message, body: ByteBuffer(repeating: 1, count: 65_535))
        try longest.write(into: &buffer)
        #expect(buffer.readableBytes == 65_543)
        let tooLong = IMPBFrame(seq: 1, type: .message, body: ByteBuffer(repeating: 1, count: 65_536))
        let error = #expect(throws: WireError.self) { try tooLong.write(into: &buffer) }
        #expect(error?.code == .frameTooLong)
        let text = IMPB_msg_text_content.with { $0.text = String(repeating: "x", count: 65_536) }
        #expect(throws: WireError.self) { try IMPBFrame.write(text, seq: 1, type: .message, into: &buffer) }
        #expect(buffer.readableBytes == 65_543)
    }

    @Test
    func `bodies are slices of what was read`() throws {
        var buffer = ByteBuffer(bytes: try vectors.bytes("c2c-text") + vectors.bytes("group-text"))
        var decoder = IMPBFrameDecoder()
        for _ in 0..<2 {
            expectSlice(try #require(try decoder.next(from: &buffer)).body, of: buffer)
        }
    }

    @Test(arguments: [1, 2, 3])
    func `what is written is read again`(seed: UInt64) throws {
        try expectRoundTrip(through: IMPBFrameDecoder(), seed: seed) { random in
            IMPBFrame(
                seq: UInt32.random(in: .min ... .max, using: &random),
                type: IMPBFrameType(rawValue: UInt8.random(in: .min ... .max, using: &random)),
                body: random.body(0...300)
            )
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `the longest frame, byte by byte`() {
        expectPatience(
            [0x81, 0, 0, 0, 1, 3, 0xFF, 0xFF] + [UInt8](repeating: 7, count: 65_535),
            from: IMPBFrameDecoder()
        )
    }
}
