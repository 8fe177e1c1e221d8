// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@Suite("Protobuf over ByteBuffer")
struct MessageByteBufferTests {
    @Test
    func `only the readable bytes are the message`() throws {
        let message = IMPB_msg_text_content.with { $0.text = "hello" }
        var buffer = ByteBuffer(bytes: [0xFF, 0xFF])
        buffer.writeImmutableBuffer(try message.wireBuffer())
        buffer.moveReaderIndex(forwardBy: 2)
        #expect(try IMPB_msg_text_content(wire: buffer) == message)
        #expect(try IMPB_msg_text_content(wire: ByteBuffer()) == IMPB_msg_text_content())
    }

    @Test
    func `a required field that is missing is an error both ways`() {
        let reading = #expect(throws: WireError.self) { try LiveRoom_UserInfo(wire: ByteBuffer(bytes: [8, 7])) }
        #expect(reading?.code == .badBody)
        let writing = #expect(throws: WireError.self) { try LiveRoom_UserInfo().wireBuffer() }
        #expect(writing?.code == .notEncodable)
    }

    @Test
    func `messages in messages without end are refused, groups too`() throws {
        // These bytes open the unknown group 1000 again and again.
        let groups = [UInt8]((0..<200_000).map { _ in [0xC3, 0x3E] as [UInt8] }.joined())
        #expect(throws: WireError.self) { try Hermes_V1_Packet(wire: ByteBuffer(bytes: groups)) }
        var balanced = [UInt8]((0..<100_000).map { _ in [0xC3, 0x3E] as [UInt8] }.joined())
        balanced += (0..<100_000).flatMap { _ in [0xC4, 0x3E] as [UInt8] }
        #expect(throws: WireError.self) { try Hermes_V1_Packet(wire: ByteBuffer(bytes: balanced)) }
    }

    @Test
    func `a field that tells more bytes than there are allocates nothing and is refused`() {
        let bytes: [UInt8] = [0x12, 0xFF, 0xFF, 0xFF, 0xFF, 0x07]
        let error = #expect(throws: WireError.self) { try IMPB_Common(wire: ByteBuffer(bytes: bytes)) }
        #expect(error?.code == .badBody)
        #expect(String(describing: error).contains("4006"))
    }

    @Test
    func `fields that are unknown survive, so that newer clients can talk through an older server`() throws {
        let bytes: [UInt8] = [0x0A, 1, 0x61, 0xFA, 0x3F, 1, 0x62]
        let message = try IMPB_msg_text_content(wire: bytes)
        #expect(message.text == "a")
        #expect(try message.wireBytes(as: [UInt8].self) == bytes)
    }

    @Test
    func `every error code has its own number of the catalogue`() {
        let numbers = WireError.Code.allCases.map(\.rawValue)
        #expect(Set(numbers).count == numbers.count)
        #expect(numbers.allSatisfy { (4_001...4_099).contains($0) })
    }
}
