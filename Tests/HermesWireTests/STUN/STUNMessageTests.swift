// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

/// Tests with the sample messages of RFC 5769, sections 2.1 to 2.3.
struct STUNMessageTests {
    static let sampleRequest: [UInt8] = [
        0x00, 0x01, 0x00, 0x58, 0x21, 0x12, 0xA4, 0x42, 0xB7, 0xE7, 0xA7, 0x01, 0xBC, 0x34, 0xD6, 0x86,
        0xFA, 0x87, 0xDF, 0xAE, 0x80, 0x22, 0x00, 0x10, 0x53, 0x54, 0x55, 0x4E, 0x20, 0x74, 0x65, 0x73,
        0x74, 0x20, 0x63, 0x6C, 0x69, 0x65, 0x6E, 0x74, 0x00, 0x24, 0x00, 0x04, 0x6E, 0x00, 0x01, 0xFF,
        0x80, 0x29, 0x00, 0x08, 0x93, 0x2F, 0xF9, 0xB1, 0x51, 0x26, 0x3B, 0x36, 0x00, 0x06, 0x00, 0x09,
        0x65, 0x76, 0x74, 0x6A, 0x3A, 0x68, 0x36, 0x76, 0x59, 0x20, 0x20, 0x20, 0x00, 0x08, 0x00, 0x14,
        0x9A, 0xEA, 0xA7, 0x0C, 0xBF, 0xD8, 0xCB, 0x56, 0x78, 0x1E, 0xF2, 0xB5, 0xB2, 0xD3, 0xF2, 0x49,
        0xC1, 0xB5, 0x71, 0xA2, 0x80, 0x28, 0x00, 0x04, 0xE5, 0x7A, 0x3B, 0xCF,
    ]
    static let id = STUNMessage.TransactionID(high: 0xB7E7_A701, low: 0xBC34_D686_FA87_DFAE)

    @Test func `reads the sample request`() throws {
        let request = try #require(STUNMessage.bindingRequest(in: ByteBuffer(bytes: Self.sampleRequest)))
        #expect(request.transactionID == Self.id)
        #expect(request.unknownAttributes.isEmpty)
        #expect(request.hasFingerprint)
    }

    @Test func `refuses what is broken`() {
        for cut in 0..<Self.sampleRequest.count {
            #expect(STUNMessage.bindingRequest(in: ByteBuffer(bytes: Self.sampleRequest.prefix(cut))) == nil)
        }
        // A changed bit anywhere makes the fingerprint wrong, except in the fingerprint's own type. With another type,
        // it is an ignored attribute.
        let fingerprint = Self.sampleRequest.count - 8
        for byte in Self.sampleRequest.indices where byte != fingerprint && byte != fingerprint + 1 {
            var bytes = Self.sampleRequest
            bytes[byte] ^= 0x10
            #expect(STUNMessage.bindingRequest(in: ByteBuffer(bytes: bytes)) == nil)
        }
    }

    @Test func `writes the sample addresses`() throws {
        var plain = ByteBuffer()
        plain.writeMultipleIntegers(UInt16(1), UInt16(0), STUNMessage.magicCookie, Self.id.high, Self.id.low)
        let request = try #require(STUNMessage.bindingRequest(in: plain))
        var answer = ByteBuffer()
        STUNMessage.writeAnswer(
            to: request,
            from: try SocketAddress(ipAddress: "192.0.2.1", port: 32_853),
            into: &answer
        )
        #expect(Array(answer.readableBytesView.prefix(4)) == [0x01, 0x01, 0x00, 0x0C])
        #expect(
            Array(answer.readableBytesView.suffix(12)) == [
                0x00, 0x20, 0x00, 0x08, 0x00, 0x01, 0xA1, 0x47, 0xE1, 0x12, 0xA6, 0x43,
            ]
        )
        answer.clear()
        let v6 = try SocketAddress(ipAddress: "2001:db8:1234:5678:11:2233:4455:6677", port: 32_853)
        STUNMessage.writeAnswer(to: request, from: v6, into: &answer)
        #expect(
            Array(answer.readableBytesView.suffix(24)) == [
                0x00, 0x20, 0x00, 0x14, 0x00, 0x02, 0xA1, 0x47, 0x01, 0x13, 0xA9, 0xFA, 0xA5, 0xD3, 0xF1, 0x79,
                0xBC, 0x25, 0xF4, 0xB5, 0xBE, 0xD2, 0xB9, 0xD9,
            ]
        )
    }

    @Test func `answers with a fingerprint where one was sent`() throws {
        let request = try #require(STUNMessage.bindingRequest(in: ByteBuffer(bytes: Self.sampleRequest)))
        var answer = ByteBuffer()
        STUNMessage.writeAnswer(to: request, from: try SocketAddress(ipAddress: "192.0.2.1", port: 1), into: &answer)
        #expect(answer.readableBytes == 40)
        #expect(Array(answer.readableBytesView.dropFirst(32).prefix(4)) == [0x80, 0x28, 0x00, 0x04])
    }

    @Test func `names what it does not understand`() throws {
        var plain = ByteBuffer()
        plain.writeMultipleIntegers(UInt16(1), UInt16(16), STUNMessage.magicCookie, Self.id.high, Self.id.low)
        plain.writeMultipleIntegers(UInt16(0x7F01), UInt16(1), UInt32(0), UInt16(0x0003), UInt16(4), UInt32(6))
        let request = try #require(STUNMessage.bindingRequest(in: plain))
        #expect(request.unknownAttributes == [0x7F01, 0x0003])
        var answer = ByteBuffer()
        STUNMessage.writeAnswer(to: request, from: try SocketAddress(ipAddress: "192.0.2.1", port: 1), into: &answer)
        #expect(answer.getInteger(at: 0, as: UInt16.self) == 0x0111)
        #expect(answer.getInteger(at: 2, as: UInt16.self).map(Int.init) == answer.readableBytes - 20)
        #expect(answer.getInteger(at: 26, as: UInt16.self) == 0x0414)
        #expect(answer.readableBytes % 4 == 0)
    }
}
