// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@Suite("Delimited frames")
struct DelimitedFrameTests {
    static let vectors = try? Vectors("delimited")
    let vectors: Vectors

    init() throws {
        vectors = try Vectors("delimited")
    }

    @Test(arguments: vectors?.good ?? [])
    func `every good prefix, and a frame with it, fed in every way`(_ vector: Vectors.Good) throws {
        let prefix = [UInt8](hex: vector.hex)
        let length = try #require(vector.length)
        let peeked = try #require(try DelimitedPrefix.peek(ByteBuffer(bytes: prefix)))
        #expect(peeked.length == UInt64(length))
        #expect(peeked.prefixBytes == prefix.count)
        for cut in 0..<prefix.count {
            #expect(try DelimitedPrefix.peek(ByteBuffer(bytes: prefix.prefix(cut))) == nil)
        }
        var written = ByteBuffer()
        try DelimitedPrefix.write(length, into: &written)
        #expect(written.bytes == prefix)
        #expect(DelimitedPrefix.encodedBytes(UInt32(length)) == prefix.count)

        let frame = DelimitedFrame(body: ByteBuffer(repeating: 0x5A, count: length))
        let bytes = prefix + [UInt8](repeating: 0x5A, count: length)
        #expect(try frame.encoded() == bytes)
        expectFrame(bytes, from: DelimitedFrameDecoder(maxFrameBytes: length), is: frame)
        guard length > 1 else { return }
        let shorter = DelimitedFrameDecoder(maxFrameBytes: length - 1)
        expectError(.frameTooLong, for: prefix, behind: [1, 0x5A], from: shorter)
    }

    @Test
    func `all vectors are there`() {
        #expect(vectors.good.count == 8)
        #expect(vectors.bad.count == 2)
    }

    @Test
    func `a prefix of more than five bytes is an error at the fifth`() throws {
        let bytes = try vectors.bytes("prefix-over-five-bytes")
        expectError(.badLength, for: bytes, behind: [1, 0x5A], from: DelimitedFrameDecoder())
        expectError(.badLength, for: Array(bytes.prefix(5)), behind: [1, 0x5A], from: DelimitedFrameDecoder())
    }

    @Test
    func `lengths that are negative as an int32, or longer than 32 bits, are above the limit`() throws {
        let bytes = try vectors.bytes("prefix-negative-int32")
        expectError(.frameTooLong, for: bytes, behind: [1, 0x5A], from: DelimitedFrameDecoder())
        let longest: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0x7F]
        expectError(.frameTooLong, for: longest, behind: [1, 0x5A], from: DelimitedFrameDecoder())
    }

    @Test
    func `length zero is skipped, also when it takes more bytes than it needs`() {
        var receiver = Receiver(DelimitedFrameDecoder())
        receiver.receive([0, 0, 0x80, 0x00, 1, 0x5A, 0, 2, 1, 2, 0])
        #expect(receiver.frames.map(\.body.bytes) == [[0x5A], [1, 2]])
        #expect(receiver.error == nil)
        #expect(receiver.buffer.readableBytes == 0)
        receiver.receive([UInt8](repeating: 0, count: 100_000))
        #expect(receiver.buffer.readableBytes == 0)
    }

    @Test(arguments: [1, 2, 3, 4, 5])
    func `every length at the borders of the prefix's sizes`(size: Int) throws {
        let first: UInt64 = size == 1 ? 0 : 1 << (7 * (UInt64(size) - 1))
        let last: UInt64 = min(UInt64(UInt32.max), (1 << (7 * UInt64(size))) - 1)
        for length in [first, last] {
            var buffer = ByteBuffer()
            #expect(DelimitedPrefix.encodedBytes(UInt32(length)) == size)
            guard length < 1 << 24 else { continue }
            try DelimitedPrefix.write(Int(length), into: &buffer)
            #expect(buffer.readableBytes == size)
            #expect(try #require(try DelimitedPrefix.peek(buffer)).length == length)
        }
    }

    @Test
    func `packets there and back`() throws {
        let packet = Hermes_V1_Packet.with {
            $0.id = 7
            $0.send.to.uid = 2
            $0.send.clientID = "c-1"
            $0.send.content.text = "你好"
        }
        let frame = try DelimitedFrame(packet)
        #expect(try frame.packet() == packet)
        var buffer = ByteBuffer()
        try DelimitedFrame.write(packet, into: &buffer)
        #expect(try frame.encoded() == buffer.bytes)
        expectFrame(buffer.bytes, from: DelimitedFrameDecoder(), is: frame)
        let error = #expect(throws: WireError.self) { try DelimitedFrame(body: ByteBuffer(bytes: [0x0F])).packet() }
        #expect(error?.code == .badBody)
    }

    @Test
    func `bodies are slices of what was read`() throws {
        var buffer = ByteBuffer(bytes: [3, 1, 2, 3, 2, 4, 5])
        var decoder = DelimitedFrameDecoder()
        for _ in 0..<2 {
            expectSlice(try #require(try decoder.next(from: &buffer)).body, of: buffer)
        }
    }

    @Test(arguments: [1, 2, 3])
    func `what is written is read again`(seed: UInt64) throws {
        try expectRoundTrip(through: DelimitedFrameDecoder(), seed: seed) { random in
            DelimitedFrame(body: random.body(1...300))
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a million bytes, one at a time`() {
        expectPatience([0xC0, 0x84, 0x3D] + [UInt8](repeating: 7, count: 1_000_000), from: DelimitedFrameDecoder())
    }
}
