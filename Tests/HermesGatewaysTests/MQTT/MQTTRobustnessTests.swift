// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Hostile or faulty clients take only bounded memory, cannot read forbidden topics, and lose no acknowledged message.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTRobustnessTests {
    private func message(_ topic: String, _ text: String, _ qos: MQTTQoS, _ packetID: UInt16) -> MQTTPacket {
        .publish(MQTTPublish(topic: topic, payload: ByteBuffer(string: text), qos: qos, packetID: packetID))
    }

    @Test(arguments: MQTTVersion.allCases)
    func `PUBCOMP comes once the store has forgotten the identifier: the client gives it to another message then`(
        _ version: MQTTVersion
    ) async throws {
        let store = ScriptedSessionStore()
        store.fail { if case .receivedReleased = $0 { true } else { false } }
        try await GatewayHarness.with(MQTTGateway.self, loops: 2, sessionStore: store) { harness in
            let client = try await harness.mqtt("publisher", version, durable: true)
            try await client.send(message("t", "x", .exactlyOnce, 7))
            guard case .pubrec = try await client.next() else { throw Unexpected("no PUBREC") }
            try await client.send(.pubrel(MQTTAcknowledgement(packetID: 7)))
            let last = try await client.untilEnd()
            #expect(!last.contains { if case .pubcomp = $0 { true } else { false } }, "no PUBCOMP that is not true")
            #expect(store.failures == 1)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a message of QoS 2 that is sent again over the session's next connection is not a new one`(
        _ version: MQTTVersion
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let subscriber = try await harness.mqtt("subscriber", version)
            _ = try await subscriber.subscribe("t", qos: .atMostOnce)
            let messages = [message("t", "1", .exactlyOnce, 7), message("t", "2", .exactlyOnce, 8)]
            var publisher = try await harness.mqtt("publisher", version, durable: true)
            try await publisher.send(messages[0], messages[1])
            for text in ["1", "2"] {
                guard case .pubrec = try await publisher.next() else { throw Unexpected("no PUBREC") }
                #expect(try await subscriber.taken().text == text)
            }
            try await publisher.drop()
            publisher = try await harness.mqtt("publisher", version, durable: true)
            try await publisher.send(messages[0], messages[1])
            for _ in messages {
                guard case .pubrec = try await publisher.next() else { throw Unexpected("no PUBREC") }
            }
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a message of QoS 2 is not a new one right behind itself`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let subscriber = try await harness.mqtt("subscriber", version)
            _ = try await subscriber.subscribe("t", qos: .atMostOnce)
            let publisher = try await harness.mqtt("publisher", version)
            let one = message("t", "x", .exactlyOnce, 5)
            try await publisher.send(one, one, message("t", "y", .exactlyOnce, 6))
            for _ in 0..<3 {
                guard case .pubrec = try await publisher.next() else { throw Unexpected("no PUBREC") }
            }
            #expect(try await subscriber.taken().text == "x")
            #expect(try await subscriber.taken().text == "y")
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test
    func `a client acknowledges any number of entries of its inbox: identifiers begin anew`() {
        var window = MQTTInbox.makeWindow()
        var identifiers: Set<UInt16> = []
        for _ in 0..<2_000 {
            let id = window.send(exactlyOnce: false)
            identifiers.insert(id)
            #expect(window.acknowledged(id) != .unknown)
        }
        #expect(identifiers.allSatisfy { Int($0) + MQTTInbox.firstPacketID - 1 <= 65_535 })
    }

    @Test
    func `one filter a thousand times in a SUBSCRIBE asks for what is retained once`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            for number in 0..<300 { try await publisher.publish("r/\(number)", "x", retain: true) }
            let subscriber = try await harness.mqtt("subscriber", .v5)
            let wanted = [MQTTSubscription](
                repeating: MQTTSubscription(filter: "r/#", maximumQoS: .atLeastOnce),
                count: 1_000
            )
            try await subscriber.send(.subscribe(MQTTSubscribe(packetID: 1, subscriptions: wanted)))
            guard case .suback(let suback) = try await subscriber.next() else { throw Unexpected("no SUBACK") }
            #expect(suback.reasons.count == 1_000)
            var topics: Set<String> = []
            for _ in 0..<300 { topics.insert(try await subscriber.taken().topic) }
            #expect(topics.count == 300)
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test(arguments: [false, true])
    func `what is retained waits for acknowledgements, and none is left out`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            for number in 0..<500 { try await publisher.publish("r/\(number)", "x", retain: true) }
            let subscriber = try await harness.mqtt(
                "subscriber",
                .v5,
                durable: durable,
                properties: [.receiveMaximum(3)]
            )
            _ = try await subscriber.subscribe("r/+", qos: .atLeastOnce)
            var topics: Set<String> = []
            for _ in 0..<500 {
                let publication = try await subscriber.taken()
                #expect(publication.retain && publication.qos == .atLeastOnce)
                topics.insert(publication.topic)
            }
            #expect(topics.count == 500)
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test
    func `what a SUBSCRIBE asks for again and again beyond what a session may have is refused`() async throws {
        var settings = GatewaySettings()
        settings.broker.maxSubscriptionsPerSession = 100
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let client = try await harness.mqtt("one", .v5)
            let wanted = [MQTTSubscription](
                repeating: MQTTSubscription(filter: "t", maximumQoS: .atMostOnce),
                count: MQTTConnection.mostRepeated + 150
            )
            try await client.send(.subscribe(MQTTSubscribe(packetID: 1, subscriptions: wanted)))
            guard case .suback(let suback) = try await client.next() else { throw Unexpected("no SUBACK") }
            #expect(suback.reasons.count == wanted.count)
            #expect(suback.reasons.prefix(MQTTConnection.mostRepeated).allSatisfy { $0 == .success })
            #expect(suback.reasons.dropFirst(MQTTConnection.mostRepeated).allSatisfy { $0 == .quotaExceeded })
        }
    }

    @Test(arguments: [false, true])
    func `a full session may repeat its filters in one SUBSCRIBE, up to a bound`(durable: Bool) async throws {
        var settings = GatewaySettings()
        settings.broker.maxSubscriptionsPerSession = 2
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let client = try await harness.mqtt("one", .v5, durable: durable)
            #expect(try await client.subscribe("a", "b", qos: .atMostOnce).reasons == [.success, .success])
            let filters = (0..<150).flatMap { _ in ["a", "b"] }
            let suback = try await client.subscribe(filters + ["c"] + filters, qos: .atMostOnce)
            let granted = [MQTTReasonCode](repeating: .success, count: 300)
            #expect(suback.reasons == granted + [.quotaExceeded] + granted)
            let many = [String](repeating: "a", count: MQTTConnection.mostRepeated + 2)
            let reasons = try await client.subscribe(many, qos: .atMostOnce).reasons
            #expect(reasons.count { $0 == .success } == MQTTConnection.mostRepeated)
            #expect(reasons.suffix(2) == [.quotaExceeded, .quotaExceeded])
        }
    }

    @Test
    func `whatever is wrong with a second CONNECT, DISCONNECT tells of a protocol error`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5)
            // This CONNECT has the protocol level 16.
            try await client.send(hex: "10 0d 0004 4d515454 10 02 003c 00 0000")
            guard case .disconnect(let packet)? = try await client.untilEnd().first else {
                throw Unexpected("no DISCONNECT")
            }
            #expect(packet.reason == .protocolError)
        }
    }

    @Test
    func `what waits for a client is limited with its properties`() async throws {
        var settings = GatewaySettings()
        settings.broker.maxQueuedBytes = 65_536
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let subscriber = try await harness.mqtt("subscriber", .v5, properties: [.receiveMaximum(1)])
            _ = try await subscriber.subscribe("t", qos: .atLeastOnce)
            let publisher = try await harness.mqtt("publisher", .v5)
            let filler = String(repeating: "x", count: 10_000)
            for number in 0..<20 {
                try await publisher.publish("t", "\(number)", properties: [.userProperty("filler", filler)])
            }
            var texts: [String] = []
            for packet in try await subscriber.untilPong() {
                guard case .publish(let one) = packet, let packetID = one.packetID else { continue }
                texts.append(one.text)
                try await subscriber.send(.puback(MQTTAcknowledgement(packetID: packetID)))
            }
            while case .publish(let one)? = try await subscriber.untilPong().first, let packetID = one.packetID {
                texts.append(one.text)
                try await subscriber.send(.puback(MQTTAcknowledgement(packetID: packetID)))
            }
            #expect(texts == (0..<texts.count).map(String.init))
            #expect((5...8).contains(texts.count), "\(texts.count) of 10 KB in 64 KiB")
        }
    }

    @Test(arguments: [false, true])
    func `the filters of a session are limited in bytes`(durable: Bool) async throws {
        var settings = GatewaySettings()
        settings.broker.maxSubscriptionBytesPerSession = 65_536
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let client = try await harness.mqtt("one", .v5, durable: durable)
            let (first, second) = (String(repeating: "a", count: 40_000), String(repeating: "b", count: 40_000))
            #expect(try await client.subscribe(first, qos: .atMostOnce).reasons == [.success])
            #expect(try await client.subscribe(second, qos: .atMostOnce).reasons == [.quotaExceeded])
            #expect(try await client.subscribe(first, qos: .atMostOnce).reasons == [.success], "it has that one")
            _ = try await client.unsubscribe(first)
            #expect(try await client.subscribe(second, qos: .atMostOnce).reasons == [.success])
        }
    }

    /// Without the limit, a publication to a topic of 20 levels could match a million filters.
    @Test(arguments: [false, true])
    func `the costly patterns of all clients are limited, also those of kept sessions`(durable: Bool) async throws {
        /// A filter of 32 levels, with `+` in three of them.
        func pattern(_ number: Int) -> String {
            let places = [0, 1 + number % 8, 9 + number / 8]
            return (0..<32).map { places.contains($0) ? "+" : "a" }.joined(separator: "/")
        }
        try await GatewayHarness.withMQTT { harness in
            let shapes = harness.environment.messenger.durable.shapes
            let one = try await harness.mqtt("one", .v5, durable: durable)
            for number in 0..<64 {
                #expect(try await one.subscribe(pattern(number), qos: .atMostOnce).reasons == [.success])
            }
            #expect(shapes.levels == 2_048, "all that an address may have")
            let two = try await harness.mqtt("two", .v5)
            #expect(try await two.subscribe(pattern(64), qos: .atMostOnce).reasons == [.quotaExceeded])
            #expect(try await two.subscribe("$share/g/" + pattern(64), qos: .atMostOnce).reasons == [.quotaExceeded])
            #expect(try await two.subscribe(pattern(7), qos: .atMostOnce).reasons == [.success], "it is there")
            #expect(try await two.subscribe("a/+/b/+/#", qos: .atMostOnce).reasons == [.success], "it is not costly")
            _ = try await two.unsubscribe(pattern(7))
            try await one.disconnect()
            while !durable, shapes.levels > 0 { await harness.turnsAreTaken() }
            #expect(shapes.levels == (durable ? 2_048 : 0))
            let reason: MQTTReasonCode = durable ? .quotaExceeded : .success
            #expect(try await two.subscribe(pattern(64), qos: .atMostOnce).reasons == [reason])
            // The same client connects with a clean start, so its durable session ends.
            let again = try await harness.mqtt("one", .v5)
            #expect(try await again.subscribe(pattern(65), qos: .atMostOnce).reasons == [.success])
        }
    }

    @Test func `a refused shared subscription leaves no costly pattern behind`() async throws {
        var settings = GatewaySettings()
        settings.broker.sharedGroups = SharedLimit(1)
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let client = try await harness.mqtt("one", .v5)
            #expect(try await client.subscribe("$share/g/a", qos: .atMostOnce).reasons == [.success])
            #expect(try await client.subscribe("$share/h/+/+/+", qos: .atMostOnce).reasons == [.quotaExceeded])
            #expect(harness.environment.messenger.durable.shapes.levels == 0)
        }
    }

    @Test(arguments: MQTTQoS.allCases, [false, true])
    func `new rules hold for subscriptions that are there`(_ qos: MQTTQoS, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let subscriber = try await harness.mqtt("subscriber", .v5, durable: durable)
            _ = try await subscriber.subscribe("a/#", qos: qos)
            let publisher = try await harness.mqtt("publisher", .v5)
            try await publisher.publish("a/secret", "before", qos: qos)
            #expect(try await subscriber.taken().text == "before")
            harness.environment.access.replace(with: try TopicRules(parsing: "deny client subscriber read a/secret"))
            await harness.turnsAreTaken()
            try await publisher.publish("a/secret", "behind", qos: qos)
            try await publisher.publish("a/open", "open", qos: qos)
            #expect(try await subscriber.taken().text == "open")
            harness.environment.access.replace(with: TopicRules())
            await harness.turnsAreTaken()
            try await publisher.publish("a/secret", "again", qos: qos)
            #expect(try await subscriber.taken().text == "again")
        }
    }

    @Test
    func `an alias that came with a packet too large for the client is not used`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let subscriber = try await harness.mqtt(
                "subscriber",
                .v5,
                properties: [.topicAliasMaximum(5), .maximumPacketSize(100)]
            )
            _ = try await subscriber.subscribe("t", qos: .atMostOnce)
            let publisher = try await harness.mqtt("publisher", .v5)
            try await publisher.publish("t", String(repeating: "x", count: 200))
            try await publisher.publish("t", "short")
            let publication = try await subscriber.publication()
            #expect(publication.topic == "t" && publication.text == "short")
        }
    }

    @Test(arguments: [false, true])
    func `filters are compared byte by byte`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5, durable: durable)
            let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
            _ = try await client.subscribe(composed, qos: .atMostOnce)
            _ = try await client.subscribe(decomposed, qos: .atMostOnce)
            #expect(try await client.unsubscribe(composed).reasons == [.success])
            try await client.send(.publish(MQTTPublish(topic: decomposed, payload: ByteBuffer(string: "x"))))
            #expect(try await client.publication().topic.utf8.elementsEqual(decomposed.utf8))
            let publisher = try await harness.mqtt("publisher", .v5)
            try await publisher.publish(composed, "1", retain: true)
            try await publisher.publish(decomposed, "2", retain: true)
            _ = try await publisher.subscribe(composed, qos: .atMostOnce)
            #expect(try await publisher.publication().text == "1")
            #expect(try await publisher.untilPong().isEmpty)
        }
    }
}
