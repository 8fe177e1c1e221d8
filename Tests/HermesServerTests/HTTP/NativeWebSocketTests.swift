// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesServer

/// The native protocol over WebSocket, against a whole server.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct NativeWebSocketTests {
    private static let subprotocol = ["Sec-WebSocket-Protocol": "hermes.v1"]

    private static func bytes(_ id: UInt64, _ body: Hermes_V1_Packet.OneOf_Body) throws -> [UInt8] {
        var packet = Hermes_V1_Packet()
        packet.id = id
        packet.body = body
        var buffer = ByteBuffer()
        try DelimitedFrame(packet).write(into: &buffer)
        return Array(buffer.readableBytesView)
    }

    /// Returns the packet in a message, which must be complete.
    private static func packet(_ message: (first: UInt8, payload: [UInt8])) throws -> Hermes_V1_Packet {
        #expect(message.first == 0x82)
        var buffer = ByteBuffer(bytes: message.payload)
        var decoder = DelimitedFrameDecoder(maxFrameBytes: 1 << 20)
        let frame = try #require(try decoder.next(from: &buffer))
        #expect(buffer.readableBytes == 0)
        return try frame.packet()
    }

    private static func open(_ server: TestServer) async throws -> WebSocketClient {
        let client = try await WebSocketClient.connect(port: server.port("http"))
        try await client.send(WebSocketClient.request("/ws", subprotocol))
        let head = try await client.head()
        #expect(head.status == 101, "\(head.text)")
        #expect(head.text.contains("sec-websocket-protocol: hermes.v1"))
        return client
    }

    private static func configuration(_ server: TestServer, device: String) throws -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: try #require(ServerAddress("ws://127.0.0.1:\(server.port("http"))")),
            device: DeviceDescription(id: device)
        )
        configuration.conditions = DeviceConditions()
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(20)], maxAdvisedWindow: .zero)
        return configuration
    }

    private static func texts(_ count: Int, from client: HermesClient) async -> [String] {
        var texts: [String] = []
        for await event in client.events {
            guard let message = event.message else { continue }
            texts.append(message.text ?? "")
            if texts.count == count { break }
        }
        return texts
    }

    @Test func `frames may be cut over messages and share one; each that comes back is a message`() async throws {
        try await withServer { server in
            let client = try await Self.open(server)
            let ping = try Self.bytes(1, .ping(Hermes_V1_Ping()))
            for byte in ping { try await client.send(WebSocketClient.frame(0x82, [byte])) }
            #expect(try Self.packet(try await client.next()).id == 1)
            let two = try Self.bytes(2, .ping(Hermes_V1_Ping())) + Self.bytes(3, .ping(Hermes_V1_Ping()))
            try await client.send(WebSocketClient.frame(0x82, two))
            #expect(try Self.packet(try await client.next()).id == 2)
            #expect(try Self.packet(try await client.next()).id == 3)
            #expect(
                try await HTTPProbe.get("/metrics", port: server.port("http")).text
                    .contains("hermes_connections_open{gateway=\"delimited.websocket\"} 1")
            )
        }
    }

    @Test(arguments: RegistrationRule.allCases)
    func `where registration is closed, no account takes a name that somebody else may go by`(
        _ rule: RegistrationRule
    ) async throws {
        func ruled(_ settings: inout ServerSettings) { settings.accounts.registration = rule }
        try await withServer(configure: ruled) { server in
            let accounts = try server.messenger().accounts
            let eve = try await accounts.createAccount(nickName: "eve", password: "secret12")
            let client = try await Self.open(server)
            func ask(_ id: UInt64, _ body: Hermes_V1_Packet.OneOf_Body) async throws -> Hermes_V1_Result {
                try await client.send(WebSocketClient.frame(0x82, Self.bytes(id, body)))
                while true {
                    let packet = try Self.packet(try await client.next())
                    if packet.id == id { return packet.result }
                }
            }
            func rename(_ id: UInt64, _ name: String) async throws -> Hermes_V1_Result {
                var request = Hermes_V1_AccountRequest()
                request.changeProfile.nickName = name
                return try await ask(id, .account(request))
            }
            var login = Hermes_V1_Authenticate()
            login.password.nickName = "eve"
            login.password.password = "secret12"
            login.device.id = "phone"
            let session = try await ask(1, .authenticate(login)).session
            #expect(session.uid == UInt32(eve.id.rawValue))
            let same = try await rename(2, "Eve").account
            #expect(same.nickName == "Eve")
            let refusal = try await rename(3, "root")
            #expect((refusal.error.code == 2003) == (rule == .closed))
            let url = "https://example.org/eve.png"
            var avatar = Hermes_V1_AccountRequest()
            avatar.changeProfile.avatarURL = url
            let changed = try await ask(4, .account(avatar)).account
            #expect(changed.avatarURL == url)
            #expect(changed.nickName == (rule == .closed ? "Eve" : "root"))
            // The operator may change the name.
            let renamed = try await accounts.changeProfile(of: eve.id, nickName: "zoe", avatarURL: nil)
            #expect(renamed.nickName.key == "zoe")
        }
    }

    @Test(
        arguments: [
            ("/ws", ["Sec-WebSocket-Protocol": "mqtt"], 426), ("/ws", ["Sec-WebSocket-Protocol": nil], 426),
            ("/mqtt", subprotocol, 426), ("/delimited", subprotocol, 404),
        ] as [(String, [String: String?], Int)]
    )
    func `nothing else is served there, and it nowhere else`(
        path: String,
        changes: [String: String?],
        status: Int
    )
        async throws
    {
        try await withServer { server in
            let client = try await WebSocketClient.connect(port: server.port("http"))
            try await client.send(WebSocketClient.request(path, changes))
            #expect(try await client.head().status == status)
        }
    }

    @Test func `what is no frame ends the connection, and nobody else's`() async throws {
        func limit(_ settings: inout ServerSettings) { settings.gateways.limits.maxFrameBytes = 65_536 }
        try await withServer(configure: limit) { server in
            let other = try await Self.open(server)
            let long: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]
            for bytes in [[UInt8](repeating: 0xFF, count: 6), long, [3, 0xFF, 0xFF, 0xFF]] {
                let client = try await Self.open(server)
                try await client.send(WebSocketClient.frame(0x82, bytes))
                var message = try await client.next()
                while message.first == 0x82 { message = try await client.next() }
                #expect(message.first == 0x88)
                #expect(await client.isClosed())
            }
            // A frame of 70,000 bytes is reported as too long, in the packet and in the close frame.
            let client = try await Self.open(server)
            try await client.send(WebSocketClient.frame(0x82, [0xF0, 0xA2, 0x04, 0]))
            #expect(try Self.packet(try await client.next()).kicked.code == 4003)
            #expect(try await client.next() == (0x88, [0x03, 0xF1]))
            try await other.send(WebSocketClient.frame(0x82, Self.bytes(9, .ping(Hermes_V1_Ping()))))
            #expect(try Self.packet(try await other.next()).id == 9)
        }
    }

    @Test(arguments: TestStore.allCases)
    func `the SDK talks both ways with one on TCP, gets pushes, and comes back`(store: TestStore) async throws {
        try await withServer(store: store) { server in
            let web = try HermesClient(Self.configuration(server, device: "browser"))
            let ann = try await web.logIn(.register(nickName: "ann", password: "secret"))
            var plain = HermesClient.Configuration(
                server: ServerAddress(port: server.port("delimited")),
                device: DeviceDescription(id: "phone")
            )
            plain.conditions = DeviceConditions()
            plain.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(20)], maxAdvisedWindow: .zero)
            let phone = try HermesClient(plain)
            let bob = try await phone.logIn(.register(nickName: "bob", password: "secret"))
            // The text is too long for the short forms of a WebSocket header.
            let long = String(repeating: "x", count: 65_000)
            for text in ["1", long, "3"] {
                try await web.send(text, to: .user(bob.uid)).receipt()
                try await phone.send(text, to: .user(ann.uid)).receipt()
            }
            #expect(await Self.texts(3, from: phone) == ["1", long, "3"])
            #expect(await Self.texts(3, from: web) == ["1", long, "3"])

            let api = try await APIClient(server)
            let body = #"{"to":{"user":"ann"},"title":"Sale","data":{"n":1}}"#
            #expect(try await api.send("POST", "/v1/push", body).status == 202)
            for await event in web.events {
                guard let push = event.push else { continue }
                #expect(push.title == "Sale")
                #expect(push.dataJSON == #"{"n":1}"#)
                break
            }

            try await server.restart()
            try await phone.send("after", to: .user(ann.uid)).receipt()
            #expect(await Self.texts(1, from: web) == ["after"])
            await web.close()
            await phone.close()
        }
    }

    @Test(.enabled(if: TestCertificate.canBeMade)) func `the SDK by wss`() async throws {
        let files = try TestCertificate()
        defer { files.remove() }
        func encrypted(_ settings: inout ServerSettings) { settings.http.listener.tls = files.settings }
        try await withServer(configure: encrypted) { server in
            var configuration = HermesClient.Configuration(
                server: try #require(ServerAddress("wss://127.0.0.1:\(server.port("http"))/ws")),
                device: DeviceDescription(id: "browser")
            )
            configuration.conditions = DeviceConditions()
            configuration.reconnect = .never
            // The system does not trust the issuer of the certificate.
            await #expect(throws: HermesClientError.self) {
                try await HermesClient(configuration).logIn(.register(nickName: "ann", password: "secret"))
            }
            configuration.server.security = .tls(
                TLSOptions(trustedCertificates: .file(files.certificate), serverName: "localhost")
            )
            let client = try HermesClient(configuration)
            let session = try await client.logIn(.register(nickName: "ann", password: "secret"))
            #expect(try await client.account(id: session.uid).nickName == "ann")
            await client.close()
        }
    }
}
