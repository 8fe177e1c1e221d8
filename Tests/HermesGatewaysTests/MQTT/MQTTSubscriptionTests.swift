// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// SUBSCRIBE, UNSUBSCRIBE, matching and retained messages, statement by statement.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTSubscriptionTests {
    @Test(
        .statements(
            "3.1.1 [MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-3.8.4-4] [MQTT-3.8.4-5] [MQTT-3.9.3-1] [MQTT-3.9.3-2] [MQTT-2.3.1-7], 5.0 [MQTT-3.8.4-1] [MQTT-3.8.4-2] [MQTT-3.8.4-5] [MQTT-3.8.4-6] [MQTT-3.8.4-7] [MQTT-3.9.3-1] [MQTT-3.9.3-2] [MQTT-2.2.1-6]"
        ),
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `one SUBACK with a code for each filter, in their order`(_ version: MQTTVersion, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", version, durable: durable)
            let subscriptions = [
                MQTTSubscription(filter: "a", maximumQoS: .exactlyOnce),
                MQTTSubscription(filter: "hermes/v1/up", maximumQoS: .atLeastOnce),
                MQTTSubscription(filter: "b/+", maximumQoS: .atMostOnce),
                MQTTSubscription(filter: "c/#", maximumQoS: .atLeastOnce),
            ]
            try await client.send(.subscribe(MQTTSubscribe(packetID: 0x0102, subscriptions: subscriptions)))
            guard case .suback(let suback) = try await client.next() else { throw Unexpected("no SUBACK") }
            #expect(suback.packetID == 0x0102 && suback.reasons.count == 4)
            #expect(
                suback.reasons[0] == .grantedQoS2 && suback.reasons[2] == .success && suback.reasons[3] == .grantedQoS1
            )
            #expect(suback.reasons[1] == (version == .v5 ? .notAuthorized : .unspecifiedError))
            for topic in ["a", "b/x", "c"] {
                try await client.send(.publish(MQTTPublish(topic: topic, payload: ByteBuffer(string: "x"))))
                #expect(try await client.taken().topic == topic)
            }
        }
    }

    @Test(arguments: [false, true])
    func `rules that change while thousands of filters are granted hold for all of them`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let client = try await harness.mqtt("one", .v5, durable: durable)
            let filters = ["secret/#"] + (0..<3_000).map { "many/\($0)" }
            let subscriptions = filters.map { MQTTSubscription(filter: $0, maximumQoS: .atMostOnce) }
            try await client.send(.subscribe(MQTTSubscribe(packetID: 7, subscriptions: subscriptions)))
            harness.environment.access.replace(with: try TopicRules(parsing: "deny client one read secret/#"))
            guard case .suback = try await client.next() else { throw Unexpected("no SUBACK") }
            await harness.turnsAreTaken()
            #expect(try await client.untilPong().isEmpty)
            try await publisher.publish("secret/plan", "x")
            try await publisher.publish("many/1", "y")
            #expect(try await client.taken().topic == "many/1")
        }
    }

    @Test(
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `thousands of filters in one packet are granted and ended in their order, some at a time`(
        _ version: MQTTVersion,
        durable: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let client = try await harness.mqtt("one", version, durable: durable)
            let filters = (0..<3_000).map { $0 == 1_234 ? "hermes/v1/up" : "many/\($0)" }
            let subscriptions = filters.map { MQTTSubscription(filter: $0, maximumQoS: .atMostOnce) }
            try await client.send(.subscribe(MQTTSubscribe(packetID: 7, subscriptions: subscriptions)), .pingreq)
            guard case .suback(let suback) = try await client.next() else { throw Unexpected("no SUBACK") }
            #expect(suback.reasons.count == filters.count)
            #expect(suback.reasons.indices.filter { suback.reasons[$0].isFailure } == [1_234])
            #expect(try await client.next() == .pingresp)
            for number in [0, 255, 256, 2_999] { try await publisher.publish("many/\(number)", "x") }
            for number in [0, 255, 256, 2_999] { #expect(try await client.taken().topic == "many/\(number)") }
            try await client.send(.unsubscribe(MQTTUnsubscribe(packetID: 8, filters: filters)))
            guard case .unsuback(let unsuback) = try await client.next() else { throw Unexpected("no UNSUBACK") }
            #expect(unsuback.packetID == 8)
            try await publisher.publish("many/2999", "gone")
            #expect(try await client.untilPong().isEmpty)
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-3.8.4-3], 5.0 [MQTT-3.8.4-3] [MQTT-3.8.4-4]"),
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `the same filter again replaces the subscription and loses nothing`(
        _ version: MQTTVersion,
        durable: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let subscriber = try await harness.mqtt("subscriber", version, durable: durable)
            _ = try await subscriber.subscribe("t", qos: .atLeastOnce)
            try await publisher.publish("t", "kept", retain: true)
            #expect(try await !subscriber.taken().retain)
            _ = try await subscriber.subscribe("t", qos: .atMostOnce)
            let kept = try await subscriber.taken()
            #expect(kept.retain && kept.text == "kept" && kept.qos == .atMostOnce)
            try await publisher.publish("t", "live")
            let live = try await subscriber.taken()
            #expect(live.qos == .atMostOnce && live.text == "live")
            #expect(try await subscriber.untilPong().isEmpty)
            _ = try await subscriber.unsubscribe("t")
            try await publisher.publish("t", "gone")
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-3.3.5-1], 5.0 [MQTT-3.3.4-2]"),
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `overlapping subscriptions deliver at the highest QoS`(_ version: MQTTVersion, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let subscriber = try await harness.mqtt("subscriber", version, durable: durable)
            _ = try await subscriber.subscribe("t/1", qos: .atLeastOnce)
            _ = try await subscriber.subscribe("t/+", qos: .exactlyOnce)
            _ = try await subscriber.subscribe("#", qos: .atMostOnce)
            try await publisher.publish("t/1", "x", qos: .exactlyOnce)
            // The client gets one copy, although the standards allow one for each subscription.
            #expect(try await subscriber.taken().qos == .exactlyOnce)
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.3.4-3] [MQTT-3.3.4-4]"), arguments: [false, true])
    func `the identifiers of all subscriptions that match`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt("subscriber", .v5, durable: durable)
            _ = try await subscriber.subscribe("t/1", identifier: 1)
            _ = try await subscriber.subscribe("t/+", identifier: 268_435_455)
            _ = try await subscriber.subscribe("#")
            for (topic, wanted) in [("t/1", [1, 268_435_455]), ("t/2", [268_435_455]), ("u", [])] {
                try await publisher.publish(topic, "x")
                let found: [Int] = try await subscriber.taken().properties.list.compactMap {
                    if case .subscriptionIdentifier(let number) = $0 { number } else { nil }
                }
                #expect(found.sorted() == wanted)
            }
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.8.3-3]"), arguments: [false, true])
    func `no local`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let one = try await harness.mqtt("one", .v5, durable: durable)
            let other = try await harness.mqtt("other", .v5)
            _ = try await one.subscribe("t", noLocal: true)
            for qos in MQTTQoS.allCases { try await one.publish("t", "own", qos: qos) }
            try await other.publish("t", "another's")
            #expect(try await one.taken().text == "another's")
            #expect(try await one.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.8.3-3]"), arguments: [false, true])
    func `no local subscriptions add nothing to the client's own publications`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let one = try await harness.mqtt("one", .v5, durable: durable)
            let other = try await harness.mqtt("other", .v5)
            _ = try await one.subscribe("a/#", qos: .exactlyOnce, noLocal: true, retainAsPublished: true, identifier: 1)
            _ = try await one.subscribe("a/b", qos: .atMostOnce, identifier: 2)
            let payload = ByteBuffer(string: "own")
            let publication = MQTTPublish(topic: "a/b", payload: payload, qos: .atLeastOnce, packetID: 1, retain: false)
            try await one.send(.publish(publication))
            // PUBACK comes before or after the message.
            let packets = [try await one.next(), try await one.next()]
            let publications = packets.compactMap { if case .publish(let own) = $0 { own } else { nil } }
            let own = try #require(publications.first)
            #expect(own.qos == .atMostOnce)
            #expect(own.properties.list == [.subscriptionIdentifier(2)])
            try await other.publish("a/b", "another's", qos: .atLeastOnce)
            let others = try await one.taken()
            #expect(others.qos == .atLeastOnce)
            #expect(others.properties.list.count == 2)
            #expect(try await one.untilPong().isEmpty)
        }
    }

    @Test(
        .statements(
            "3.1.1 [MQTT-3.10.4-1] [MQTT-3.10.4-2] [MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-3.10.4-6], 5.0 [MQTT-3.10.4-1] [MQTT-3.10.4-2] [MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-3.10.4-6] [MQTT-3.11.3-1] [MQTT-3.11.3-2]"
        ),
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `exact filters are removed, one UNSUBACK always comes`(_ version: MQTTVersion, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", version, durable: durable)
            _ = try await client.subscribe("a", "b/+", "c")
            let unsuback = try await client.unsubscribe("b/x", "a", "A", "c", packetID: 0x0304)
            #expect(unsuback.packetID == 0x0304)
            if version == .v5 {
                #expect(unsuback.reasons == [.noSubscriptionExisted, .success, .noSubscriptionExisted, .success])
            }
            #expect(try await client.unsubscribe("nothing", packetID: 5).packetID == 5)
            for topic in ["a", "c"] { try await client.publish(topic, "no") }
            try await client.publish("b/x", "yes", qos: .atMostOnce)
            #expect(try await client.taken().topic == "b/x")
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-3.10.4-3], 5.0 [MQTT-3.10.4-3]"),
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `what is under way is completed after UNSUBSCRIBE`(_ version: MQTTVersion, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let subscriber = try await harness.mqtt("subscriber", version, durable: durable)
            _ = try await subscriber.subscribe("t")
            try await publisher.publish("t", "x", qos: .exactlyOnce)
            let packetID = try #require(try await subscriber.publication().packetID)
            _ = try await subscriber.unsubscribe("t")
            try await subscriber.send(.pubrec(MQTTAcknowledgement(packetID: packetID)))
            #expect(try await subscriber.next() == .pubrel(MQTTAcknowledgement(packetID: packetID)))
            try await subscriber.send(.pubcomp(MQTTAcknowledgement(packetID: packetID)))
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test(
        .statements(
            "3.1.1 [MQTT-4.7.2-1] [MQTT-4.7.3-4] [MQTT-4.7.1-2] [MQTT-4.7.1-3] [MQTT-3.3.2-3], 5.0 [MQTT-4.7.2-1] [MQTT-4.7.3-4] [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-3.3.2-3]"
        ),
        arguments: MQTTVersion.allCases,
        [
            ("a/+/c", ["a/b/c", "a//c"], ["a/b", "a/b/c/d", "A/b/c"]),
            ("a/#", ["a", "a/b", "a//", "a/b/c"], ["b", "ab", "A/b"]),
            ("+", ["a", "ä", ""].filter { !$0.isEmpty }, ["a/b", "/a", "$a"]),
            ("/+", ["/a", "/"], ["a", "//", "/a/b"]),
            ("#", ["a", "/", "a/b/c"], ["$a", "$share", "$a/b"]), ("+/b", ["a/b", "/b"], ["$a/b", "b", "a/b/"]),
            ("a b/ä", ["a b/ä"], ["a b/a\u{308}", "ab/ä", "A b/ä"]), ("/a/", ["/a/"], ["/a", "a/", "/a//"]),
        ]
    )
    func `what matches, and nothing else`(
        _ version: MQTTVersion,
        _ example: (filter: String, yes: [String], no: [String])
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let subscriber = try await harness.mqtt("subscriber", version)
            _ = try await subscriber.subscribe(example.filter)
            for topic in example.no { try await publisher.publish(topic, "no") }
            for topic in example.yes {
                try await publisher.publish(topic, "yes")
                let publication = try await subscriber.taken()
                #expect(publication.topic == topic && publication.text == "yes")
            }
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    // MARK: Retained

    @Test(
        .statements(
            "3.1.1 [MQTT-3.3.1-5] [MQTT-3.3.1-6] [MQTT-3.3.1-7] [MQTT-3.3.1-8] [MQTT-3.3.1-9], 5.0 [MQTT-3.3.1-5] [MQTT-3.3.1-9] [MQTT-3.3.1-12]"
        ),
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `the last retained message of each topic comes to new subscriptions, marked`(
        _ version: MQTTVersion,
        durable: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let there = try await harness.mqtt("there", version, durable: durable)
            _ = try await there.subscribe("t/#")
            for (topic, text, qos) in [
                ("t/1", "old", MQTTQoS.exactlyOnce), ("t/1", "new", .atLeastOnce), ("t/0", "old", .atLeastOnce),
                ("t/0", "new", .atMostOnce),
            ] {
                try await publisher.publish(topic, text, qos: qos, retain: true)
                #expect(try await !there.taken().retain)
            }
            #expect(try await publisher.untilPong().isEmpty)
            let late = try await harness.mqtt("late", version, durable: durable)
            _ = try await late.subscribe("t/+")
            var found: [String: MQTTQoS] = [:]
            for _ in 0..<2 {
                let publication = try await late.taken()
                #expect(publication.retain && publication.text == "new")
                found[publication.topic] = publication.qos
            }
            #expect(found == ["t/1": .atLeastOnce, "t/0": .atMostOnce])
            #expect(try await late.untilPong().isEmpty)
        }
    }

    @Test(
        .statements(
            "3.1.1 [MQTT-3.3.1-10] [MQTT-3.3.1-11] [MQTT-3.3.1-12], 5.0 [MQTT-3.3.1-6] [MQTT-3.3.1-7] [MQTT-3.3.1-8]"
        ),
        arguments: MQTTVersion.allCases,
        MQTTQoS.allCases
    )
    func `an empty message removes, one without the flag changes nothing`(
        _ version: MQTTVersion,
        _ qos: MQTTQoS
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", version)
            try await client.publish("t", "kept", qos: qos, retain: true)
            try await client.publish("t", "not kept", qos: qos)
            try await client.publish("t", "", qos: qos)
            _ = try await client.subscribe("t")
            #expect(try await client.taken().text == "kept")
            try await client.send(
                .publish(MQTTPublish(topic: "t", payload: ByteBuffer(), retain: true))
            )
            let clearing = try await client.taken()
            #expect(clearing.text.isEmpty && !clearing.retain)
            _ = try await client.unsubscribe("t")
            _ = try await client.subscribe("t")
            #expect(try await client.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11]"), arguments: [false, true])
    func `retain handling`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5, durable: durable)
            try await client.publish("t", "kept", retain: true)
            for (handling, first, second) in [
                (MQTTSubscription.RetainHandling.sendAlways, true, true), (.sendIfNew, true, false),
                (.doNotSend, false, false),
            ] {
                for isExpected in [first, second] {
                    _ = try await client.subscribe("t", handling: handling)
                    if isExpected { #expect(try await client.taken().retain) }
                    #expect(try await client.untilPong().isEmpty)
                }
                _ = try await client.unsubscribe("t")
            }
        }
    }

    @Test(.statements("5.0 [MQTT-3.3.1-12] [MQTT-3.3.1-13]"), arguments: [false, true], [false, true])
    func `retain as published`(_ isAsked: Bool, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt("subscriber", .v5, durable: durable)
            _ = try await subscriber.subscribe("t", retainAsPublished: isAsked)
            for qos in MQTTQoS.allCases {
                for retain in [true, false] {
                    try await publisher.publish("t", "x", qos: qos, retain: retain)
                    #expect(try await subscriber.taken().retain == (retain && isAsked))
                }
            }
        }
    }
}
