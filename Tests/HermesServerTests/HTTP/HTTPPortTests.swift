// Hermes
// SPDX-License-Identifier: Apache-2.0

import HTTPTypes
import Hermes
import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import Testing

@testable import HermesServer

/// The HTTP port with unauthenticated peers.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct HTTPPortTests {
    static func answers(_ server: TestServer, _ request: String) async throws -> [Int] {
        let client = try await WebSocketClient.connect(port: server.port("http"))
        try await client.send(request)
        return statuses(await client.rest())
    }

    /// The status of each answer, in the order of the answers.
    static func statuses(_ text: String) -> [Int] {
        text.split(separator: "HTTP/1.1 ").compactMap { Int($0.prefix(3)) }
    }

    static func get(_ path: String, _ fields: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n"
    }

    private static func shortHead(_ settings: inout ServerSettings) { settings.http.limits.head = .milliseconds(200) }

    // MARK: Connections

    @Test func `a half request is told that it is too late, and silence is closed`() async throws {
        try await withServer(configure: Self.shortHead) { server in
            #expect(try await Self.answers(server, "GET /healthz HTTP/1.1\r\nHost: lo") == [408])
            let silent = try await WebSocketClient.connect(port: server.port("http"))
            #expect(await silent.rest() == "")
            // The limit also applies to the second request of a connection.
            let client = try await WebSocketClient.connect(port: server.port("http"))
            try await client.send(Self.get("/healthz"))
            #expect(try await client.head().status == 200)
            try await client.send("GET /he")
            #expect(Self.statuses(await client.rest()) == [408])
        }
    }

    @Test func `a body that does not come is told so`() async throws {
        func short(_ settings: inout ServerSettings) { settings.http.limits.body = .milliseconds(200) }
        try await withServer(configure: short) { server in
            let request = "POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf"
            let answers = try await Self.answers(server, request)
            // The route needs no body, so the answer arrives before the time limit.
            #expect(answers == [404])
        }
    }

    @Test func `one address has its connections in all protocols together`() async throws {
        func few(_ settings: inout ServerSettings) {
            settings.gateways.limits.connectionsPerAddress = 3
            settings.http.limits.head = .seconds(60)
        }
        try await withServer(configure: few) { server in
            let mqtt = try await WebSocketClient.connect(port: server.port("mqtt"))
            try await mqtt.send([0x10, 13, 0, 4, 0x4D, 0x51, 0x54, 0x54, 4, 2, 0, 60, 0, 1, 0x61])
            #expect(try await mqtt.next() == (0x20, [0, 0]))
            let half = [
                try await WebSocketClient.connect(port: server.port("http")),
                try await WebSocketClient.connect(port: server.port("http")),
            ]
            for client in half {
                // The answer shows that the server has counted it.
                try await client.send(Self.get("/healthz"))
                #expect(try await client.head().status == 200)
                try await client.send("GET /healthz HTTP/1.1\r\n")
            }
            for port in ["http", "mqtt", "delimited"] {
                let refused = try await WebSocketClient.connect(port: server.port(port))
                #expect(await refused.rest() == "", "\(port)")
            }
            #if os(Linux)
            // A client with another address checks the server in the meantime.
            let health = try await HTTPProbe.send("GET", "/healthz", port: server.port("http"), from: "127.0.0.2")
            #expect(health.status == 200)
            #endif
            try await mqtt.channel.close()
            // The place is free after the server has noticed the end.
            while (try? await HTTPProbe.get("/healthz", port: server.port("http")))?.status != 200 {}
        }
    }

    // MARK: Requests

    @Test(
        arguments: [
            ("\u{16}\u{3}\u{1}\r\n\r\n", [400]), ("GET\r\n\r\n", [400]), ("GET / HTTP/9.9\r\n\r\n", [400, 505]),
            ("GET / HTTP/1.1\r\n\r\n", [400]), ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", [400]),
            ("GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n", [400]),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", [400]),
            ("GET / HTTP/1.1\r\nHost: a\r\nX: \u{0}\r\n\r\n", [400]),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]
            ),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", [400]),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", [400, 501]),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n", [400]),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n\r\n", [413]),
            ("GET http:// HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", [400]),
            ("GET http:///healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", [400]),
            ("GET x HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
            ("GET //v1/users HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", [400]),
            ("GET /v1//users HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", [400]),
            ("GET http://a//v1/users HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", [400]),
            ("GET /healthz?a=//b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", [200]),
            ("GET /healthz HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 9000))\r\n\r\n", [431]),
            ("GET /\(String(repeating: "x", count: 9000)) HTTP/1.1\r\nHost: a\r\n\r\n", [431]),
            (
                "GET /healthz HTTP/1.1\r\nHost: a\r\n" + (0..<200).map { "X\($0): y\r\n" }.joined() + "\r\n", [431]
            ),
            (
                "GET /healthz HTTP/1.1\r\nHost: a\r\n"
                    + (0..<8).map { "X\($0): \(String(repeating: "y", count: 6000))\r\n" }.joined() + "\r\n", [431]
            ),
        ] as [(String, [Int])]
    )
    func `what is no request is told so, and the connection ends`(_ request: String, _ expected: [Int]) async throws {
        try await withServer { server in
            let answers = try await Self.answers(server, request)
            #expect(answers.count == 1 && expected.contains(answers[0]), "\(answers)")
        }
    }

    @Test func `a bad chunk ends the connection, and what comes behind is no request`() async throws {
        try await withServer { server in
            let chunked = "POST /v1/users HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            let hidden = Self.get("/healthz", "Connection: close\r\n")
            for chunk in ["zz\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "5\r\nabc\r\n0\r\n\r\n"] {
                let answers = try await Self.answers(server, chunked + chunk + hidden)
                #expect(!answers.contains(200), "\(chunk): \(answers)")
                #expect(answers.count <= 1)
            }
        }
    }

    @Test func `requests behind each other are answered in order, and a bad one after those before it`() async throws {
        try await withServer { server in
            let three = Self.get("/healthz") + Self.get("/nothing") + Self.get("/healthz")
            let behind = try await Self.answers(server, three + "nonsense\r\n\r\n")
            #expect(behind == [200, 404, 200, 400])
            let last = try await Self.answers(server, three + Self.get("/healthz", "Connection: close\r\n") + three)
            #expect(last == [200, 404, 200, 200])
            // An HTTP/1.0 connection ends without a request to close it.
            let old = try await Self.answers(server, "GET /healthz HTTP/1.0\r\n\r\n")
            #expect(old == [200])
        }
    }

    @Test func `HEAD is answered as GET is, but without the body, and the connection stays open`() async throws {
        try await withServer { server in
            let client = try await WebSocketClient.connect(port: server.port("http"))
            for path in ["/healthz", "/readyz", "/metrics", "/mqtt", "/v1/users", "/nothing"] {
                try await client.send("HEAD \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let head = try await client.head()
                // A remaining part of a body would come before the head of the next answer.
                #expect(head.text.hasPrefix("http/1.1 "), "\(path): \(head.text)")
                let expected = ["/mqtt": 426, "/v1/users": 405, "/nothing": 404][path] ?? 200
                #expect(head.status == expected, "\(path)")
                // The length is the length of the answer to GET (RFC 9110, section 8.6).
                if expected == 200 { #expect(!head.text.contains("content-length: 0\r\n"), "\(path)") }
            }
            try await client.send(Self.get("/healthz", "Connection: close\r\n"))
            let last = await client.rest()
            #expect(last.hasPrefix("HTTP/1.1 200 ") && last.hasSuffix("\r\n\r\nok\n"))
        }
    }

    @Test(arguments: [
        ("Expect: 100-continue\r\nContent-Length: 19\r\n", "{\"nick_name\":\"ann\"}"),
        ("Expect: 100-Continue\r\nTransfer-Encoding: chunked\r\n", "13\r\n{\"nick_name\":\"ann\"}\r\n0\r\n\r\n"),
    ])
    func `whoever holds back a body until the server wants it is told to continue`(
        fields: String,
        body: String
    ) async throws {
        try await withServer { server in
            let key = try await APIClient(server).key
            let client = try await WebSocketClient.connect(port: server.port("http"))
            func head(_ fields: String) -> String {
                "POST /v1/users HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(key)\r\n"
                    + "Content-Type: application/json\r\n\(fields)\r\n"
            }
            // The request is sent twice, to check that the connection stays open.
            for _ in 1...2 {
                try await client.send(head(fields))
                let word = try await client.head()
                #expect(word.status == 100 && word.text == "http/1.1 100 continue")
                try await client.send(body)
                let answer = try await client.head()
                #expect(answer.text.hasPrefix("http/1.1 422 "), "the password is missing")
                try await client.skipBody(of: answer.text)
            }
            // The 100 Continue comes after the answer to the earlier request.
            try await client.send(Self.get("/healthz") + head(fields))
            let first = try await client.head()
            #expect(first.status == 200)
            try await client.skipBody(of: first.text)
            #expect(try await client.head().status == 100)
            try await client.send(body)
            let answer = try await client.head()
            #expect(answer.status == 422)
            try await client.skipBody(of: answer.text)
            // The client did not send an Expect field.
            try await client.send(head("Content-Length: 2\r\nConnection: close\r\n") + "{}")
            #expect(Self.statuses(await client.rest()) == [422])
        }
    }

    @Test func `an address that asks too often is told so`() async throws {
        try await withServer { server in
            let many =
                String(repeating: Self.get("/nothing"), count: 60) + Self.get("/metrics", "Connection: close\r\n")
            var answers: [Int] = []
            while !answers.contains(429) { answers += try await Self.answers(server, many) }
            #expect(answers.count <= 1000)
            // The limit also applies to requests to the API with an invalid key.
            for path in ["/v1/users", "/v1/openapi.json"] {
                let guesses = String(repeating: Self.get(path, "Authorization: Bearer x\r\n"), count: 20)
                let last = Self.get(path, "Authorization: Bearer x\r\nConnection: close\r\n")
                answers = []
                while !answers.contains(429), answers.count < 5000 {
                    answers += try await Self.answers(server, guesses + last)
                }
                #expect(answers.contains(429), "\(path)")
            }
        }
    }

    @Test func `who guesses keys has the rate of an address, who has one its own`() async throws {
        func fast(_ settings: inout ServerSettings) {
            settings.api.requestsPerSecond = 10_000
            settings.api.burst = 10_000
        }
        try await withServer(configure: fast) { server in
            let keys = try #require(try server.assembly().api).core.keys
            let secret = try await keys.create(name: "shop", scopes: [.usersRead]).secret
            func ask(_ key: String) -> String {
                Self.get("/v1/users", "Authorization: Bearer \(key)\r\nConnection: close\r\n")
            }
            #expect(try await Self.answers(server, ask(secret)) == [200])
            let wrong = String(secret.dropLast(4)) + "0000"
            func many(_ key: String) -> String {
                String(repeating: Self.get("/v1/users", "Authorization: Bearer \(key)\r\n"), count: 60) + ask(key)
            }
            var answers: [Int] = []
            while !answers.contains(429), answers.count < 5000 {
                answers += try await Self.answers(server, many(wrong))
            }
            #expect(Set(answers) == [401, 429])
            // The owner of a key is not locked out by somebody who guesses keys from the same address.
            for _ in 0..<300 { #expect(try await Self.answers(server, ask(secret)) == [200]) }
            try await keys.revoke(name: "shop")
            answers = []
            while !answers.contains(429), answers.count < 5000 {
                answers += try await Self.answers(server, many(secret))
            }
            #expect(Set(answers) == [401, 429])
        }
    }

    @Test func `there are never more known keys than so many`() {
        let known = KnownKeys()
        for number in 0..<KnownKeys.maxKeys + 10 { known.accepted("Bearer \(number)") }
        let held = (0..<KnownKeys.maxKeys + 10).filter { known.key(of: ["authorization": "Bearer \($0)"]) != nil }
        #expect(held.count == KnownKeys.maxKeys)
        #expect(held.last == KnownKeys.maxKeys + 9)
        known.refused("Bearer \(KnownKeys.maxKeys + 9)")
        #expect(known.key(of: ["authorization": "Bearer \(KnownKeys.maxKeys + 9)"]) == nil)
        // Two fields count as no key.
        #expect(known.key(of: ["authorization": "Bearer 11", "Authorization": "Bearer 11"]) == nil)
    }

    // MARK: Behind a proxy

    @Test func `the address that a trusted proxy tells has its own connections`() async throws {
        func proxied(_ settings: inout ServerSettings) {
            settings.gateways.limits.connectionsPerAddress = 1
            settings.http.trustedProxies = ["127.0.0.1"].compactMap(IPNetwork.init)
        }
        try await withServer(configure: proxied) { server in
            func open(_ client: String) async throws -> (WebSocketClient, Bool) {
                let socket = try await WebSocketClient.connect(port: server.port("http"))
                try await socket.send(WebSocketClient.request("/mqtt", ["X-Forwarded-For": client]))
                _ = try? await socket.head()
                try? await socket.send(WebSocketClient.frame(0x89, [1]))
                return (socket, (try? await socket.next())?.first == 0x8A)
            }
            let first = try await open("192.0.2.1")
            #expect(first.1)
            #expect(try await open("192.0.2.2").1)
            #expect(try await !open("192.0.2.1").1)
            #expect(try await !open("9.9.9.9, 192.0.2.1").1)
            try await first.0.channel.close()
            while try await !open("192.0.2.1").1 {}
        }
    }

    @Test func `requests over a trusted proxy's connections count for their client while they last`() async throws {
        func proxied(_ settings: inout ServerSettings) {
            settings.gateways.limits.connectionsPerAddress = 2
            settings.http.trustedProxies = ["127.0.0.1"].compactMap(IPNetwork.init)
        }
        try await withServer(configure: proxied) { server in
            let key = try await APIClient(server).key
            /// Sends a request whose body never arrives.
            func begin(_ client: String) async throws -> WebSocketClient {
                let socket = try await WebSocketClient.connect(port: server.port("http"))
                let fields = "Authorization: Bearer \(key)\r\nContent-Type: application/json\r\nContent-Length: 5\r\n"
                let head = "POST /v1/users HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: \(client)\r\n"
                try await socket.send(head + fields + "\r\n")
                return socket
            }
            func status(_ client: String, on known: WebSocketClient? = nil, path: String = "/x") async throws -> Int {
                var socket = known
                if socket == nil { socket = try await WebSocketClient.connect(port: server.port("http")) }
                try await socket?.send(Self.get(path, "X-Forwarded-For: \(client)\r\n"))
                return try await socket?.head().status ?? 0
            }
            let slow = [try await begin("192.0.2.1"), try await begin("192.0.2.1")]
            // Wait until the server has both requests.
            while try await status("192.0.2.1") != 429 {}
            #expect(try await status("192.0.2.2") == 404)
            let shared = try await WebSocketClient.connect(port: server.port("http"))
            #expect(try await status("192.0.2.2", on: shared) == 404)
            #expect(try await status("192.0.2.1", on: shared) == 429)
            // Checks of the server's state do not count as requests of the client.
            #expect(try await status("192.0.2.1", path: "/healthz") == 200)
            try await slow[0].channel.close()
            while try await status("192.0.2.1") != 404 {}
            // Answered requests no longer count.
            let kept = try await WebSocketClient.connect(port: server.port("http"))
            for _ in 0..<5 { #expect(try await status("192.0.2.3", on: kept) == 404) }
        }
    }

    @Test func `nobody else can tell an address`() async throws {
        func few(_ settings: inout ServerSettings) { settings.gateways.limits.connectionsPerAddress = 1 }
        try await withServer(configure: few) { server in
            let first = try await WebSocketClient.connect(port: server.port("http"))
            try await first.send(WebSocketClient.request("/mqtt", ["X-Forwarded-For": "192.0.2.1"]))
            #expect(try await first.head().status == 101)
            let second = try await WebSocketClient.connect(port: server.port("http"))
            try? await second.send(WebSocketClient.request("/mqtt", ["X-Forwarded-For": "192.0.2.2"]))
            #expect(await second.rest() == "")
        }
    }

    @Test func `the HTTP port takes the header of a proxy as the others do`() async throws {
        func proxied(_ settings: inout ServerSettings) {
            settings.http.listener.proxyProtocol = .v2
            settings.gateways.limits.connectionsPerAddress = 1
        }
        try await withServer(configure: proxied) { server in
            func ask(_ last: UInt8) async throws -> WebSocketClient {
                let client = try await WebSocketClient.connect(port: server.port("http"))
                let block: [UInt8] = [192, 0, 2, last, 127, 0, 0, 1, 1, 1, 2, 2]
                try await client.send(ProxyHeader.signature + [0x21, 0x11, 0, 12] + block)
                // The write fails if the server has already closed the connection. The test then reads the result.
                try? await client.send(Self.get("/healthz"))
                return client
            }
            let first = try await ask(1)
            #expect(try await first.head().status == 200)
            #expect(try await ask(2).head().status == 200)
            #expect(await (try ask(1)).rest() == "")
            let bare = try await WebSocketClient.connect(port: server.port("http"))
            try await bare.send(Self.get("/healthz"))
            #expect(await bare.rest() == "")
        }
    }

    @Test func `a connection whose proxy hides the client counts only for itself`() async throws {
        func proxied(_ settings: inout ServerSettings) {
            settings.http.listener.proxyProtocol = .v2
            settings.gateways.limits.connectionsPerAddress = 1
        }
        try await withServer(configure: proxied) { server in
            func open() async throws -> WebSocketClient {
                let client = try await WebSocketClient.connect(port: server.port("http"))
                try await client.send(ProxyHeader.signature + [0x21, 0, 0, 0])
                return client
            }
            var clients: [WebSocketClient] = []
            for path in ["/healthz", "/mqtt", "/healthz", "/mqtt"] {
                let client = try await open()
                try await client.send(path == "/mqtt" ? WebSocketClient.request(path) : Self.get(path))
                #expect(try await client.head().status == (path == "/mqtt" ? 101 : 200))
                clients.append(client)
            }
            // The answer may arrive before the connection belongs to the gateway.
            while try server.assembly().openConnections != (2, 2) { await Task.yield() }
            // Each connection also has its own rate.
            let greedy = try await open()
            // These are many more requests than the rate allows, even in the time that they take on a busy machine.
            try? await greedy.send(
                String(repeating: Self.get("/nothing"), count: 5_000) + Self.get("/nothing", "Connection: close\r\n")
            )
            let answers = Self.statuses(await greedy.rest())
            #expect(answers.last == 429)
            let modest = try await open()
            try await modest.send(Self.get("/nothing"))
            #expect(try await modest.head().status == 404)
            #expect(clients.count == 4)
        }
    }

    @Test func `the client of a request is whom a trusted proxy names, and otherwise the peer`() async throws {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0)
            .get()
        let forwarded = ForwardedClient(proxies: ["127.0.0.1"].compactMap(IPNetwork.init))
        func client(_ peer: String, _ fields: HTTPFields) throws -> String? {
            let source = HTTPContext.Source(
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
                channel: channel,
                peer: try SocketAddress(ipAddress: peer, port: 1),
                isClientHidden: false,
                forwarded: forwarded
            )
            return HTTPContext(source: source).client(of: fields)?.ipAddress
        }
        let field = try #require(HTTPField.Name("X-Forwarded-For"))
        #expect(try client("127.0.0.1", [field: "192.0.2.1"]) == "192.0.2.1")
        #expect(try client("127.0.0.1", [:]) == "127.0.0.1")
        #expect(try client("203.0.113.5", [field: "192.0.2.1"]) == "203.0.113.5")
        try await channel.close()
    }

    // MARK: Pages

    @Test func `pages from elsewhere do not use a server that lets anybody in`() async throws {
        try await withServer { server in
            func status(_ path: String, _ origin: String, host: String = "localhost") async throws -> Int {
                let client = try await WebSocketClient.connect(port: server.port("http"))
                let fields = ["Origin": origin, "Host": host, "Sec-WebSocket-Protocol": "mqtt, hermes.v1"]
                try await client.send(WebSocketClient.request(path, fields))
                return try await client.head().status
            }
            for path in ["/mqtt", "/ws"] {
                let statuses = [
                    try await status(path, "https://evil.example"),
                    try await status(path, "http://evil.example", host: "evil.example"),
                    try await status(path, "null"), try await status(path, "http://localhost:3000"),
                ]
                #expect(statuses == [403, 403, 403, 101])
            }
        }
        func closed(_ settings: inout ServerSettings) { settings.gateways.access.isAnonymousAllowed = false }
        try await withServer(configure: closed) { server in
            let client = try await WebSocketClient.connect(port: server.port("http"))
            try await client.send(WebSocketClient.request("/mqtt", ["Origin": "https://any.example"]))
            #expect(try await client.head().status == 101)
        }
    }

    @Test func `the port says for itself whether somebody comes in without an account`() async throws {
        /// Returns the reason code of CONNACK for a client without a user name.
        func reason(_ server: TestServer) async throws -> UInt8? {
            let client = try await WebSocketClient.connect(port: server.port("http"))
            try await client.send(WebSocketClient.request("/mqtt"))
            #expect(try await client.head().status == 101)
            let connect: [UInt8] = [0x10, 14, 0, 4] + Array("MQTT".utf8) + [5, 2, 0, 60, 0, 0, 1] + Array("c".utf8)
            try await client.send(WebSocketClient.frame(0x82, connect))
            let connack = try await client.next().payload
            return connack.count > 3 && connack[0] == 0x20 ? connack[3] : nil
        }
        let anybody = try await withServer { try await reason($0) }
        #expect(anybody == 0)
        func closed(_ settings: inout ServerSettings) { settings.http.listener.isAnonymousAllowed = false }
        try await withServer(configure: closed) { server in
            #expect(try await reason(server) == MQTTReasonCode.notAuthorized.rawValue)
            // The other ports have their own setting.
            let client = try MQTTClient(MQTTClient.Configuration(server: ServerAddress(port: server.port("mqtt"))))
            try await client.connect()
            await client.close()
        }
        var settings = try ServerSettings.defaults()
        settings.http.listener.isAnonymousAllowed = false
        #expect(!settings.isAnonymousAllowedOverHTTP)
    }

    // MARK: Starting and readiness

    @Test func `the port answers while the server starts`() async throws {
        var settings = try TestServer.settings(store: .memory, directory: "/nowhere")
        settings.http.listener.port = 0
        let health = HealthState()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let http = try #require(
            try await HTTPPort.open(
                settings,
                health: health,
                counter: ConnectionCounter(settings.gateways.limits),
                group: group,
                Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
        )
        let port = http.listener.port
        #expect(try await HTTPProbe.get("/healthz", port: port) == (200, "ok\n"))
        #expect(try await HTTPProbe.get("/readyz", port: port) == (503, "starting\n"))
        health.starting("checking the database")
        #expect(try await HTTPProbe.get("/readyz", port: port) == (503, "starting: checking the database\n"))
        for path in ["/metrics", "/v1/users", "/mqtt", "/nothing"] {
            #expect(try await HTTPProbe.get(path, port: port).status == 503)
        }
        let silent = try await WebSocketClient.connect(port: port)
        await http.listener.stop(within: .zero)
        #expect(await silent.rest() == "")
        try await group.shutdownGracefully()
    }

    @Test func `readiness writes once a second at most, and tells what is the matter`() async throws {
        let clock = Mutex(Duration.zero)
        let writes = Mutex([@Sendable (String?) -> Void]())
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let readiness = Readiness(
            on: group.next(),
            uptime: { clock.withLock(\.self) },
            probe: { done in writes.withLock { $0.append(done) } }
        )
        func finishFirst(_ problem: String?) async {
            while writes.withLock(\.isEmpty) { await Task.yield() }
            writes.withLock { $0.removeFirst() }(problem)
        }
        async let first = readiness.current()
        async let second = readiness.current()
        await finishFirst(nil)
        #expect(await (first, second) == (.ready, .ready))
        #expect(await readiness.current() == .ready)
        #expect(writes.withLock { $0.count } == 0)
        clock.withLock { $0 = .seconds(2) }
        async let full = readiness.current()
        await finishFirst("the disk is full")
        #expect(await full == .notReady("the disk is full"))
        clock.withLock { $0 = .seconds(4) }
        // A write never ends. Each waiting caller gets an error, and there is no second write.
        #expect(await readiness.current() == .notReady("a write has waited for 2 s"))
        clock.withLock { $0 = .seconds(9) }
        #expect(await readiness.current() == .notReady("a write has waited for 5 s"))
        #expect(writes.withLock { $0.count } == 1)
        await finishFirst(nil)
        #expect(await readiness.current() == .ready)
        try await group.shutdownGracefully()
    }

    @Test func `commits that fail are no readiness, though a small write succeeds`() {
        let clock = Mutex(Duration.zero)
        // The last failures of two committers.
        let failures = Mutex<[CommitFailure?]>([nil, nil])
        let watch = CommitWatch(
            { failures.withLock { $0.compactMap { $0 } } },
            uptime: { clock.withLock(\.self) },
            tryWrite: { $0(nil) }
        )
        func problem() -> String? {
            let problem = Mutex<String?>(nil)
            watch.probe { found in problem.withLock { $0 = found } }
            return problem.withLock(\.self)
        }
        func fail(_ committer: Int) {
            let now = clock.withLock(\.self)
            failures.withLock { $0[committer] = CommitFailure(reason: "the disk is full", at: now, bytes: 1) }
        }
        #expect(problem() == nil)
        fail(1)
        for _ in 1...3 {
            #expect(problem() == "commits fail: the disk is full", "until a commit succeeds")
            clock.withLock { $0 += .seconds(10) }
        }
        failures.withLock { $0[1] = nil }
        #expect(problem() == nil)
        fail(1)
        #expect(problem() != nil)
        clock.withLock { $0 += CommitFailure.memory - .seconds(1) }
        #expect(problem() != nil)
        // No client sends anything any more, so no commit can succeed.
        clock.withLock { $0 += .seconds(1) }
        #expect(problem() == nil)
        fail(0)
        #expect(problem() != nil)
        failures.withLock { $0[0] = nil }
        #expect(problem() == nil, "the old failure of the other committer does not count again")
    }
}
