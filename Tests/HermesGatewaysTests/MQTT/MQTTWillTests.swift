// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// The rules for a PUBLISH also apply to a will.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTWillTests {
    private func refusal(_ will: MQTTWill) async throws -> MQTTReasonCode {
        let box = Mailbox()
        try await GatewayHarness.withMQTT { harness in
            var connect = MQTTConnect(version: .v5, clientID: "one")
            connect.will = will
            let (client, connack) = try await harness.apply(connect)
            #expect(try await client.untilEnd().isEmpty)
            await box.put(connack.reason)
        }
        return try #require(await box.reason)
    }

    /// Connects eight clients of the account ann, each with a durable session and a will.
    private func annsClients(_ harness: GatewayHarness, will: (Int) -> MQTTWill) async throws -> [MQTTTestClient] {
        var clients: [MQTTTestClient] = []
        for number in 0..<8 {
            var connect = MQTTConnect(version: .v5, clientID: "c\(number)", properties: [.sessionExpiryInterval(600)])
            connect.userName = "ann"
            connect.password = ByteBuffer(string: "correct horse")
            connect.will = will(number)
            let (client, connack) = try await harness.apply(connect)
            #expect(connack.reason == .success)
            clients.append(client)
        }
        return clients
    }

    private actor Mailbox {
        private(set) var reason: MQTTReasonCode?
        func put(_ reason: MQTTReasonCode) { self.reason = reason }
    }

    @Test(arguments: ["2", "8", "x"])
    func `a will for a room is what its liveroom-type says, or the CONNECT is refused`(_ type: String) async throws {
        let will = MQTTWill(
            topic: "room/hall",
            payload: ByteBuffer(string: "no body of that type"),
            properties: [.userProperty("liveroom-type", type)]
        )
        #expect(try await refusal(will) == .payloadFormatInvalid)
    }

    @Test(arguments: [("room/hall", 64_001), ("qsiop/1/phone/down/16", 1)])
    func `a will is not what viewers and devices cannot be given`(_ topic: String, _ bytes: Int) async throws {
        let will = MQTTWill(topic: topic, payload: ByteBuffer(repeating: 0x78, count: bytes))
        #expect(try await refusal(will) == .payloadFormatInvalid)
    }

    @Test(arguments: ["hermes/v1/up", "hermes/v1/up/json"])
    func `a will is no request to the server`(_ topic: String) async throws {
        #expect(try await refusal(MQTTWill(topic: topic, payload: ByteBuffer(string: "{}"))) == .notAuthorized)
    }

    @Test(.statements("5.0 [MQTT-3.3.2-14]"))
    func `the response topic of a will has no wildcard`() async throws {
        let will = MQTTWill(topic: "t", payload: ByteBuffer(), properties: [.responseTopic("a/#")])
        #expect(try await refusal(will) == .protocolError)
    }

    @Test
    func `a room sees a will as what it is`() async throws {
        try await GatewayHarness.withMQTT { harness in
            var gift = LiveRoom_GiftMessage()
            gift.user.level = 1
            gift.user.name = "ann"
            gift.user.iconURL = ""
            gift.giftname = "rose"
            gift.giftURL = ""
            gift.giftcount = 1
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("room/hall")
            let will = MQTTWill(
                topic: "room/hall",
                payload: try gift.wireBuffer(),
                properties: [.userProperty("liveroom-type", "3")]
            )
            let client = try await harness.mqtt("one", .v5, will: will)
            try await client.drop()
            let publication = try await watch.taken()
            #expect(publication.payload == (try gift.wireBuffer()))
            #expect(Set(publication.properties.userProperties.map(\.value)) == ["3"])
        }
    }

    @Test(.statements("5.0 [MQTT-3.8.3-3]"))
    func `no local leaves out a client's own will in its kept session`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("t")
            let will = MQTTWill(topic: "t", payload: ByteBuffer(string: "gone"), qos: .atLeastOnce)
            let gone = try await harness.mqtt("one", .v5, durable: true, will: will)
            _ = try await gone.subscribe("t", noLocal: true)
            try await gone.drop()
            #expect(try await watch.taken().text == "gone")
            let back = try await harness.mqtt("one", .v5, durable: true)
            #expect(try await back.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.8.3-3]"))
    func `no local leaves out a client's own will after the client is back`() async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let watch = try await harness.mqtt("watch", .v5, durable: true)
            _ = try await watch.subscribe("t")
            let will = MQTTWill(topic: "t", payload: ByteBuffer(string: "gone"), qos: .atLeastOnce)
            let gone = try await harness.mqtt("one", .v5, will: will)
            // The will waits for its commit until the store is open again.
            store.close()
            try await gone.drop()
            let back = try await harness.mqtt("one", .v5)
            _ = try await back.subscribe("t", noLocal: true)
            store.open()
            #expect(try await watch.taken().text == "gone")
            #expect(try await back.untilPong().isEmpty)
        }
    }

    @Test
    func `a will that the rules of the day do not allow any more is not published`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("t")
            let will = MQTTWill(topic: "t", payload: ByteBuffer(string: "gone"))
            let client = try await harness.mqtt("one", .v5, will: will)
            harness.environment.access.replace(with: try TopicRules(parsing: "deny client one write t"))
            try await client.drop()
            // When the client is accepted again, the previous connection has ended.
            let again = try await harness.mqtt("one", .v5)
            try await again.publish("other", "x", qos: .atLeastOnce)
            #expect(try await watch.untilPong().isEmpty)
        }
    }

    @Test
    func `a delayed will is held to the rules of the moment at which it is published`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("t")
            func will(_ text: String) -> MQTTWill {
                MQTTWill(topic: "t", payload: ByteBuffer(string: text), properties: [.willDelayInterval(1)])
            }
            try await harness.mqtt("one", .v5, durable: true, will: will("denied")).drop()
            while harness.environment.waitingWills.entries < 1 { await Task.yield() }
            harness.environment.access.replace(with: try TopicRules(parsing: "deny client one write t"))
            // This will is published later than the first will would be.
            try await harness.mqtt("two", .v5, durable: true, will: will("allowed")).drop()
            #expect(try await watch.taken().text == "allowed")
            #expect(harness.environment.waitingWills.entries == 0)
        }
    }

    @Test
    func `a delayed will of an account that was disabled meanwhile is not published`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann").principal.user
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("t")
            func will(_ text: String) -> MQTTWill {
                MQTTWill(topic: "t", payload: ByteBuffer(string: text), properties: [.willDelayInterval(1)])
            }
            var connect = MQTTConnect(version: .v5, clientID: "one", properties: [.sessionExpiryInterval(600)])
            connect.userName = "ann"
            connect.password = ByteBuffer(string: "correct horse")
            connect.will = will("disabled")
            let (client, connack) = try await harness.apply(connect)
            #expect(connack.reason == .success)
            try await client.drop()
            while harness.environment.waitingWills.entries < 1 { await Task.yield() }
            try await harness.messenger.accounts.setDisabled(ann, true)
            // This will is published later than the first will would be.
            try await harness.mqtt("two", .v5, durable: true, will: will("other")).drop()
            #expect(try await watch.taken().text == "other")
            #expect(harness.environment.waitingWills.entries == 0)
        }
    }

    @Test(arguments: ["payload", "topic", "properties"])
    func `a will above mqtt.maxWillBytes is refused`(_ part: String) async throws {
        var settings = GatewaySettings()
        settings.broker.maxWillBytes = 1_024
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            func will(_ bytes: Int) -> MQTTWill {
                let text = String(repeating: "x", count: bytes)
                return switch part {
                case "payload": MQTTWill(topic: "t", payload: ByteBuffer(string: text))
                case "topic": MQTTWill(topic: text, payload: ByteBuffer())
                default: MQTTWill(topic: "t", payload: ByteBuffer(), properties: [.userProperty("n", text)])
                }
            }
            for version in MQTTVersion.allCases where version == .v5 || part != "properties" {
                _ = try await harness.mqtt("one", version, will: will(800))
                var connect = MQTTConnect(version: version, clientID: "two")
                connect.will = will(1_025)
                switch version {
                case .v5:
                    let (client, connack) = try await harness.apply(connect)
                    #expect(connack.reason == .packetTooLarge)
                    #expect(try await client.untilEnd().isEmpty)
                case .v311:
                    // MQTT 3.1.1 has no code for this case.
                    let client = try await MQTTTestClient.open(harness, version)
                    try await client.send(.connect(connect))
                    #expect(try await client.untilEnd().isEmpty)
                }
            }
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `wills of open connections are in limits.memory`(_ version: MQTTVersion) async throws {
        var settings = GatewaySettings()
        settings.limits.memoryBytes = 4 << 20
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let memory = harness.environment.loops.memory
            let will = MQTTWill(topic: "t", payload: ByteBuffer(repeating: 1, count: 60_000))
            var clients: [MQTTTestClient] = []
            for number in 0..<200 where memory.reclaimedBytes == 0 {
                do {
                    clients.append(try await harness.mqtt("c\(number)", version, will: will))
                } catch {
                    // The CONNECT of this client may be the largest, so the client may be closed itself.
                    break
                }
            }
            while memory.reclaimedBytes == 0 { try await Task.sleep(for: .milliseconds(5)) }
            #expect(clients.count > 50)
        }
    }

    @Test
    func `delayed wills that wait count for their owner, and leave room for others`() async throws {
        var settings = GatewaySettings()
        // This gives 64 KiB to one owner.
        settings.limits.memoryBytes = 1 << 20
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            _ = try await harness.register("ann")
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("#", qos: .atMostOnce)
            func leave(_ name: String, account: String? = nil) async throws {
                var connect = MQTTConnect(
                    version: .v5,
                    clientID: name,
                    cleanStart: true,
                    properties: [.sessionExpiryInterval(600)]
                )
                connect.userName = account
                connect.password = account.map { _ in ByteBuffer(string: "correct horse") }
                connect.will = MQTTWill(
                    topic: name,
                    payload: ByteBuffer(repeating: 1, count: 40_000),
                    properties: [.willDelayInterval(600)]
                )
                let (client, connack) = try await harness.apply(connect)
                #expect(connack.reason == .success)
                try await client.drop()
                while harness.messenger.durable.statistics.online > 0 { await Task.yield() }
            }
            #expect(harness.environment.waitingWills == Holding())
            try await leave("first")
            #expect(try await watch.untilPong().isEmpty)
            let waiting = harness.environment.waitingWills
            #expect(waiting.entries == 1 && (40_000...50_000).contains(waiting.bytes))
            // There is no room for another will of this address. It is published at once, so that it is not lost.
            try await leave("second")
            #expect(try await watch.taken().topic == "second")
            try await leave("third", account: "ann")
            #expect(try await watch.untilPong().isEmpty)
            // A will that is deleted makes room.
            _ = try await harness.client("first", .v5, clean: false, properties: [.sessionExpiryInterval(0)])
            let again = try await harness.client("first", .v5, clean: false, properties: [.sessionExpiryInterval(0)])
            try await again.client.disconnect()
            try await leave("fourth")
            #expect(try await watch.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.3-9]"), arguments: [true, false])
    func `the name's owner goes: its wills are published at once, and leave nothing to the next owner`(
        _ isConnected: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let ann = try await harness.register("ann")
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("t/#")
            // A combining mark after the slash forms one character with the slash.
            for topic in ["user/ann", "user/ann/will", "user/ann/\u{301}will", "t/will"] {
                var connect = MQTTConnect(
                    version: .v5,
                    clientID: topic,
                    cleanStart: true,
                    properties: [.sessionExpiryInterval(600)]
                )
                connect.userName = "ann"
                connect.password = ByteBuffer(string: "correct horse")
                connect.will = MQTTWill(
                    topic: topic,
                    payload: ByteBuffer(string: "gone"),
                    retain: true,
                    properties: [.willDelayInterval(600)]
                )
                let (client, connack) = try await harness.apply(connect)
                #expect(connack.reason == .success)
                if !isConnected { try await client.drop() }
            }
            while !isConnected, harness.environment.waitingWills.entries < 4 {
                try await Task.sleep(for: .milliseconds(5))
            }
            let user = ann.principal.user
            _ = try await harness.messenger.accounts.changeProfile(of: user, nickName: "bob", avatarURL: nil)
            #expect(try await watch.taken().topic == "t/will")
            while harness.environment.waitingWills != Holding() { try await Task.sleep(for: .milliseconds(5)) }
            // Any other will would be published by now, or by another loop at this moment.
            try await Task.sleep(for: .milliseconds(200))
            let retained = harness.messenger.durable.retained
            let everything = try #require(TopicFilter("#"))
            // A retained publication reaches connected clients after its commit.
            let found = retained.matching(everything, now: harness.messenger.time.now()).map(\.topic.rawValue)
            #expect(found == ["t/will"])
        }
    }

    @Test
    func `wills for which the store has no room at the moment are stored later`() async throws {
        let store = ScriptedSessionStore()
        let settings = DurableSettings(commit: CommitLimits(maxWaiting: 16))
        try await GatewayHarness.withMQTT(sessionStore: store, durableSettings: settings) { harness in
            let kept = try await harness.mqtt("kept", .v5, durable: true)
            _ = try await kept.subscribe("t")
            try await kept.disconnect()
            var clients: [MQTTTestClient] = []
            for number in 0..<8 {
                let will = MQTTWill(topic: "t", payload: ByteBuffer(string: "\(number)"), qos: .atLeastOnce)
                clients.append(try await harness.mqtt("c\(number)", .v5, durable: true, will: will))
            }
            store.close()
            for client in clients { try await client.drop() }
            // All wills were published, but there was no room for most of them.
            while harness.messenger.durable.statistics.online > 0 { await Task.yield() }
            store.open()
            while try await store.texts("kept").count < 8 { await Task.yield() }
            #expect(try await Set(store.texts("kept")) == Set((0..<8).map(String.init)))
        }
    }

    @Test
    func `a will that waits for the store is not published once its account was disabled`() async throws {
        let store = ScriptedSessionStore()
        let settings = DurableSettings(commit: CommitLimits(maxWaiting: 16))
        try await GatewayHarness.withMQTT(sessionStore: store, durableSettings: settings) { harness in
            let ann = try await harness.register("ann").principal.user
            let kept = try await harness.mqtt("kept", .v5, durable: true)
            _ = try await kept.subscribe("t")
            try await kept.disconnect()
            let clients = try await annsClients(harness) { number in
                MQTTWill(topic: "t", payload: ByteBuffer(string: "\(number)"), qos: .atLeastOnce)
            }
            store.close()
            for client in clients { try await client.drop() }
            while harness.messenger.durable.statistics.online > 0 { await Task.yield() }
            // There was no room for some wills, so they wait.
            while harness.environment.waitingWills.entries == 0 { await Task.yield() }
            try await harness.messenger.accounts.setDisabled(ann, true)
            store.open()
            while harness.environment.waitingWills.entries > 0 { await Task.yield() }
            // Wills that were already being stored are stored before this message.
            let last = try await harness.mqtt("last", .v5)
            try await last.publish("t", "last")
            let texts = try await store.texts("kept")
            #expect(texts.last == "last" && texts.count < 9)
        }
    }

    @Test
    func `a will that waits for the store leaves nothing to the next owner of its name`() async throws {
        let store = ScriptedSessionStore()
        let settings = DurableSettings(commit: CommitLimits(maxWaiting: 16))
        try await GatewayHarness.withMQTT(sessionStore: store, durableSettings: settings) { harness in
            let ann = try await harness.register("ann").principal.user
            let clients = try await annsClients(harness) { number in
                MQTTWill(topic: "user/ann/\(number)", payload: ByteBuffer(string: "gone"), retain: true)
            }
            store.close()
            for client in clients { try await client.drop() }
            while harness.messenger.durable.statistics.online > 0 { await Task.yield() }
            while harness.environment.waitingWills.entries == 0 { await Task.yield() }
            let waited = harness.environment.waitingWills.entries
            _ = try await harness.messenger.accounts.changeProfile(of: ann, nickName: "bob", avatarURL: nil)
            store.open()
            while harness.environment.waitingWills.entries > 0 { await Task.yield() }
            // Wills that were already being stored are stored before this message.
            let last = try await harness.mqtt("last", .v5)
            try await last.publish("t/last", "last", qos: .atLeastOnce, retain: true)
            let retained = harness.messenger.durable.retained
            let below = try #require(TopicFilter("user/ann/#"))
            // The wills for which there was room were stored while the account had the name.
            let left = retained.matching(below, now: harness.messenger.time.now()).count
            #expect(left <= 8 - waited)
        }
    }

    @Test
    func `the connected get a will that the store never accepts`() async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("t")
            let will = MQTTWill(topic: "t", payload: ByteBuffer(string: "gone"), qos: .atLeastOnce, retain: true)
            let client = try await harness.mqtt("one", .v5, will: will)
            store.fail { _ in true }
            try await client.drop()
            #expect(try await watch.taken().text == "gone")
            #expect(store.failures == 1, "it is not tried again")
            #expect(try await store.retainedTexts().isEmpty)
            store.recover()
        }
    }
}
