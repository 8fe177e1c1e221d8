// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@Suite("LiveRoom frames")
struct LiveRoomFrameTests {
    static let vectors = try? Vectors("liveroom")
    let vectors: Vectors

    init() throws {
        vectors = try Vectors("liveroom")
    }

    /// Returns the only frame of a vector.
    private func frame(_ name: String) throws -> LiveRoomFrame {
        var receiver = Receiver(LiveRoomFrameDecoder())
        receiver.receive(try vectors.bytes(name))
        return try #require(receiver.frames.first)
    }

    @Test(arguments: vectors?.good ?? [])
    func `every good vector, fed in every way, and forwarded byte for byte`(_ vector: Vectors.Good) throws {
        let bytes = [UInt8](hex: vector.hex)
        let type = LiveRoomFrameType(rawValue: try #require(vector.type))
        let frame = try LiveRoomFrame(type: type, body: ByteBuffer(bytes: bytes.dropFirst(6)))
        expectFrame(bytes, from: LiveRoomFrameDecoder(), is: frame)
        #expect(type.isKnown)
        #expect(try frame.encoded() == bytes)
        #expect(frame.body.bytes == Array(bytes.dropFirst(6)))
        try frame.validateBody()
    }

    @Test
    func `all vectors are there`() {
        #expect(vectors.good.count == 5)
        #expect(vectors.bad.count == 3)
    }

    @Test
    func `what the bodies say, and that writing it gives the same bytes`() throws {
        let user = try LiveRoom_UserInfo(wire: frame("join").body)
        #expect(user.level == 7 && user.name == "targetcloud3" && user.iconURL == "icon1")
        let chat = try LiveRoom_ChatMessage(wire: frame("text").body)
        #expect(chat.user == user && chat.text == "你好, targetcloud")
        let gift = try LiveRoom_GiftMessage(wire: frame("gift").body)
        #expect(gift.user == user && gift.giftname == "游艇" && gift.giftcount == 99)
        #expect(gift.giftURL == "http://example.invalid/yacht.gif")

        #expect(try LiveRoomFrame(type: .leave, message: user).encoded() == vectors.bytes("leave"))
        #expect(try LiveRoomFrame(type: .text, message: chat).encoded() == vectors.bytes("text"))
        #expect(try LiveRoomFrame(type: .gift, message: gift).encoded() == vectors.bytes("gift"))
    }

    @Test
    func `a huge length is an error at its fourth byte`() throws {
        let bytes = try vectors.bytes("huge-length")
        let good = try vectors.bytes("text")
        expectError(.frameTooLong, for: bytes, behind: good, from: LiveRoomFrameDecoder())
        expectError(.frameTooLong, for: Array(bytes.prefix(4)), behind: good, from: LiveRoomFrameDecoder())
        expectError(
            .frameTooLong,
            for: [0x01, 0, 1, 0],
            behind: good,
            from: LiveRoomFrameDecoder(maxFrameBytes: 65_536)
        )
    }

    @Test(arguments: ["missing-required", "empty-text"])
    func `a body that lacks what is required is a frame, but not valid`(_ name: String) throws {
        let bytes = try vectors.bytes(name)
        let frame = try frame(name)
        expectFrame(bytes, from: LiveRoomFrameDecoder(), is: frame)
        let error = #expect(throws: WireError.self) { try frame.validateBody() }
        #expect(error?.code == .badBody)
    }

    @Test(arguments: UInt16(0)...20)
    func `types without a meaning are not valid, the application's own are`(_ number: UInt16) throws {
        let type = LiveRoomFrameType(rawValue: number)
        let frame = try LiveRoomFrame(type: type, body: ByteBuffer(bytes: [0xFF]))
        #expect(type.isApplicationDefined == (number >= 16))
        switch number {
        case 8, 16...: try frame.validateBody()
        case 6, 7, 10...15:
            #expect(!type.isKnown)
            #expect(throws: WireError.self) { try frame.validateBody() }
        default:
            #expect(type.isKnown)
            let error = #expect(throws: WireError.self) { try frame.validateBody() }
            #expect(error?.code == .badBody)
        }
    }

    @Test
    func `the extensions`() throws {
        let notice = LiveRoom_SystemNotice.with { $0.text = "维护" }
        try LiveRoomFrame(type: .notice, message: notice).validateBody()
        try LiveRoomFrame(type: .enter, message: LiveRoom_Enter()).validateBody()
        let kicked = LiveRoom_Kicked.with { $0.code = 1 }
        let error = #expect(throws: WireError.self) { try LiveRoomFrame(type: .kicked, message: kicked) }
        #expect(error?.code == .notEncodable)
    }

    @Test
    func `frames and bodies are slices of what was read`() throws {
        var buffer = ByteBuffer(bytes: try vectors.bytes("text") + vectors.bytes("gift"))
        var decoder = LiveRoomFrameDecoder()
        for _ in 0..<2 {
            let frame = try #require(try decoder.next(from: &buffer))
            expectSlice(frame.bytes, of: buffer)
            expectSlice(frame.body, of: buffer)
        }
    }

    @Test(arguments: [1, 2, 3])
    func `what is written is read again`(seed: UInt64) throws {
        try expectRoundTrip(through: LiveRoomFrameDecoder(), seed: seed) { random in
            try LiveRoomFrame(
                type: LiveRoomFrameType(rawValue: UInt16.random(in: .min ... .max, using: &random)),
                body: random.body(0...300)
            )
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `a million bytes, one at a time`() {
        let body = [UInt8](repeating: 7, count: 1_000_000)
        expectPatience([0x40, 0x42, 0x0F, 0, 16, 0] + body, from: LiveRoomFrameDecoder(maxFrameBytes: 1_000_000))
    }
}
