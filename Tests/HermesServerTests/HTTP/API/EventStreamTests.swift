// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import Testing

@testable import HermesCore
@testable import HermesServer

@Suite("Streams of events", .inTurns, .timeLimit(.minutes(2)))
struct EventStreamTests {
    private static func publish(_ core: APICore, _ topic: String, _ payload: ByteBuffer) async throws {
        let topic = try #require(TopicName(topic))
        let publication = Publication(topic: topic, payload: payload, kind: Publication.plainKind)
        // The event loops may not have handled the subscription yet.
        while !core.topics.publish(publication) { await Task.yield() }
    }

    private static func core(_ server: TestServer) throws -> APICore { try #require(try server.assembly().api).core }

    private static func noStreams(in core: APICore) async {
        while core.events.count > 0 { await Task.yield() }
    }

    @Test
    func `publications come by topic, as text or base64; of one that is too large comes the size`() async throws {
        func configure(_ settings: inout ServerSettings) { settings.events.maxPayloadBytes = 1_024 }
        try await withServer(configure: configure) { server in
            let client = try await APIClient(server)
            try await withEvents("?topic=news/%23&topic=a/+/c&topic=a/b/%23", of: client) { events in
                #expect(events.status == 200)
                let head = events.head.lowercased()
                for field in [
                    "content-type: text/event-stream\r\n", "cache-control: no-store\r\n", "ratelimit-limit: ",
                ] {
                    #expect(head.contains(field), "\(field)")
                }
                let ready = try await events.next()
                #expect(ready?.name == "ready")
                #expect(ready?.data["topics"]?.array?.count == 3)

                let body = #"{"topic":"news/today","payload":{"json":{"t":21}},"qos":1}"#
                #expect(try await client.send("POST", "/v1/topics/publish", body).status == 202)
                let first = try #require(try await events.next())
                #expect(first.name == "publication" && first.data["topic"]?.string == "news/today")
                #expect(first.data["text"]?.string == #"{"t":21}"# && first.data["qos"]?.integer == 1)
                #expect(first.data["content_type"]?.string == "application/json")

                let core = try Self.core(server)
                try await Self.publish(core, "other", ByteBuffer(string: "not asked for"))
                // Two filters match, but the publication arrives once.
                try await Self.publish(core, "a/b/c", ByteBuffer(bytes: [0xFF, 0x00]))
                try await Self.publish(core, "a/b/d", ByteBuffer(repeating: 0x20, count: 1_025))
                let second = try #require(try await events.next())
                #expect(second.data["base64"]?.string == "/wA=" && second.data["text"] == nil)
                let third = try #require(try await events.next())
                #expect(third.data["topic"]?.string == "a/b/d" && third.data["bytes"]?.integer == 1_025)
                #expect(third.data["too_large"]?.boolean == true && third.data["text"] == nil)
            }
        }
    }

    @Test
    func `logins, logouts and accepted messages come to those who ask for them; nobody pays for them otherwise`()
        async throws
    {
        try await withServer { server in
            let client = try await APIClient(server)
            let core = try Self.core(server)
            #expect(!core.messenger.events.wants(.online))
            try await withEvents("?kind=online&kind=offline&kind=message.accepted", of: client) { events in
                #expect(try await events.next()?.data["kinds"]?.array?.count == 3)
                #expect(core.messenger.events.wants(.online) && !core.messenger.events.wants(.pushResult))
                let user = try HermesClient(
                    .init(server: ServerAddress(port: server.port("delimited")), device: .init(id: "phone"))
                )
                _ = try await user.logIn(.register(nickName: "ann", password: "secret1"))
                let online = try #require(try await events.next())
                #expect(online.name == "online" && online.data["user"]?.integer == 1)
                let body = #"{"to":{"user":"ann"},"text":"hi"}"#
                #expect(try await client.send("POST", "/v1/users/ann/messages", body).status == 201)
                let accepted = try #require(try await events.next())
                #expect(accepted.name == "message.accepted" && accepted.data["message"]?["from"]?.integer == 1)
                await user.close()
                #expect(try await events.next()?.name == "offline")
            }
            await Self.noStreams(in: core)
            #expect(!core.messenger.events.wants(.online))
        }
    }

    @Test
    func `what cannot be a stream is refused, with words that help`() async throws {
        func configure(_ settings: inout ServerSettings) { settings.events.maxStreams = 0 }
        try await withServer(configure: configure) { server in
            let client = try await APIClient(server)
            let many = (1...101).map { "topic=t\($0)" }.joined(separator: "&")
            let cases: [(String, Int, String)] = [
                ("", 400, "Say what is wanted"), ("?topic=", 400, "must not be empty"),
                ("?topic=a/%23/b", 400, "topic filter"),
                ("?topic=%24share/g/a", 400, "$share"), ("?topic=a%00b", 400, "topic filter"),
                ("?topic=%FF", 400, "badly encoded"), ("?kind=everything", 400, "one of online"),
                ("?\(many)", 400, "more than 100"), ("?topics=a", 400, "no query parameter"),
                ("?kind=message.undelivered", 400, "webhooks"), ("?topic=%24SYS/%23", 403, "access.rules"),
                ("?topic=a", 503, "http.events.streams"),
            ]
            for (query, status, words) in cases {
                let answer = try await client.send("GET", "/v1/events\(query)")
                #expect(answer.status == status, "\(query)")
                #expect(answer.body["detail"]?.string?.contains(words) == true, "\(query): \(answer.body.text)")
            }
            let json = try await client.send("GET", "/v1/events?topic=a", headers: [("Accept", "application/json")])
            #expect(json.status == 406)
            #expect(try await client.send("POST", "/v1/events?topic=a", "{}").status == 405)
            let narrow = try await APIClient(server, scopes: [.eventsRead])
            #expect(try await narrow.send("GET", "/v1/events?topic=a").status == 403)
            #expect(try await narrow.send("GET", "/v1/events?kind=online").status == 503)
            let other = try await APIClient(server, scopes: [.topicsRead])
            #expect(try await other.send("GET", "/v1/events?topic=a").status == 403)
        }
    }

    @Test
    func `a key has so many streams, and all keys together; whoever goes away makes room at once`() async throws {
        func configure(_ settings: inout ServerSettings) {
            settings.events.maxStreams = 3
            settings.events.maxStreamsPerKey = 2
            settings.events.heartbeat = .seconds(30)
        }
        try await withServer(configure: configure) { server in
            let one = try await APIClient(server)
            let other = try await APIClient(server)
            let core = try Self.core(server)
            try await withEvents("?topic=a", of: one) { first in
                _ = try await first.next()
                try await withEvents("?topic=a", of: one) { second in
                    _ = try await second.next()
                    let third = try await one.send("GET", "/v1/events?topic=a")
                    #expect(third.status == 429 && third.headers["retry-after"] == "10")
                    try await withEvents("?topic=a", of: other) { third in
                        _ = try await third.next()
                        #expect(try await other.send("GET", "/v1/events?topic=a").status == 503)
                        #expect(core.events.count == 3)
                    }
                    while core.events.count > 2 { await Task.yield() }
                    // A half-closed connection also counts as ended, because no write would reveal its end.
                    try await second.channel.close(mode: .output)
                    while core.events.count > 1 { await Task.yield() }
                }
                try await withEvents("?topic=a", of: one) { #expect($0.status == 200) }
            }
            await Self.noStreams(in: core)
        }
    }

    @Test
    func `the stream of a revoked key ends; so do all when the server stops`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            let other = try await APIClient(server)
            let core = try Self.core(server)
            try await withEvents("?topic=a", of: client) { events in
                _ = try await events.next()
                try await core.keys.revoke(name: client.keyName)
                let end = try await events.next()
                #expect(end?.name == "end" && end?.data["reason"]?.string == "key_revoked")
                #expect(try await events.next()?.name == nil)
            }
            #expect(try await client.send("GET", "/v1/events?topic=a").status == 401)
            try await withEvents("?topic=a", of: other) { events in
                _ = try await events.next()
                await server.stop()
                let end = try await events.next()
                #expect(end?.name == "end" && end?.data["reason"]?.string == "server_stopping")
                #expect(try await events.next()?.name == nil)
            }
            await Self.noStreams(in: core)
        }
    }

    @Test
    func `the streams of a key that another node has revoked end with a heartbeat`() async throws {
        func configure(_ settings: inout ServerSettings) { settings.events.heartbeat = .milliseconds(200) }
        try await withServer(configure: configure) { server in
            let client = try await APIClient(server)
            let other = try await APIClient(server)
            let core = try Self.core(server)
            let store = try #require(core.messenger.accounts.store as? MemoryStore)
            try await withEvents("?topic=a", of: other) { others in
                _ = try await others.next()
                try await withEvents("?topic=a", of: client) { events in
                    _ = try await events.next()
                    try await store.revoke(apiKeyNamed: client.keyName)
                    let end = try await events.next()
                    #expect(end?.name == "end" && end?.data["reason"]?.string == "key_revoked")
                }
                try await Self.publish(core, "a", ByteBuffer(string: "x"))
                #expect(try await others.next()?.data["text"]?.string == "x")
            }
            await Self.noStreams(in: core)
        }
    }

    @Test
    func `the rules decide what a key reads, also after they have changed`() async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            let core = try Self.core(server)
            try await withEvents("?topic=%23", of: client) { events in
                _ = try await events.next()
                try await Self.publish(core, "room/staff", ByteBuffer(string: "1"))
                #expect(try await events.next()?.data["text"]?.string == "1")
                core.access.replace(with: try TopicRules(parsing: "deny key \(client.keyName) read room/staff\n"))
                try await Self.publish(core, "room/staff", ByteBuffer(string: "2"))
                try await Self.publish(core, "room/lobby", ByteBuffer(string: "3"))
                #expect(try await events.next()?.data["text"]?.string == "3")
                #expect(try await client.send("GET", "/v1/events?topic=room/staff").status == 403)
            }
        }
    }

    @Test
    func `a reader that is too slow is told how many events it missed, and where; the memory has its bound`()
        async throws
    {
        func configure(_ settings: inout ServerSettings) {
            settings.events.maxQueuedBytes = 256 << 10
            settings.events.eventsPerSecond = 1_000_000
            settings.events.heartbeat = .seconds(1)
        }
        try await withServer(configure: configure) { server in
            let client = try await APIClient(server)
            let core = try Self.core(server)
            try await withEvents("?topic=flood", of: client) { events in
                _ = try await events.next()
                let count = 1_000
                for number in 1...count {
                    var payload = ByteBuffer(string: "\(number) ")
                    payload.writeRepeatingByte(0x2E, count: 8_192)
                    try await Self.publish(core, "flood", payload)
                    #expect(core.events.waitingBytes <= 300 << 10)
                }
                var next = 1
                var dropped = 0
                while next <= count {
                    let event = try #require(try await events.next())
                    if event.name == "dropped" {
                        let missed = Int(try #require(event.data["count"]?.integer))
                        next += missed
                        dropped += missed
                    } else {
                        let number = event.data["text"]?.string?.prefix { $0 != " " }
                        #expect(number == "\(next)")
                        next += 1
                    }
                }
                #expect(dropped > 0 && next == count + 1)
            }
            await Self.noStreams(in: core)
            while core.events.waitingBytes > 0 { await Task.yield() }
        }
    }

    @Test
    func `a key that asks for more than its events a second is told what it missed`() async throws {
        func configure(_ settings: inout ServerSettings) {
            settings.events.eventsPerSecond = 10
            settings.events.heartbeat = .seconds(1)
        }
        try await withServer(time: StandingTime(), configure: configure) { server in
            let client = try await APIClient(server)
            let core = try Self.core(server)
            try await withEvents("?topic=flood", of: client) { events in
                _ = try await events.next()
                for number in 1...25 { try await Self.publish(core, "flood", ByteBuffer(string: "\(number)")) }
                for number in 1...10 {
                    #expect(try await events.next()?.data["text"]?.string == "\(number)")
                }
                // The following heartbeats report the missed publications, possibly in several parts.
                var missed: Int64 = 0
                while missed < 15 { missed += try #require(try await events.next()?.data["count"]?.integer) }
                #expect(missed == 15)
            }
        }
    }

    #if os(Linux)
    @Test func `a stream whose reader takes nothing is closed, even if the system's buffer takes all of it`()
        async throws
    {
        func configure(_ settings: inout ServerSettings) {
            settings.events.heartbeat = .milliseconds(200)
            settings.http.limits.answer = .seconds(1)
        }
        try await withServer(configure: configure) { server in
            let client = try await APIClient(server)
            let core = try Self.core(server)
            let reader = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelOption(.autoRead, value: false)
                .channelOption(.socketOption(.so_rcvbuf), value: 4_096)
                .connect(host: "127.0.0.1", port: client.port).get()
            let request =
                "GET /v1/events?topic=flood HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(client.key)\r\n\r\n"
            try await reader.writeAndFlush(ByteBuffer(string: request))
            while core.events.count == 0 { try await Task.sleep(for: .milliseconds(5)) }
            var payload = ByteBuffer()
            payload.writeRepeatingByte(0x2E, count: 8_192)
            for _ in 1...20 { try await Self.publish(core, "flood", payload) }
            await Self.noStreams(in: core)
            try await reader.close()
        }
    }
    #endif

    @Test
    func `heartbeats keep a quiet stream open, longer than an answer may take`() async throws {
        func configure(_ settings: inout ServerSettings) {
            settings.events.heartbeat = .seconds(1)
            settings.http.limits.answer = .milliseconds(1_500)
        }
        try await withServer(configure: configure) { server in
            let client = try await APIClient(server)
            try await withEvents("?topic=a", of: client) { events in
                _ = try await events.next()
                for _ in 1...4 { #expect(try await events.nextPart()?.name == ":") }
            }
        }
    }
}
