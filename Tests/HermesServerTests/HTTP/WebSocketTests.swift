// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HermesServer
import HermesTestKit
import NIOCore
import Testing

/// MQTT over WebSocket, against a whole server.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct WebSocketTests {
    /// CONNECT of 3.1.1 with a clean session.
    private static func connect(_ id: String) -> [UInt8] {
        let id = Array(id.utf8)
        let body = [0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 60, 0, UInt8(id.count)] + id
        return [0x10, UInt8(body.count)] + body
    }

    private static let connack: [UInt8] = [0x20, 2, 0, 0]
    private static let subscribe: [UInt8] = [0x82, 6, 0, 1, 0, 1, 0x74, 0]
    private static let suback: [UInt8] = [0x90, 3, 0, 1, 0]
    private static let publish: [UInt8] = [0x30, 4, 0, 1, 0x74, 0x78]
    private static let ping: [UInt8] = [0xC0, 0]
    private static let pong: [UInt8] = [0xD0, 0]

    private func open(_ server: TestServer, _ changes: [String: String?] = [:]) async throws -> WebSocketClient {
        let client = try await WebSocketClient.connect(port: server.port("http"))
        try await client.send(WebSocketClient.request("/mqtt", changes))
        let head = try await client.head()
        #expect(head.status == 101, "\(head.text)")
        return client
    }

    private func connected(_ server: TestServer) async throws -> WebSocketClient {
        let client = try await open(server)
        try await client.send(WebSocketClient.frame(0x82, Self.connect("ws")))
        #expect(try await client.next() == (0x82, Self.connack))
        return client
    }

    /// Reads frames until they contain `count` bytes. The bytes may be in any number of frames.
    private func bytes(_ count: Int, from client: WebSocketClient) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let frame = try await client.next()
            #expect(frame.first == 0x82)
            bytes += frame.payload
        }
        return bytes
    }

    // 3.1.1 [MQTT-6.0.0-4], 5.0 [MQTT-6.0.0-4]
    @Test func `the handshake is the standard's, and nothing else is negotiated`() async throws {
        try await withServer { server in
            let client = try await WebSocketClient.connect(port: server.port("http"))
            let offers = ["Sec-WebSocket-Extensions": "permessage-deflate", "Sec-WebSocket-Protocol": "mqttv3.1, mqtt"]
            try await client.send(WebSocketClient.request("/mqtt?x=1", offers))
            let head = try await client.head()
            #expect(head.status == 101)
            #expect(head.text.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="))
            #expect(head.text.contains("sec-websocket-protocol: mqtt\r") || head.text.hasSuffix("protocol: mqtt"))
            #expect(!head.text.contains("extensions"))
            try await client.send(WebSocketClient.frame(0x82, Self.connect("ws")))
            #expect(try await client.next() == (0x82, Self.connack))
        }
    }

    @Test(
        arguments: [
            (["Sec-WebSocket-Protocol": nil], 426), (["Sec-WebSocket-Protocol": "chat"], 426),
            (["Sec-WebSocket-Protocol": "MQTT"], 426), (["Sec-WebSocket-Version": "8"], 426),
            (["Sec-WebSocket-Version": nil], 426), (["Sec-WebSocket-Key": nil], 426), (["Sec-WebSocket-Key": "x"], 426),
            (["Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ"], 426), (["Upgrade": nil], 426),
            (["Connection": "close"], 426),
            (["Upgrade": "h2c"], 426),
        ] as [([String: String?], Int)]
    )
    func `a handshake that is not good is answered as HTTP`(changes: [String: String?], status: Int) async throws {
        try await withServer { server in
            let client = try await WebSocketClient.connect(port: server.port("http"))
            try await client.send(WebSocketClient.request("/mqtt", changes))
            let head = try await client.head()
            #expect(head.status == status)
            #expect(head.text.contains("sec-websocket-version: 13"))
        }
    }

    @Test func `other paths and methods are no WebSockets`() async throws {
        try await withServer { server in
            for (request, status) in [
                (WebSocketClient.request("/"), 200), (WebSocketClient.request("/mqtt/"), 426),
                (WebSocketClient.request("/healthz"), 200), (WebSocketClient.request("/impb"), 404),
                (WebSocketClient.request("/mqtt").replacing("GET", with: "POST"), 404),
            ] {
                let client = try await WebSocketClient.connect(port: server.port("http"))
                try await client.send(request)
                #expect(try await client.head().status == status, "\(request.prefix(30))")
            }
        }
    }

    @Test func `web pages may be limited to known origins`() async throws {
        func limit(_ settings: inout ServerSettings) { settings.webSocket.origins = ["https://good.example"] }
        func close(_ settings: inout ServerSettings) { settings.webSocket.isEnabled = false }
        try await withServer(configure: limit) { server in
            _ = try await open(server, ["Origin": "https://GOOD.example"])
            _ = try await open(server)
            for origin in ["https://bad.example", "null", "https://good.example.bad.example", "http://good.example"] {
                let client = try await WebSocketClient.connect(port: server.port("http"))
                try await client.send(WebSocketClient.request("/mqtt", ["Origin": origin]))
                #expect(try await client.head().status == 403)
            }
        }
        try await withServer(configure: close) { server in
            let client = try await WebSocketClient.connect(port: server.port("http"))
            try await client.send(WebSocketClient.request())
            #expect(try await client.head().status == 404)
        }
    }

    // 3.1.1 [MQTT-6.0.0-2], 5.0 [MQTT-6.0.0-2]
    @Test func `packets may be cut over frames, and share one`() async throws {
        try await withServer { server in
            let client = try await open(server)
            let connect = Self.connect("ws")
            // Each byte is a separate frame of one message, with a ping between them.
            for (index, byte) in connect.enumerated() {
                try await client.send(WebSocketClient.frame(index == 0 ? 0x02 : 0x00, [byte]))
            }
            try await client.send(WebSocketClient.frame(0x89, [9, 9]) + WebSocketClient.frame(0x80, []))
            var frames = [try await client.next(), try await client.next()]
            frames.sort { $0.first < $1.first }
            #expect(frames[0] == (0x82, Self.connack))
            #expect(frames[1] == (0x8A, [9, 9]))
            // Several packets are in one frame, which is sent byte by byte.
            for byte in WebSocketClient.frame(0x82, Self.subscribe + Self.publish + Self.ping) {
                try await client.send([byte])
            }
            let answer = try await bytes(13, from: client)
            #expect(
                answer == Self.suback + Self.publish + Self.pong || answer == Self.suback + Self.pong + Self.publish
            )
            // The packet is sent together with the request. Bytes after the handshake are not lost.
            let eager = try await WebSocketClient.connect(port: server.port("http"))
            let first = Array(WebSocketClient.request().utf8) + WebSocketClient.frame(0x82, connect)
            try await eager.send(first)
            #expect(try await eager.head().status == 101)
            #expect(try await eager.next() == (0x82, Self.connack))
        }
    }

    @Test func `large packets go both ways`() async throws {
        try await withServer { server in
            let client = try await connected(server)
            try await client.send(WebSocketClient.frame(0x82, Self.subscribe))
            _ = try await bytes(5, from: client)
            let payload = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            let length = 3 + payload.count
            let packet =
                [0x30, UInt8(length & 127) | 128, UInt8(length >> 7 & 127) | 128, UInt8(length >> 14)]
                + [0, 1, 0x74] + payload
            try await client.send(WebSocketClient.frame(0x82, packet))
            #expect(try await bytes(packet.count, from: client) == packet)
        }
    }

    // 3.1.1 [MQTT-6.0.0-1], 5.0 [MQTT-6.0.0-1]: a text message is the first of these.
    @Test(
        arguments: [
            (WebSocketClient.frame(0x81, Array("text".utf8)), 1003), ([0x82, 0x01, 0x00], 1002), ([0xC2, 0x80], 1002),
            ([0x83, 0x80], 1002), ([0x80, 0x80], 1002), ([0x09, 0x80], 1002), ([0x89, 0xFE], 1002),
            ([0x82, 0xFF, 0xFF], nil), (WebSocketClient.frame(0x88, [0x03, 0xE8]), 1000),
            (WebSocketClient.frame(0x88, []), 1000), (WebSocketClient.frame(0x88, [1]), 1002),
            (WebSocketClient.frame(0x88, [0x0F, 0xA0, 0x78]), 4000),
        ] as [([UInt8], Int?)]
    )
    func `who breaks the rules is told and closed, and nobody else`(bytes: [UInt8], code: Int?) async throws {
        try await withServer { server in
            let other = try await connected(server)
            let client = try await open(server)
            try await client.send(bytes)
            if let code {
                #expect(try await client.next() == (0x88, [UInt8(code >> 8), UInt8(code & 0xFF)]))
                #expect(await client.isClosed())
            } else {
                // The frame cannot be refused yet, because the rest of the length is missing.
                try await client.send([0, 0, 0, 0, 0, 0, 0])
                #expect(try await client.next() == (0x88, [0x03, 0xEA]))
            }
            try await other.send(WebSocketClient.frame(0x82, Self.ping))
            #expect(try await other.next() == (0x82, Self.pong))
        }
    }

    @Test func `bytes that are no MQTT end the connection with a close frame`() async throws {
        try await withServer { server in
            let client = try await open(server)
            try await client.send(WebSocketClient.frame(0x82, [0x00, 0x00]))
            var frame = try await client.next()
            while frame.first == 0x82 { frame = try await client.next() }
            #expect(frame == (0x88, [0x03, 0xEA]))
        }
    }

    @Test func `connections are limited with those of all gateways, and end when the server stops`() async throws {
        func limit(_ settings: inout ServerSettings) { settings.gateways.limits.connections = 1 }
        try await withServer(configure: limit) { server in
            let first = try await connected(server)
            let second = try await WebSocketClient.connect(port: server.port("http"))
            try await second.send(WebSocketClient.request())
            // The handshake was valid, but there is no free place.
            _ = try? await second.head()
            while let frame = try? await second.next() { #expect(frame.first == 0x88) }
            #expect(await second.isClosed())
            #expect(try await HTTPProbe.get("/healthz", port: server.port("http")).status == 200)
            #expect(
                try await HTTPProbe.get("/metrics", port: server.port("http")).text
                    .contains("hermes_connections_open{gateway=\"mqtt.websocket\"} 1")
            )
            await server.stop()
            var last = try await first.next()
            while last.first == 0x82 { last = try await first.next() }
            #expect(last == (0x88, [0x03, 0xE9]))
        }
    }

    @Test func `a connection that asks for nothing does not keep the server from stopping`() async throws {
        let started = ContinuousClock.now
        try await withServer { server in
            let silent = try await WebSocketClient.connect(port: server.port("http"))
            let half = try await WebSocketClient.connect(port: server.port("http"))
            try await half.send("GET /mqtt HT")
            _ = try await HTTPProbe.get("/healthz", port: server.port("http"))
            await server.stop()
            #expect(await silent.isClosed())
            #expect(await half.isClosed())
        }
        #expect(ContinuousClock.now - started < .seconds(20))
    }
}
