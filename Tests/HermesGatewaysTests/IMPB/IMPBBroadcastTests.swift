// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Broadcasts over IMPB: the right to send them, their limits, and their author.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct IMPBBroadcastTests {
    private static func text(_ text: String, from: Int32 = 0) throws -> IMPB_C2C_msg {
        var content = IMPB_msg_text_content()
        content.text = text
        var message = IMPB_C2C_msg()
        message.from = from
        message.content = try content.wireBytes()
        return message
    }

    private static func send(_ message: IMPB_C2C_msg, by client: IMPBTestClient, seq: UInt32) async throws {
        var base = IMPB_base_msg()
        base.type = .broadcast
        base.body = try message.wireBytes()
        try await client.write(.message, seq, base)
    }

    /// Returns the next frame, which must be a broadcast of type 3.
    private static func next(of client: IMPBTestClient) async throws -> IMPB_C2C_msg {
        while true {
            let frame = try await client.next()
            guard frame.type == .message else { continue }
            let base = try IMPB_base_msg(wire: frame.body)
            #expect(base.type == .broadcast)
            return try IMPB_C2C_msg(wire: base.body)
        }
    }

    @Test func `an account that the rules name reaches everyone under its own name; others nobody`() async throws {
        let access = TopicAccess()
        access.replace(with: try TopicRules(parsing: "allow user ann write impb/broadcast"))
        try await GatewayHarness.with(access: access) { server in
            let (ann, eve) = (try await server.impb(), try await server.impb())
            let annUID = try await ann.register("ann").uid
            _ = try await eve.register("eve")
            // Before the login, a client may not send broadcasts and does not get any.
            try await Self.send(try Self.text("stranger"), by: eve, seq: 3)
            #expect(try await eve.reply(3).error.code == HermesError.Code.notAuthenticated.rawValue)
            let silent = try await server.impb()
            _ = try await ann.logIn("ann")
            _ = try await eve.logIn("eve")
            try await Self.send(try Self.text("eve's"), by: eve, seq: 4)
            #expect(try await eve.reply(4).error.code == HermesError.Code.forbidden.rawValue)
            // The body is refused without being parsed.
            var broken = IMPB_base_msg()
            broken.type = .broadcast
            broken.body = protobufBytes([0xFF])
            try await eve.write(.message, 5, broken)
            #expect(try await eve.reply(5).error.code == HermesError.Code.forbidden.rawValue)

            try await Self.send(try Self.text("ann's", from: 4_711), by: ann, seq: 6)
            for client in [ann, eve] {
                let message = try await Self.next(of: client)
                #expect(message.from == Int32(annUID))
                #expect(message.text == "ann's")
                #expect(message.to == 0 && message.seq == 0 && message.messageID.isEmpty)
            }
            try await silent.wire.send(IMPBFrame(seq: 9, type: .ping))
            #expect(try await silent.next().type == .ping)
            // No broadcast is stored.
            let user = try #require(UserID(annUID))
            #expect(try await server.messenger.messageStore.position(of: user).head == 0)

            server.environment.access.replace(with: TopicRules())
            try await Self.send(try Self.text("again"), by: ann, seq: 7)
            #expect(try await ann.reply(7).error.code == HermesError.Code.forbidden.rawValue)
        }
    }

    @Test func `an account that is renamed loses the right that its former name gave`() async throws {
        let access = TopicAccess(try TopicRules(parsing: "allow user ann write impb/broadcast"))
        try await GatewayHarness.with(access: access, loops: 1) { server in
            let ann = try await server.impb()
            let uid = try await ann.register("ann").uid
            _ = try await ann.logIn("ann")
            try await Self.send(try Self.text("first"), by: ann, seq: 6)
            #expect(try await Self.next(of: ann).text == "first")
            try await server.rename(uid, to: "eve")
            try await Self.send(try Self.text("again"), by: ann, seq: 7)
            #expect(try await ann.reply(7).error.code == HermesError.Code.forbidden.rawValue)
        }
    }

    @Test func `who may not read broadcasts gets none, also by rules that come later`() async throws {
        let allowed = "allow user ann write impb/broadcast\n"
        let access = TopicAccess()
        access.replace(with: try TopicRules(parsing: allowed + "deny user eve read impb/broadcast"))
        try await GatewayHarness.with(access: access) { server in
            let (ann, bob, eve) = (try await server.impb(), try await server.impb(), try await server.impb())
            for (client, name) in [(ann, "ann"), (bob, "bob"), (eve, "eve")] {
                _ = try await client.register(name)
                _ = try await client.logIn(name)
            }
            try await Self.send(try Self.text("first"), by: ann, seq: 3)
            #expect(try await Self.next(of: ann).text == "first")
            #expect(try await Self.next(of: bob).text == "first")
            // Now the rules change on the same connections. The first broadcast that eve gets is the second one.
            server.environment.access.replace(
                with: try TopicRules(parsing: allowed + "deny user bob read impb/broadcast")
            )
            await server.turnsAreTaken()
            try await Self.send(try Self.text("second"), by: ann, seq: 4)
            #expect(try await Self.next(of: ann).text == "second")
            #expect(try await Self.next(of: eve).text == "second")
            // The rules are checked at each delivery. When bob gets his pong, the broadcast would already have reached
            // him.
            await server.turnsAreTaken()
            try await bob.wire.send(IMPBFrame(seq: 9, type: .ping))
            #expect(try await bob.next().type == .ping)
            server.environment.access.replace(with: try TopicRules(parsing: allowed))
            await server.turnsAreTaken()
            try await Self.send(try Self.text("third"), by: ann, seq: 5)
            #expect(try await Self.next(of: bob).text == "third")
        }
    }

    @Test func `what is too long, or no content, goes to nobody, and every kind of content to all`() async throws {
        let access = TopicAccess()
        access.replace(with: try TopicRules(parsing: "allow user ann write impb/broadcast"))
        try await GatewayHarness.with(access: access) { server in
            let (ann, bob) = (try await server.impb(), try await server.impb())
            _ = try await ann.register("ann")
            _ = try await ann.logIn("ann")
            _ = try await bob.register("bob")
            _ = try await bob.logIn("bob")
            try await Self.send(try Self.text(String(repeating: "x", count: 32_768)), by: ann, seq: 3)
            #expect(try await ann.reply(3).error.code == HermesError.Code.tooLarge.rawValue)
            var broken = try Self.text("")
            broken.type = .location
            broken.content = protobufBytes([0x07])
            try await Self.send(broken, by: ann, seq: 4)
            #expect(try await ann.reply(4).error.code == HermesError.Code.invalidArgument.rawValue)
            // Kinds without a canonical form stay unchanged.
            var video = try Self.text("")
            video.type = .video
            video.content = protobufBytes([1, 2, 3])
            try await Self.send(video, by: ann, seq: 5)
            #expect(try await ann.reply(5).isSuc)
            let longest = String(repeating: "x", count: 32_000)
            try await Self.send(try Self.text(longest), by: ann, seq: 6)
            #expect(try await ann.reply(6).isSuc)
            let first = try await Self.next(of: bob)
            #expect(first.type == .video && [UInt8](first.content) == [1, 2, 3])
            #expect(try await Self.next(of: bob).text == longest)
        }
    }

    @Test(arguments: [
        "", "hello", "7", "[]", "{}", #"{"text":7}"#, #"{"text":"a"}}"#,
        #"{"custom":{"type":"impb/4","data":"AQ=="}}"#,
    ])
    func `what is no content is refused wherever it is published, and sent to nobody`(payload: String) throws {
        let topic = try #require(TopicName("impb/broadcast"))
        let bytes = ByteBuffer(string: payload)
        #expect(throws: HermesError.self) { try ApplicationTopics.check(topic, bytes) }
        try ApplicationTopics.check(try #require(TopicName("impb/broadcast/x")), bytes)
        let content = ByteBuffer(string: #"{"text":"a"}"#)
        try ApplicationTopics.check(topic, content)
        let frame = IMPBApplication.frame(of: Publication(topic: topic, payload: content, kind: Publication.plainKind))
        #expect(frame.readableBytes > 8)
    }
}
