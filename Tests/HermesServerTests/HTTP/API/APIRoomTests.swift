// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesTestKit
import HermesWire
import Testing

@testable import HermesServer

@Suite("Removing MQTT clients from rooms", .inTurns, .timeLimit(.minutes(2)))
struct APIRoomTests {
    private static func mqtt(_ server: TestServer, _ name: String, keeps: Bool = false) -> MQTTClient.Configuration {
        var configuration = MQTTClient.Configuration(
            server: ServerAddress(port: server.port("mqtt")),
            clientID: "phone-\(name)"
        )
        configuration.userName = name
        configuration.password = "secret1"
        configuration.cleanStart = !keeps
        configuration.sessionExpiry = keeps ? .seconds(600) : .zero
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(20)], jitter: 0)
        return configuration
    }

    private static func users(_ api: APIClient) async throws {
        for name in ["ann", "bob"] {
            let made = try await api.send("POST", "/v1/users", #"{"nick_name":"\#(name)","password":"secret1"}"#)
            #expect(made.status == 201)
        }
    }

    private static func kick(_ name: String, from room: String = "lobby", _ api: APIClient) async throws -> Int {
        try await api.send("DELETE", "/v1/rooms/\(room)/members/\(name)").status
    }

    /// Returns the texts before "end" on the topic "end".
    private static func heard(by client: MQTTClient) async -> [String] {
        var heard: [String] = []
        for await message in client.messages {
            if message.topic == "end" { break }
            let type = message.properties.userProperties.first { $0.name == "liveroom-type" }?.value
            heard.append(type.map { "type \($0)" } ?? "\(message.topic) \(message.text ?? "")")
        }
        return heard
    }

    @Test
    func `a subscription to the room ends, one with wildcards goes on without the room; both may come back`()
        async throws
    {
        try await withServer { server in
            let api = try await APIClient(server)
            try await Self.users(api)
            let exact = try MQTTClient(Self.mqtt(server, "ann"))
            var second = Self.mqtt(server, "ann")
            second.clientID = "a client id that is no device's"
            let wild = try MQTTClient(second)
            let other = try MQTTClient(Self.mqtt(server, "bob"))
            for client in [exact, wild, other] { try await client.connect() }
            for filter in ["room/lobby", "$share/g/room/lobby", "room/hall", "end"] {
                try await exact.subscribe(to: filter, qos: .atLeastOnce)
            }
            for filter in ["room/+", "end"] { try await wild.subscribe(to: filter, qos: .atLeastOnce) }
            try await other.subscribe(to: "room/#", qos: .atLeastOnce)
            try await other.subscribe(to: "end", qos: .atLeastOnce)

            #expect(try await Self.kick("ann", api) == 204)
            #expect(try await Self.kick("ann", api) == 404, "nothing is left to remove")
            for topic in ["room/lobby", "room/hall", "end"] {
                try await other.publish("1", to: topic, qos: .atLeastOnce)
            }
            #expect(await Self.heard(by: exact) == ["type 5", "room/hall 1"])
            #expect(await Self.heard(by: wild) == ["type 5", "room/hall 1"])
            #expect(await Self.heard(by: other) == ["room/lobby 1", "room/hall 1"])
            #expect(try await exact.unsubscribe(from: "room/lobby") == [.noSubscriptionExisted])

            try await exact.subscribe(to: "room/lobby", qos: .atLeastOnce)
            try await wild.subscribe(to: "room/+", qos: .atLeastOnce)
            for topic in ["room/lobby", "end"] { try await other.publish("2", to: topic, qos: .atLeastOnce) }
            #expect(await Self.heard(by: exact) == ["room/lobby 2"])
            #expect(await Self.heard(by: wild) == ["room/lobby 2"])
            for client in [exact, wild, other] { await client.close() }
        }
    }

    @Test(arguments: [true, false])
    func `in a kept session the subscription is gone for good, connected or not`(isConnected: Bool) async throws {
        try await withServer(store: .sqlite) { server in
            let api = try await APIClient(server)
            try await Self.users(api)
            let client = try MQTTClient(Self.mqtt(server, "ann", keeps: true))
            try await client.connect()
            for filter in ["room/lobby", "end"] { try await client.subscribe(to: filter, qos: .atLeastOnce) }
            if !isConnected { try await Self.close(client, server) }
            #expect(try await Self.kick("ann", api) == 204)
            if isConnected { try await Self.close(client, server) }

            try await server.restart()
            let other = try MQTTClient(Self.mqtt(server, "bob"))
            try await other.connect()
            for topic in ["room/lobby", "end"] { try await other.publish("1", to: topic, qos: .atLeastOnce) }
            await other.close()
            let again = try MQTTClient(Self.mqtt(server, "ann", keeps: true))
            #expect(try await again.connect().sessionPresent)
            #expect(await Self.heard(by: again) == [])
            await again.close()
        }
    }

    @Test
    func `a rule that names a key narrows what its scopes give; no other rule concerns keys`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let other = try await APIClient(server)
            let rules = """
                deny key \(api.keyName) write room/staff
                deny key \(api.keyName) readwrite news/#
                deny all readwrite #
                """
            try #require(try server.assembly().api).core.access.replace(with: try TopicRules(parsing: rules))
            func statuses(_ client: APIClient) async throws -> [Int] {
                [
                    try await client.send("POST", "/v1/rooms/staff/messages", #"{"text":"hi"}"#).status,
                    try await client.send("POST", "/v1/rooms/lobby/messages", #"{"text":"hi"}"#).status,
                    try await client.send("POST", "/v1/push", #"{"to":{"room":"staff"},"body":"hi"}"#).status,
                    try await client.send(
                        "POST",
                        "/v1/push",
                        #"{"to":{"topic":{"name":"news/1"}},"body":"hi"}"#
                    ).status,
                    try await client.send(
                        "POST",
                        "/v1/topics/publish",
                        #"{"topic":"news/1","payload":{"text":"hi"},"retain":true}"#
                    ).status,
                    try await client.send("GET", "/v1/topics/retained?topic=news/1").status,
                    try await client.send("DELETE", "/v1/topics/retained?topic=news/1").status,
                ]
            }
            #expect(try await statuses(api) == [403, 202, 403, 403, 403, 403, 403])
            #expect(try await statuses(other) == [202, 202, 202, 202, 202, 200, 204])
        }
    }

    @Test func `a publication to a room is no longer than a viewer's frame`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            func status(_ topic: String, _ bytes: Int) async throws -> Int {
                let text = String(repeating: "x", count: bytes)
                let body = #"{"topic":"\#(topic)","payload":{"text":"\#(text)"}}"#
                return try await api.send("POST", "/v1/topics/publish", body).status
            }
            #expect(try await status("room/lobby", 64_000) == 202)
            #expect(try await status("room/lobby", 64_001) == 413)
            #expect(try await status("hall/lobby", 64_001) == 202)
        }
    }

    @Test func `a key that may not use a room neither sees it nor removes anybody from it`() async throws {
        try await withServer { server in
            let api = try await APIClient(server)
            let other = try await APIClient(server)
            try await api.send("POST", "/v1/users", #"{"nick_name":"ann","password":"secret1"}"#)
            let member = try MQTTClient(Self.mqtt(server, "ann"))
            try await member.connect()
            for room in ["staff", "lobby"] { try await member.subscribe(to: "room/\(room)", qos: .atLeastOnce) }
            let rules = "deny key \(api.keyName) readwrite room/staff"
            try #require(try server.assembly().api).core.access.replace(with: try TopicRules(parsing: rules))
            func rooms(_ client: APIClient) async throws -> (names: [String], total: Int64?) {
                let body = try await client.send("GET", "/v1/rooms").body
                return (body["rooms"]?.array?.compactMap { $0["name"]?.string } ?? [], body["total"]?.integer)
            }
            let (few, all) = (try await rooms(api), try await rooms(other))
            #expect(few.names == ["lobby"] && few.total == 1)
            #expect(all.names == ["lobby", "staff"] && all.total == 2)
            #expect(try await api.send("DELETE", "/v1/rooms/staff/members/ann").status == 403)
            #expect(try await rooms(other).total == 2)
            #expect(try await other.send("DELETE", "/v1/rooms/staff/members/ann").status == 204)
            #expect(try await rooms(other).names == ["lobby"])
            await member.close()
        }
    }

    private static func close(_ client: MQTTClient, _ server: TestServer) async throws {
        await client.close()
        let durable = try server.messenger().durable
        while durable.statistics.online > 0 { await Task.yield() }
    }
}
