// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Packets above a client's Maximum Packet Size (3.1.2.11.4). No other packet waits because of them, regardless of
/// their form.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTPacketSizeTests {
    /// The reasons why a message has a special form for a subscription or a client.
    enum Form: CaseIterable, Sendable {
        case identifier
        case retainAsPublished
        case alias
        case filtered
        case shared
        case retained
    }

    private static let big = String(repeating: "x", count: 200)

    private func subscribe(_ client: MQTTTestClient, _ form: Form, _ qos: MQTTQoS) async throws {
        let suback =
            switch form {
            case .identifier: try await client.subscribe("t/+", qos: qos, identifier: 7)
            case .retainAsPublished: try await client.subscribe("t/+", qos: qos, retainAsPublished: true)
            case .alias: try await client.subscribe("t/+", qos: qos)
            // The filter also matches topics that the client may not read.
            case .filtered: try await client.subscribe("#", qos: qos)
            case .shared: try await client.subscribe("$share/g/t/+", qos: qos)
            case .retained: try await client.subscribe("other", qos: qos)
            }
        #expect(suback.reasons == [MQTTReasonCode(rawValue: qos.rawValue)])
    }

    @Test(
        .statements("5.0 [MQTT-3.1.2-24] [MQTT-3.1.2-25]"),
        arguments: Form.allCases,
        MQTTQoS.allCases
    )
    func `in every form, what is too large takes no place of those that follow`(
        _ form: Form,
        _ qos: MQTTQoS
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            var properties: [MQTTProperty] = [.maximumPacketSize(100), .receiveMaximum(2)]
            if form == .alias { properties.append(.topicAliasMaximum(5)) }
            let subscriber = try await harness.mqtt("subscriber", .v5, properties: properties)
            try await subscribe(subscriber, form, qos)
            for number in 0..<5 {
                try await publisher.publish("t/\(number)", Self.big, qos: qos, retain: form == .retained)
            }
            try await publisher.publish("t/9", "small", qos: qos, retain: form == .retained)
            if form == .retained {
                // QoS 0 is never acknowledged. But this acknowledged publication was stored after the others.
                try await publisher.publish("end", "end", qos: .atLeastOnce, retain: true)
                _ = try await subscriber.subscribe("t/+", qos: qos)
            }
            for number in 0..<3 {
                if number > 0 { try await publisher.publish("t/9", "small", qos: qos) }
                let publication = try await subscriber.taken()
                #expect(publication.text == "small" && publication.qos == qos)
            }
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.2-24]"), arguments: MQTTQoS.allCases)
    func `a kept session's client gets all packets up to its limit, to the byte, and none above it`(
        _ qos: MQTTQoS
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let limit = 100
            let properties: [MQTTProperty] = [
                .maximumPacketSize(UInt32(limit)), .sessionExpiryInterval(60), .receiveMaximum(1),
            ]
            let subscriber = try await harness.mqtt("subscriber", .v5, properties: properties)
            _ = try await subscriber.subscribe("t", qos: qos)
            let publisher = try await harness.mqtt("publisher", .v5)
            // The head has the flags, the remaining length, the topic, the length of the properties and, if there is
            // one, the identifier.
            let head = 1 + 1 + 2 + 1 + 1 + (qos == .atMostOnce ? 0 : 2)
            let sizes = Array(limit - head - 15...limit - head + 5)
            for size in sizes { try await publisher.publish("t", String(repeating: "x", count: size), qos: qos) }
            for size in sizes where size + head <= limit {
                #expect(try await subscriber.taken().text.utf8.count == size)
            }
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test
    func `what was too large for a member of a group is nobody's once the member leaves`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let first = try await harness.mqtt("first", .v5, properties: [.maximumPacketSize(100)])
            _ = try await first.subscribe("$share/g/t", qos: .atLeastOnce)
            for _ in 0..<3 { try await publisher.publish("t", Self.big) }
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe("$share/g/t", qos: .atLeastOnce)
            // Both members are idle, so both get their turn.
            var texts: [String] = []
            for number in 0..<2 { try await publisher.publish("t", "\(number)") }
            texts.append(try await first.taken().text)
            texts.append(try await second.taken().text)
            #expect(texts.sorted() == ["0", "1"])
            _ = try await first.unsubscribe("$share/g/t")
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func `what is too large for a member that returns goes to another member, and what neither takes to nobody`(
        isKept: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let first = try await harness.mqtt("first", .v5, durable: true)
            _ = try await first.subscribe("$share/g/t", qos: .atLeastOnce)
            try await first.disconnect()
            let publisher = try await harness.mqtt("publisher", .v5)
            for text in ["1", Self.big, String(repeating: "x", count: 2_000), "2"] {
                try await publisher.publish("t", text)
            }
            let second = try await harness.mqtt(
                "second",
                .v5,
                durable: isKept,
                properties: [.maximumPacketSize(1_000)]
            )
            _ = try await second.subscribe("$share/g/t", qos: .atLeastOnce)
            let back = try await harness.mqtt("first", .v5, durable: true, properties: [.maximumPacketSize(100)])
            #expect(try await back.taken().text == "1")
            #expect(try await back.taken().text == "2")
            #expect(try await second.taken().text == Self.big)
            #expect(try await second.untilPong().isEmpty)
            #expect(try await back.untilPong().isEmpty)
            // The message is too large for both members, and is not passed back and forth.
            try await publisher.publish("t", String(repeating: "x", count: 2_000))
            for _ in 0..<20 {
                #expect(try await second.untilPong().isEmpty)
                #expect(try await back.untilPong().isEmpty)
            }
            #expect(harness.messenger.durable.statistics.handedOver == 1)
        }
    }

    @Test func `what is too large for the connected members stays with the absent member, and it gets all of it`()
        async throws
    {
        try await GatewayHarness.withMQTT { harness in
            let first = try await harness.mqtt("first", .v5, durable: true)
            _ = try await first.subscribe("$share/g/t", qos: .atLeastOnce)
            try await first.disconnect()
            let publisher = try await harness.mqtt("publisher", .v5)
            // The packet of the second message is 103 bytes long.
            let large = [Self.big, String(repeating: "y", count: 95)]
            for text in large + ["small"] { try await publisher.publish("t", text) }
            let small = try await harness.mqtt("small", .v5, properties: [.maximumPacketSize(100)])
            _ = try await small.subscribe("$share/g/t", qos: .atLeastOnce)
            let unsure = try await harness.mqtt("unsure", .v5)
            _ = try await unsure.subscribe("$share/g/t", qos: .atMostOnce)
            let now = harness.messenger.time.now().advanced(by: .seconds(61))
            _ = try await harness.messenger.housekeeping(now: now)
            // The messages are moved in their order, so the others would have come before this one.
            #expect(try await small.taken().text == "small")
            #expect(try await small.untilPong().isEmpty)
            #expect(try await unsure.untilPong().isEmpty)
            let back = try await harness.mqtt("first", .v5, durable: true)
            for text in large { #expect(try await back.taken().text == text) }
            #expect(try await back.untilPong().isEmpty)
        }
    }

    @Test func `what is a few bytes too large for a member that returns goes to another, even if it was sent before`()
        async throws
    {
        try await GatewayHarness.withMQTT { harness in
            let first = try await harness.mqtt("first", .v5, durable: true)
            _ = try await first.subscribe("$share/g/t", qos: .atLeastOnce)
            let publisher = try await harness.mqtt("publisher", .v5)
            // The packets are 103 bytes long.
            let texts = ["1", "2"].map { $0 + String(repeating: "x", count: 94) }
            try await publisher.publish("t", texts[0])
            #expect(try await first.publication().text == texts[0])
            try await first.disconnect()
            try await publisher.publish("t", texts[1])
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe("$share/g/t", qos: .atLeastOnce)
            let back = try await harness.mqtt("first", .v5, durable: true, properties: [.maximumPacketSize(100)])
            for text in texts { #expect(try await second.taken().text == text) }
            #expect(try await back.untilPong().isEmpty)
        }
    }

    @Test(arguments: [MQTTQoS.atLeastOnce, .exactlyOnce])
    func `what was too large and could not be passed on was never sent, and the next connection gets it`(
        qos: MQTTQoS
    ) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let first = try await harness.mqtt("first", .v5, durable: true)
            _ = try await first.subscribe("$share/g/t", qos: qos)
            try await first.disconnect()
            let publisher = try await harness.mqtt("publisher", .v5)
            try await publisher.publish("t", Self.big, qos: qos)
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe("$share/g/t", qos: qos)
            store.fail { if case .move = $0 { true } else { false } }
            for _ in 0..<2 {
                let before = store.failures
                let small = try await harness.mqtt("first", .v5, durable: true, properties: [.maximumPacketSize(100)])
                while store.failures == before {
                    try Task.checkCancellation()
                    await Task.yield()
                }
                #expect(try await small.untilPong().isEmpty)
                try await small.disconnect()
            }
            store.recover()
            let back = try await harness.mqtt("first", .v5, durable: true)
            let message = try await back.taken()
            #expect(message.text == Self.big && !message.isDuplicate)
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test func `PUBREL does not wait until the messages before it have left`() async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let first = try await harness.mqtt("first", .v5, durable: true)
            _ = try await first.subscribe("$share/g/t")
            let publisher = try await harness.mqtt("publisher", .v5)
            for _ in 0..<MQTTDurableQueue.maxLeaving {
                try await publisher.publish("t", Self.big)
                _ = try await first.publication()
            }
            try await publisher.publish("t", "received", qos: .exactlyOnce)
            let publication = try await first.publication()
            let received = MQTTAcknowledgement(packetID: try #require(publication.packetID))
            try await first.send(.pubrec(received))
            #expect(try await first.next() == .pubrel(received))
            try await first.drop()
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe("$share/g/t")
            store.fail { if case .move = $0 { true } else { false } }
            let small = try await harness.mqtt("first", .v5, durable: true, properties: [.maximumPacketSize(100)])
            #expect(try await small.next() == .pubrel(received))
        }
    }

    @Test func `many messages that are too large for a member all go to another`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let first = try await harness.mqtt("first", .v5, durable: true)
            _ = try await first.subscribe("$share/g/t", qos: .atLeastOnce)
            try await first.disconnect()
            let publisher = try await harness.mqtt("publisher", .v5)
            let count = 2 * MQTTDurableQueue.maxLeaving
            for _ in 0..<count { try await publisher.publish("t", Self.big) }
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe("$share/g/t", qos: .atLeastOnce)
            let small = try await harness.mqtt("first", .v5, durable: true, properties: [.maximumPacketSize(100)])
            for _ in 0..<count { #expect(try await second.taken().text == Self.big) }
            #expect(try await second.untilPong().isEmpty)
            #expect(try await small.untilPong().isEmpty)
        }
    }

    @Test func `a member with a small limit and a long queue passes on some messages at a time`() async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let first = try await harness.mqtt("first", .v5, durable: true)
            _ = try await first.subscribe("$share/g/t", qos: .atLeastOnce)
            try await first.disconnect()
            let publisher = try await harness.mqtt("publisher", .v5)
            let count = 2 * MQTTDurableQueue.maxLeaving
            for _ in 0..<count { try await publisher.publish("t", Self.big) }
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe("$share/g/t", qos: .atLeastOnce)
            let durable = harness.messenger.durable
            let (failures, operations) = (store.failures, durable.statistics.commits.operations)
            store.fail { if case .move = $0 { true } else { false } }
            let small = try await harness.mqtt("first", .v5, durable: true, properties: [.maximumPacketSize(100)])
            while store.failures == failures || durable.statistics.commits.waiting > 0 {
                try Task.checkCancellation()
                await Task.yield()
            }
            // All of them wait for their next try, so no further messages are passed on.
            #expect(try await small.untilPong().isEmpty)
            // The connection itself causes a few operations.
            let most = operations + UInt64(MQTTDurableQueue.maxLeaving) + 16
            #expect(durable.statistics.commits.operations < most)
            store.recover()
            let later = harness.messenger.time.now().advanced(by: .seconds(61))
            while durable.statistics.handedOver < count {
                try Task.checkCancellation()
                _ = try await harness.messenger.housekeeping(now: later)
                await Task.yield()
            }
            for _ in 0..<count { #expect(try await second.taken().text == Self.big) }
            #expect(try await second.untilPong().isEmpty)
            #expect(try await small.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.2-24]"))
    func `a SUBACK that the client does not take ends the connection with 0x95`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5, properties: [.maximumPacketSize(24)])
            let subscriptions = (0..<30).map { MQTTSubscription(filter: "\($0)") }
            try await client.send(.subscribe(MQTTSubscribe(packetID: 1, subscriptions: subscriptions)))
            #expect(try await client.untilEnd() == [.disconnect(MQTTDisconnect(reason: .packetTooLarge))])
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.2-24]"), arguments: [1, 5, 12] as [UInt32])
    func `a CONNACK that the client does not take is a refusal`(_ size: UInt32) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness)
            var connect = MQTTConnect(version: .v5, clientID: "one")
            connect.properties = [.maximumPacketSize(size)]
            try await client.send(.connect(connect))
            #expect(try await client.untilEnd() == (size < 5 ? [] : [.connack(MQTTConnack(reason: .packetTooLarge))]))
        }
    }

    @Test func `a CONNECT refused because of its CONNACK changes no session and ends no connection`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let running = try await harness.mqtt("one", .v5, durable: true)
            _ = try await running.subscribe("t")
            for clientID in ["one", "other"] {
                let properties: MQTTProperties = [.maximumPacketSize(12), .sessionExpiryInterval(600)]
                let connect = MQTTConnect(version: .v5, clientID: clientID, cleanStart: true, properties: properties)
                #expect(try await harness.apply(connect).1.reason == .packetTooLarge)
            }
            #expect(harness.messenger.durable.statistics.sessions == 1)
            #expect(try await running.untilPong().isEmpty)
            try await running.drop()
            let (back, connack) = try await harness.client("one", .v5, durable: true)
            #expect(connack.sessionPresent)
            try await back.publish("t", "still subscribed", qos: .atMostOnce)
            #expect(try await back.taken().text == "still subscribed")
        }
    }
}
