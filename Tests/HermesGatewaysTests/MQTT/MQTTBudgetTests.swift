// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// The budgets of a client.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTBudgetTests {
    @Test(arguments: MQTTVersion.allCases)
    func `a clean session that never acknowledges is closed before all memory is its own`(
        _ version: MQTTVersion
    ) async throws {
        var settings = GatewaySettings()
        settings.limits.memoryBytes = 4 << 20
        try await GatewayHarness.with(MQTTGateway.self, settings: settings, loops: 2) { harness in
            let silent = try await harness.mqtt("silent", version)
            _ = try await silent.subscribe("t", qos: .atLeastOnce)
            let publisher = try await harness.mqtt("publisher", version)
            let payload = String(repeating: "x", count: 64 * 1024)
            let memory = harness.environment.loops.memory
            var packets: [MQTTPacket] = []
            // A peer that does not read is closed without a DISCONNECT. This peer reads everything that its window
            // allows.
            for _ in 0..<MQTTSettings().maxInflight {
                try await publisher.publish("t", payload, qos: .atLeastOnce)
                packets.append(try await silent.next())
            }
            #expect(memory.reclaimedBytes == 0)
            // These messages are above the window, and together exceed the budget.
            for _ in 0..<176 where memory.reclaimedBytes == 0 {
                try await publisher.publish("t", payload, qos: .atLeastOnce)
            }
            packets += try await silent.untilEnd()
            #expect(memory.reclaimedBytes > 1 << 20)
            if version == .v5 {
                guard case .disconnect(let packet)? = packets.last else { throw Unexpected("no DISCONNECT") }
                #expect(packet.reason == .quotaExceeded)
            }
            // The publisher does not pay for the subscriber's memory.
            #expect(try await publisher.untilPong().isEmpty)
        }
    }

    @Test func `a storm of filters waits until it is paid for`() async throws {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = 1_000
        try await GatewayHarness.with(MQTTGateway.self, settings: settings) { harness in
            let client = try await harness.mqtt("storm", .v5)
            let other = try await harness.mqtt("other", .v5)
            let subscriptions = (0..<2_000).map { MQTTSubscription(filter: "a/\($0)", maximumQoS: .atMostOnce) }
            let start = ContinuousClock.now
            try await client.send(.subscribe(MQTTSubscribe(packetID: 1, subscriptions: subscriptions)))
            guard case .suback(let suback) = try await client.next() else { throw Unexpected("no SUBACK") }
            #expect(suback.reasons.allSatisfy { $0 == .success })
            #expect(try await other.untilPong().isEmpty)
            #expect(try await client.untilPong().isEmpty)
            #expect(ContinuousClock.now - start > .milliseconds(900))
        }
    }

    @Test func `a flood of publications for many absent sessions waits until it is paid for`() async throws {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = 1_000
        try await GatewayHarness.with(MQTTGateway.self, settings: settings) { harness in
            for number in 0..<100 {
                let absent = try await harness.mqtt("absent-\(number)", .v5, durable: true)
                _ = try await absent.subscribe("crowd", qos: .atLeastOnce)
                try await absent.drop()
            }
            let publisher = try await harness.mqtt("publisher", .v5)
            let other = try await harness.mqtt("other", .v5)
            let start = ContinuousClock.now
            // Each publication costs 50 units. The units of one second may be spent at once.
            for _ in 0..<50 { try await publisher.publish("crowd", "x", qos: .atLeastOnce) }
            #expect(try await other.untilPong().isEmpty)
            #expect(try await publisher.untilPong().isEmpty)
            #expect(ContinuousClock.now - start > .milliseconds(1_400))
        }
    }

    @Test func `the levels of filters with wildcards are memory on each loop, and go with the filters`() async throws {
        try await GatewayHarness.with(MQTTGateway.self, loops: 2) { harness in
            let memory = harness.environment.loops.memory
            let client = try await harness.mqtt("deep", .v311)
            let before = memory.used
            let filters = (0..<400).map { "\($0)/" + String(repeating: "x/", count: 123) + "+" }
            #expect(try await client.subscribe(filters).reasons.allSatisfy { $0 == .grantedQoS2 })
            #expect(try await client.untilPong().isEmpty)
            #expect(memory.used - before > 400 * 125 * 48 * 2)
            try await client.send(.unsubscribe(MQTTUnsubscribe(packetID: 2, filters: filters)))
            guard case .unsuback = try await client.next() else { throw Unexpected("no UNSUBACK") }
            #expect(try await client.untilPong().isEmpty)
            #expect(memory.used - before < 100_000)
        }
    }

    @Test func `a search keeps a place in a level of very many topics, not the topics`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let durable = harness.messenger.durable
            for number in 0..<20_000 {
                let topic = try #require(TopicName("t\(number)"))
                durable.retain(
                    StoredPublication(
                        topic: topic,
                        payload: ByteBuffer(string: "x"),
                        qos: .atLeastOnce,
                        retain: true,
                        publishedAt: harness.messenger.time.now()
                    )
                )
            }
            let (client, bytes) = try await firstRetained(of: "+", in: harness)
            #expect(bytes < 5_000)
            _ = try await client.unsubscribe("+")
        }
    }

    @Test func `retained messages that a client does not take are its memory`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let payload = String(repeating: "x", count: 200_000)
            for number in 0..<20 { try await publisher.publish("r/\(number)", payload, retain: true) }
            let (client, bytes) = try await firstRetained(of: "r/#", in: harness)
            // The memory has the messages that were found in addition to the sent message, but not all retained
            // messages.
            #expect(bytes >= 200_000)
            #expect(bytes <= 500_000)
            _ = try await client.unsubscribe("r/#")
        }
    }

    /// Connects a client that receives one retained message and does not acknowledge it.
    ///
    /// - Returns: the client, and the memory that its subscription takes.
    private func firstRetained(
        of filter: String,
        in harness: GatewayHarness
    ) async throws -> (client: MQTTTestClient, bytes: Int) {
        let memory = harness.environment.loops.memory
        let connect = MQTTConnect(version: .v5, clientID: "slow", cleanStart: true, properties: [.receiveMaximum(1)])
        let (client, _) = try await harness.apply(connect)
        let before = memory.used
        _ = try await client.subscribe(filter, qos: .atLeastOnce)
        _ = try await client.publication()
        #expect(try await client.untilPong().isEmpty)
        return (client, memory.used - before)
    }

    @Test(arguments: [true, false])
    func `properties and the levels of retained topics wait until they are paid for`(_ isRetained: Bool) async throws {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = 1_000
        try await GatewayHarness.with(MQTTGateway.self, settings: settings) { harness in
            let client = try await harness.mqtt("flood", .v5)
            let other = try await harness.mqtt("other", .v5)
            let properties = MQTTProperties(
                Array(repeating: .userProperty("", ""), count: isRetained ? 0 : MQTTPacket.maxClientProperties)
            )
            let publish = MQTTPublish(
                topic: isRetained ? String(repeating: "/", count: 2_047) : "t",
                payload: ByteBuffer(string: "x"),
                retain: isRetained,
                properties: properties
            )
            let start = ContinuousClock.now
            for _ in 0..<30 { try await client.send(.publish(publish)) }
            #expect(try await other.untilPong().isEmpty)
            #expect(try await client.untilPong().isEmpty)
            #expect(ContinuousClock.now - start > .milliseconds(900))
        }
    }

    /// Packets that take a long time to parse and have no effect.
    private static let expensive: [(name: String, packet: MQTTPacket)] = {
        let many = MQTTProperties(Array(repeating: .userProperty("", ""), count: MQTTPacket.maxClientProperties))
        // These are empty fields that the type does not have.
        let fields = ByteBuffer(bytes: (0..<4_000).flatMap { _ in [0x7A, 0] as [UInt8] })
        let toRoom = MQTTPublish(
            topic: "room/lobby",
            payload: fields,
            properties: [.userProperty("liveroom-type", "1")]
        )
        return [
            ("PUBACK", .puback(MQTTAcknowledgement(packetID: 1, properties: many))),
            ("PUBCOMP", .pubcomp(MQTTAcknowledgement(packetID: 1, properties: many))),
            ("PUBLISH to a room", .publish(toRoom)),
        ]
    }()

    @Test(arguments: expensive.map(\.name))
    func `whatever takes long to parse waits until it is paid for`(_ name: String) async throws {
        let packet = try #require(Self.expensive.first { $0.name == name }).packet
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = 1_000
        try await GatewayHarness.with(MQTTGateway.self, settings: settings) { harness in
            let client = try await harness.mqtt("flood", .v5)
            let other = try await harness.mqtt("other", .v5)
            let start = ContinuousClock.now
            for _ in 0..<30 { try await client.send(packet) }
            #expect(try await other.untilPong().isEmpty)
            _ = try await client.untilPong()
            #expect(ContinuousClock.now - start > .milliseconds(900))
        }
    }

    @Test func `who never releases messages of QoS 2 is closed in 3.1.1, too`() async throws {
        try await GatewayHarness.with(MQTTGateway.self) { harness in
            let client = try await harness.mqtt("silent", .v311)
            let taking = Task { try await client.untilEnd() }
            for packetID in 1...4_097 as ClosedRange<UInt16> {
                let publish = MQTTPublish(topic: "t", payload: ByteBuffer(), qos: .exactlyOnce, packetID: packetID)
                try? await client.send(.publish(publish))
            }
            #expect(try await taking.value.count { if case .pubrec = $0 { true } else { false } } <= 4_096)
        }
    }

    @Test func `a packet with too many properties ends the connection`() async throws {
        try await GatewayHarness.with(MQTTGateway.self) { harness in
            let client = try await harness.mqtt("many", .v5)
            let properties = MQTTProperties(
                Array(repeating: .userProperty("", ""), count: MQTTPacket.maxClientProperties + 1)
            )
            try await client.send(.publish(MQTTPublish(topic: "t", payload: ByteBuffer(), properties: properties)))
            guard case .disconnect(let packet)? = try await client.untilEnd().last else {
                throw Unexpected("no DISCONNECT")
            }
            #expect(packet.reason == .quotaExceeded)
        }
    }
}
