// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesWire
import SwiftProtobuf
import Testing

@testable import HermesGateways

struct IMPBContentTests {
    private func custom(_ type: String, _ data: [UInt8] = [1, 2, 3]) throws -> MessageContent {
        var content = Hermes_V1_Content()
        content.custom.type = type
        content.custom.data = Data(data)
        return try CanonicalContent.encoded(content).get()
    }

    @Test(arguments: [
        "impb/9223372032559808512", "impb/2147483648", "impb/-2147483649", "impb/9223372036854775807",
        "impb/-9223372036854775808", "impb/4294967297", "impb/99999999999999999999", "impb/", "impb/x", "impb/+5",
        "impb/004", "impb/0", "impb/1", "impb/6", "impb/٣",
    ])
    func `a stored type that is none is an ordinary custom content`(_ type: String) throws {
        var message = IMPB_C2C_msg()
        IMPBContent.fill(&message, with: try custom(type))
        #expect(message.hasEncodableEnums)
        #expect(message.type == .custom)
        #expect(try IMPB_msg_cumstom_content(wire: message.content).info.key == type)
        #expect(try IMPB_C2C_msg(wire: message.wireBytes(as: [UInt8].self)) == message)
    }

    @Test(arguments: [4, 77, -1, Int(Int32.max), Int(Int32.min)])
    func `a type without a published body comes out as it went in`(_ number: Int) throws {
        var message = IMPB_C2C_msg()
        message.type = try #require(IMPB_Content_type(rawValue: number))
        message.content = Data([1, 2, 3, 250])
        let content = try IMPBContent.canonical(message).get()
        var arrived = IMPB_C2C_msg()
        IMPBContent.fill(&arrived, with: content)
        #expect(arrived.type == message.type)
        #expect(arrived.content == message.content)
        #expect(try IMPB_C2C_msg(wire: arrived.wireBytes(as: [UInt8].self)) == arrived)
    }

    @Test func `whatever is stored is written and read again`() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let number = Int64.random(in: .min ... .max, using: &random) >> Int.random(in: 0..<63, using: &random)
            var message = IMPB_C2C_msg()
            IMPBContent.fill(&message, with: try custom("impb/\(number)", [UInt8](repeating: 1, count: 8)))
            #expect(message.hasEncodableEnums)
            #expect(try IMPB_C2C_msg(wire: message.wireBytes(as: [UInt8].self)) == message)
            var content = Hermes_V1_Content()
            content.custom.type = "impb/\(number)"
            #expect(throws: HermesError.self) { try CanonicalContent.validated(content).get() }
        }
    }

    @Test func `only the server makes its own types`() throws {
        var native = Hermes_V1_Content()
        native.custom.type = "impb/5"
        #expect(throws: HermesError.self) { try CanonicalContent.validated(native).get() }
        var message = IMPB_C2C_msg()
        message.type = .custom
        message.content = try IMPB_msg_cumstom_content.with { $0.info.key = "impb/5" }.wireBytes()
        #expect(throws: HermesError.self) { try IMPBContent.canonical(message).get() }
        native.custom.type = "impbish/5"
        #expect(throws: Never.self) { try CanonicalContent.validated(native).get() }
    }

    @Test(arguments: [(["a", "b"], true), (["a", "a"], false), (["\u{E9}", "e\u{301}"], false)])
    func `no pair of ext is dropped silently`(_ keys: [String], _ isAccepted: Bool) throws {
        var message = IMPB_C2C_msg()
        message.type = .text
        message.content = Data(try IMPBContent.text("hello"))
        message.ext = keys.map { key in IMPB_ext_key_info.with { $0.key = key } }
        switch IMPBContent.canonical(message) {
        case .success(let content):
            #expect(isAccepted)
            #expect(CanonicalContent.parsed(content).attributes.count == keys.count)
        case .failure(let error):
            #expect(!isAccepted)
            #expect(error.code == .invalidArgument)
        }
    }

    @Test(arguments: [IMPB_Content_type.text, .image, .sound, .location, .expression, .custom])
    func `a body of which nothing is known is refused`(_ type: IMPB_Content_type) throws {
        var message = IMPB_C2C_msg()
        message.type = type
        // These bytes are field 13 with a number. They parse as any message, but have no known field.
        message.content = Data([0x68, 0x65])
        let error = #expect(throws: HermesError.self) { try IMPBContent.canonical(message).get() }
        #expect(error?.code == .invalidArgument)
    }

    @Test func `a text with a field of a newer version is a text still`() throws {
        var message = IMPB_C2C_msg()
        message.type = .text
        message.content = try IMPB_msg_text_content.with { $0.text = "hello" }.wireBytes()
        message.content.append(contentsOf: [0x68, 0x65])
        let content = try IMPBContent.canonical(message).get()
        #expect(CanonicalContent.parsed(content).text == "hello")
    }

    /// A text may fit into its own frame, but not into an answer together with the answer's other fields.
    @Test func `a message of any length fits into an answer with history`() throws {
        let reader = Principal(
            user: try #require(UserID(1)),
            nickName: try NickName("ann"),
            device: try #require(DeviceID("phone"))
        )
        for count in stride(from: 65_200, through: 65_600, by: 4) {
            var content = Hermes_V1_Content()
            content.text = String(repeating: "x", count: count)
            let message = Message(
                id: MessageID(high: 1, low: 2),
                conversation: .group(try #require(GroupID(rawValue: 1))),
                conversationSeq: .max,
                sender: try #require(UserID(2)),
                senderName: String(repeating: "n", count: 64),
                senderDevice: nil,
                clientID: nil,
                content: try CanonicalContent.encoded(content).get(),
                sentAt: Timestamp(rawValue: .max),
                expiresAt: Timestamp(rawValue: .max)
            )
            let page = HistoryPage(messages: [message], hasMore: true)
            let answer = IMPBTranslation.history(page, reader: reader)
            #expect(answer.messages.count == 1, "\(count)")
            #expect(try answer.wireBytes(as: [UInt8].self).count <= IMPBFrame.maxBodyBytes - 32, "\(count)")
        }
    }
}
