// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import HermesGateways
import HermesServer
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// The native protocol as JSON in text messages at `/ws`, for web pages, which have no protobuf.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct WebSocketJSONTests {
    private static func binary(_ packet: Hermes_V1_Packet) throws -> [UInt8] {
        var buffer = ByteBuffer()
        try DelimitedFrame.write(packet, into: &buffer)
        return WebSocketClient.frame(0x82, Array(buffer.readableBytesView))
    }

    private static func ping(_ id: UInt64) throws -> [UInt8] {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.ping = Hermes_V1_Ping()
        return try binary(packet)
    }

    /// A ping with half a megabyte in an unknown field.
    private static func longPing(_ id: UInt64) throws -> [UInt8] {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.ping = Hermes_V1_Ping()
        // These bytes are the field 1,000 with a length of 500,000 bytes.
        let unknown: [UInt8] = [0xC2, 0x3E, 0xA0, 0xC2, 0x1E] + [UInt8](repeating: 0, count: 500_000)
        var body = try packet.wireBuffer()
        body.writeBytes(unknown)
        var buffer = ByteBuffer()
        try DelimitedFrame(body: body).write(into: &buffer)
        return WebSocketClient.frame(0x82, Array(buffer.readableBytesView))
    }

    @Test(arguments: TestStore.allCases)
    func `a page logs in, sends, gets, acknowledges and comes back`(store: TestStore) async throws {
        try await withServer(store: store) { server in
            let (ann, bob) = (try await WebPage.open(server), try await WebPage.open(server))
            let annID = try await ann.register("ann")
            let bobID = try await bob.register("bob")
            // Bytes are in base64, and a field of a newer version is ignored. Blanks and escapes are allowed as in any
            // JSON.
            let content = #"{"custom":{"type":"app","data":"AP8="},"attributes":{"k":"\u00e9\n"},"newer":[{}]}"#
            try await ann.send(
                "\n{ \"id\" : 18446744073709551615, \"send\": {\"to\":{\"uid\":\(bobID)},\"clientId\":\"c1\",\"content\":\(content)}}"
            )
            let receipt = try #require(try await ann.result("18446744073709551615")["receipt"] as? [String: Any])
            #expect(receipt["conversationSeq"] as? String == "1")
            let event = try await bob.next("event")
            let message = try #require(event["message"] as? [String: Any])
            #expect(message["fromUid"] as? Int == annID)
            #expect(message["id"] as? String == receipt["messageId"] as? String)
            let got = try #require(message["content"] as? [String: Any])
            #expect((got["custom"] as? [String: String])?["data"] == "AP8=")
            #expect((got["attributes"] as? [String: String])?["k"] == "é\n")
            let seq = try #require(event["seq"] as? String)
            try await bob.send(#"{"id":"2","acknowledge":{"upToSeq":"\#(seq)"}}"#)
            _ = try await bob.result("2")

            let again = try await WebPage.open(server)
            try await again.send(
                #"{"id":"1","authenticate":{"password":{"nickName":"bob","password":"secret12"},"device":{"id":"page"}}}"#
            )
            let session = try #require(try await again.result("1")["session"] as? [String: Any])
            #expect(session["acknowledgedSeq"] as? String == seq)
            // The older connection of the device gets the reason why it ends, in its own form.
            #expect(try await bob.next("kicked")["reason"] as? String == "REASON_REPLACED")
        }
    }

    @Test func `a page of entries that is longer in JSON than the queue leaves whole, in its order`() async throws {
        try await withServer(configure: Self.smallQueue) { server in
            let page = try await WebPage.open(server)
            let ann = try #require(UserID(UInt32(try await page.register("ann"))))
            let sender = Principal(
                user: ann,
                nickName: try NickName("ann"),
                device: try #require(DeviceID("other"))
            )
            // This text is six times as long in JSON.
            let content = try MessageText.content(String(repeating: "\u{1}", count: 3_000))
            let count = 12
            for _ in 0..<count {
                let draft = MessageDraft(conversation: .direct(between: ann, and: ann), clientID: nil, content: content)
                let messages = try server.messenger().messages
                _ = try await withCheckedContinuation { continuation in
                    messages.send(draft, from: sender) { continuation.resume(returning: $0) }
                }.get()
                _ = try await page.next("event")
            }
            try await page.send(#"{"id":"5","synchronize":{"limit":12}}"#)
            try await page.send(#"{"id":"6","ping":{}}"#)
            let answer = try #require(try await page.result("5")["synchronized"] as? [String: Any])
            let asked = try #require(answer["count"] as? Int)
            #expect((8...count).contains(asked))
            for seq in 1...asked { #expect(try await page.next()["event"].flatMap(Self.seq) == "\(seq)") }
            #expect(try await page.next()["pong"] != nil)
        }
    }

    private static func smallQueue(_ settings: inout ServerSettings) {
        settings.gateways.limits.outboundQueueBytes = 65_536
    }

    private static func seq(_ event: Any) -> String? { (event as? [String: Any])?["seq"] as? String }

    @Test func `answers and events have the form of the client's last message, the first that of the subprotocol`()
        async throws
    {
        try await withServer { server in
            // The server selects the first subprotocol that it knows, in the client's order.
            for (asked, chosen, isText) in [
                ("hermes.v1", "hermes.v1", false), ("hermes.v1.json", "hermes.v1.json", true),
                ("hermes.v9, hermes.v1.json, hermes.v1", "hermes.v1.json", true),
                ("hermes.v1, hermes.v1.json", "hermes.v1", false),
            ] {
                let client = try await WebSocketClient.connect(port: server.port("http"))
                try await client.send(WebSocketClient.request("/ws", ["Sec-WebSocket-Protocol": asked]))
                let head = try await client.head()
                #expect(head.status == 101)
                #expect(head.text.split(separator: "\r\n").contains("sec-websocket-protocol: \(chosen)"))
                // The first bytes are not a frame. The answer has the form of the subprotocol.
                try await client.send(WebSocketClient.frame(0x82, [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]))
                #expect(try await client.next().first == (isText ? 0x81 : 0x82))
                #expect(try await client.next() == (0x88, [0x03, 0xF1]))
            }
            for subprotocol in ["hermes.v1", "hermes.v1.json"] {
                let page = try await WebPage.open(server, subprotocol)
                let texts = #"{"id":"1","ping":{}}"#
                try await page.send(texts)
                #expect(try await page.client.next().first == 0x81)
                try await page.client.send(Self.ping(2))
                #expect(try await page.client.next().first == 0x82)
                // First both forms are in one segment. Then a text arrives in pieces of one byte, with a ping between
                // them.
                try await page.client.send(WebSocketClient.frame(0x81, Array(texts.utf8)) + Self.ping(3))
                #expect(try await page.client.next().first == 0x81)
                #expect(try await page.client.next().first == 0x82)
                var pieces = WebSocketClient.frame(0x01, [])
                for byte in texts.utf8 { pieces += WebSocketClient.frame(0x00, [byte]) }
                pieces += WebSocketClient.frame(0x89, [7]) + WebSocketClient.frame(0x80, [])
                try await page.client.send(pieces)
                #expect(try await page.client.next() == (0x8A, [7]))
                let (first, payload) = try await page.client.next()
                #expect(first == 0x81)
                #expect(String(decoding: payload, as: UTF8.self).hasPrefix(#"{"id":"1","pong":{"#))
            }
        }
    }

    @Test func `rooms: pages and apps share them, each in its form`() async throws {
        try await withServer { server in
            let (page, other) = (try await WebPage.open(server), try await WebPage.open(server))
            for (page, name) in [(page, "ann"), (other, "bob")] {
                _ = try await page.register(name)
                try await page.send(#"{"id":"2","room":{"room":"hall","enter":{"user":{"name":"\#(name)"}}}}"#)
                _ = try await page.result("2")
            }
            var ping = Hermes_V1_Packet()
            ping.id = 3
            ping.ping = Hermes_V1_Ping()
            try await other.client.send(Self.binary(ping))
            #expect(try await other.client.next().first == 0x82)
            for number in 1...3 {
                try await page.send(#"{"room":{"room":"hall","text":{"text":"hello \#(number)"}}}"#)
                while true {
                    let room = try #require(try await page.next("ephemeral")["room"] as? [String: Any])
                    guard let text = room["text"] as? [String: String] else { continue }
                    #expect(text["text"] == "hello \(number)")
                    break
                }
                let (first, payload) = try await other.client.next()
                #expect(first == 0x82)
                var bytes = ByteBuffer(bytes: payload)
                var decoder = DelimitedFrameDecoder()
                #expect(try decoder.next(from: &bytes)?.packet().ephemeral.room.text.text == "hello \(number)")
            }
        }
    }

    @Test func `what is no packet ends that connection, with the reason in its form`() async throws {
        func limit(_ settings: inout ServerSettings) {
            settings.gateways.limits.maxLoginFrameBytes = 2_000
            settings.gateways.limits.maxFrameBytes = 2_000_000
        }
        try await withServer(configure: limit) { server in
            let other = try await WebPage.open(server)
            func refuses(_ payload: [UInt8], _ code: Int, closing: UInt16, first: UInt8 = 0x81) async throws {
                let page = try await WebPage.open(server)
                try await page.client.send(WebSocketClient.frame(first, payload))
                let kicked = try await page.next("kicked")
                #expect(kicked["code"] as? Int == code, "\(kicked)")
                #expect(try await page.client.next() == (0x88, [UInt8(closing >> 8), UInt8(closing & 0xFF)]))
                #expect(await page.client.isClosed())
            }
            for text in ["{", "[]", "null", #"{"id":-1}"#, #"{"presence":{"appState":4294967296}}"#, "hello"] {
                try await refuses(Array(text.utf8), 4006, closing: 1002)
            }
            try await refuses(Array(#"{"send":{"clientId":""#.utf8) + [0xFF, 0x22, 0x7D, 0x7D], 4007, closing: 1007)
            // Before the login, a text has the same limit as a frame. A text that is too long is refused because of its
            // header.
            try await refuses([UInt8](repeating: 0x20, count: 2_001), 4003, closing: 1009)
            let page = try await WebPage.open(server)
            try await page.client.send([0x81, 0xFF, 0x7F, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4])
            #expect(try await page.next("kicked")["code"] as? Int == 4003)
            // After the login, endless nesting is refused.
            let deep = try await WebPage.open(server)
            _ = try await deep.register("ann")
            let nested = String(repeating: #"{"a":"#, count: 300_000)
            try await deep.send(#"{"new":"# + nested)
            #expect(try await deep.next("kicked")["code"] as? Int == 4006)
            try await other.send(#"{"id":"9","ping":{}}"#)
            #expect(try await other.next()["id"] as? String == "9")
        }
    }

    @Test func `JSON costs its sender more than bytes do`() async throws {
        func limit(_ settings: inout ServerSettings) {
            settings.gateways.limits.requestsPerSecond = 100
            settings.gateways.limits.throttled = .seconds(1)
        }
        try await withServer(configure: limit) { server in
            let page = try await WebPage.open(server)
            _ = try await page.register("ann")
            // The limit is 100 units per second. Half a megabyte costs 62 units, plus 488 units because it is JSON. So
            // the first text is paid for after 4.5 s, and the second text is too much.
            let blanks = String(repeating: " ", count: 500_000)
            for _ in 0..<3 { try? await page.send(#"{"ping":{}}"# + blanks) }
            var answers = 0
            var code: Int?
            while code == nil, answers < 3 {
                let packet = try await page.next()
                code = (packet["kicked"] as? [String: Any])?["code"] as? Int
                answers += 1
            }
            #expect(code == 3001)
            // The same number of bytes in protobuf is answered. The bytes cost 186 units, of which 100 may be spent at
            // once.
            let app = try await WebPage.open(server)
            _ = try await app.register("bob")
            for number: UInt64 in 2...4 { try await app.client.send(Self.longPing(number)) }
            for number: UInt64 in 2...4 {
                let (first, payload) = try await app.client.next()
                #expect(first == 0x82)
                var bytes = ByteBuffer(bytes: payload)
                var decoder = DelimitedFrameDecoder()
                #expect(try decoder.next(from: &bytes)?.packet().id == number)
            }
        }
    }
}
