// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// Sessions that last longer than connections, and wills, statement by statement.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTSessionTests {
    private func acknowledgement(_ packetID: UInt16) -> MQTTAcknowledgement { MQTTAcknowledgement(packetID: packetID) }

    @Test(
        .statements(
            "3.1.1 [MQTT-3.1.2-4] [MQTT-3.1.2-5] [MQTT-3.2.2-2] [MQTT-3.2.2-3] [MQTT-4.5.0-1] [MQTT-4.1.0-1] [MQTT-4.1.0-2], 5.0 [MQTT-3.1.2-5] [MQTT-3.1.2-6] [MQTT-3.1.2-23] [MQTT-3.2.2-3] [MQTT-4.5.0-1] [MQTT-4.1.0-1]"
        ),
        arguments: MQTTVersion.allCases
    )
    func `a session keeps subscriptions and what matches them`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let (first, connack) = try await harness.client("one", version, durable: true)
            #expect(!connack.sessionPresent)
            _ = try await first.subscribe("t")
            try await first.disconnect()
            for qos in [MQTTQoS.atLeastOnce, .exactlyOnce] {
                try await publisher.publish("t", "\(qos.rawValue)", qos: qos)
            }
            let (second, again) = try await harness.client("one", version, durable: true)
            #expect(again.sessionPresent)
            for qos in [MQTTQoS.atLeastOnce, .exactlyOnce] {
                let publication = try await second.taken()
                #expect(publication.text == "\(qos.rawValue)" && publication.qos == qos && !publication.isDuplicate)
            }
            try await publisher.publish("t", "live")
            #expect(try await second.taken().text == "live")
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.1.2-6] [MQTT-3.1.4-3] [MQTT-3.2.2-1] [MQTT-3.1.2-7]"))
    func `a clean session begins with nothing and leaves nothing but what is retained`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v311)
            try await harness.mqtt("one", .v311, durable: true).disconnect()
            let (clean, connack) = try await harness.client("one", .v311)
            #expect(!connack.sessionPresent)
            _ = try await clean.subscribe("t")
            try await clean.publish("kept", "kept", retain: true)
            try await clean.disconnect()
            try await publisher.publish("t", "nobody")
            let (durable, after) = try await harness.client("one", .v311, durable: true)
            #expect(!after.sessionPresent)
            #expect(try await durable.untilPong().isEmpty)
            _ = try await durable.subscribe("kept")
            #expect(try await durable.taken().text == "kept")
        }
    }

    @Test(.statements("5.0 [MQTT-4.1.0-2]"))
    func `a session without an expiry ends with its connection; DISCONNECT may end it as well`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let plain = try await harness.mqtt("plain", .v5, clean: false)
            try await plain.disconnect()
            #expect(try await !harness.client("plain", .v5, durable: true).connack.sessionPresent)
            let durable = try await harness.mqtt("durable", .v5, durable: true)
            try await durable.disconnect(properties: [.sessionExpiryInterval(0)])
            #expect(try await !harness.client("durable", .v5, durable: true).connack.sessionPresent)
        }
    }

    @Test(
        .statements(
            "3.1.1 [MQTT-4.4.0-1] [MQTT-3.3.1-1] [MQTT-4.6.0-1] [MQTT-4.3.2-1] [MQTT-2.3.1-4], 5.0 [MQTT-4.4.0-1] [MQTT-3.3.1-1] [MQTT-4.6.0-1] [MQTT-4.3.2-3] [MQTT-4.3.2-1] [MQTT-4.3.3-1] [MQTT-4.3.3-3]"
        ),
        arguments: MQTTVersion.allCases,
        [MQTTQoS.atLeastOnce, .exactlyOnce]
    )
    func `what was not acknowledged comes again, in order, with DUP and its identifier, over the next connection only`(
        _ version: MQTTVersion,
        _ qos: MQTTQoS
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let first = try await harness.mqtt("one", version, durable: true)
            _ = try await first.subscribe("t")
            for number in 0..<10 { try await publisher.publish("t", "\(number)", qos: qos) }
            var sent: [MQTTPublish] = []
            for _ in 0..<10 { sent.append(try await first.publication()) }
            #expect(Set(sent.compactMap(\.packetID)).count == 10)
            #expect(try await first.untilPong().isEmpty)
            try await first.drop()
            try await publisher.publish("t", "10", qos: qos)
            let second = try await harness.mqtt("one", version, durable: true)
            for old in sent {
                let publication = try await second.publication()
                #expect(publication.packetID == old.packetID && publication.text == old.text)
                #expect(publication.isDuplicate && publication.qos == qos)
            }
            let new = try await second.publication()
            #expect(new.text == "10" && !new.isDuplicate)
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-4.4.0-1] [MQTT-4.3.3-1], 5.0 [MQTT-4.4.0-1] [MQTT-4.3.3-5] [MQTT-4.3.3-6]"),
        arguments: MQTTVersion.allCases
    )
    func `after PUBREC it is PUBREL that comes again, never PUBLISH`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let first = try await harness.mqtt("one", version, durable: true)
            _ = try await first.subscribe("t")
            for number in 0..<3 { try await publisher.publish("t", "\(number)", qos: .exactlyOnce) }
            var ids: [UInt16] = []
            for _ in 0..<3 { ids.append(try #require(try await first.publication().packetID)) }
            for packetID in ids.prefix(2) {
                try await first.send(.pubrec(acknowledgement(packetID)))
                #expect(try await first.next() == .pubrel(acknowledgement(packetID)))
            }
            try await first.drop()
            let second = try await harness.mqtt("one", version, durable: true)
            var releases: [UInt16] = []
            var publications: [UInt16] = []
            for _ in 0..<3 {
                switch try await second.next() {
                case .pubrel(let packet): releases.append(packet.packetID)
                case .publish(let packet): publications.append(try #require(packet.packetID))
                case let other: throw Unexpected("\(other)")
                }
            }
            #expect(releases == Array(ids.prefix(2)) && publications == [ids[2]])
            for packetID in releases { try await second.send(.pubcomp(acknowledgement(packetID))) }
            #expect(try await second.untilPong().isEmpty)
            try await second.drop()
            let third = try await harness.mqtt("one", version, durable: true)
            #expect(try await third.publication().packetID == ids[2])
        }
    }

    @Test(.statements("3.1.1 [MQTT-4.3.3-2], 5.0 [MQTT-4.3.3-10]"), arguments: MQTTVersion.allCases)
    func `a QoS 2 identifier that was received is known over connections`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", version)
            _ = try await watch.subscribe("t")
            let durable = try await harness.mqtt("durable", version, durable: true)
            _ = try await durable.subscribe("t")
            let publish = MQTTPublish(topic: "t", payload: ByteBuffer(string: "x"), qos: .exactlyOnce, packetID: 5)
            let first = try await harness.mqtt("one", version, durable: true)
            try await first.send(.publish(publish))
            guard case .pubrec = try await first.next() else { throw Unexpected("no PUBREC") }
            try await first.drop()
            var again = publish
            again.isDuplicate = true
            let second = try await harness.mqtt("one", version, durable: true)
            try await second.send(.publish(again))
            guard case .pubrec = try await second.next() else { throw Unexpected("no PUBREC") }
            try await second.send(.pubrel(acknowledgement(5)))
            guard case .pubcomp(let pubcomp) = try await second.next() else { throw Unexpected("no PUBCOMP") }
            #expect(pubcomp.reason == .success)
            for client in [watch, durable] {
                #expect(try await client.taken().text == "x")
                #expect(try await client.untilPong().isEmpty)
            }
        }
    }

    @Test(.statements("5.0 [MQTT-3.3.2-5] [MQTT-3.3.2-6]"))
    func `an expiry counts down while a message waits, and ends it`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let first = try await harness.mqtt("one", .v5, durable: true)
            _ = try await first.subscribe("t")
            try await first.disconnect()
            try await publisher.publish("t", "short", properties: [.messageExpiryInterval(1)])
            try await publisher.publish("t", "long", properties: [.messageExpiryInterval(100)])
            // The statements are about time, so the test has to wait.
            try await Task.sleep(for: .milliseconds(1_300))
            let second = try await harness.mqtt("one", .v5, durable: true)
            let publication = try await second.taken()
            let left: UInt32? = publication.properties.first {
                if case .messageExpiryInterval(let seconds) = $0 { seconds } else { nil }
            }
            #expect(publication.text == "long")
            #expect(try 95...99 ~= #require(left))
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(arguments: [MQTTQoS.atLeastOnce, .exactlyOnce])
    func `a message that expires at once reaches a clean session and no kept one`(_ qos: MQTTQoS) async throws {
        try await GatewayHarness.withMQTT { harness in
            let kept = try await harness.mqtt("kept", .v5, durable: true)
            _ = try await kept.subscribe("t")
            let clean = try await harness.mqtt("clean", .v5)
            _ = try await clean.subscribe("t")
            let publisher = try await harness.mqtt("publisher", .v5)
            let reason = try await publisher.publish("t", "0", qos: qos, properties: [.messageExpiryInterval(0)])
            #expect(reason == .success)
            #expect(try await clean.taken().text == "0")
            try await publisher.publish("t", "no expiry", qos: qos)
            #expect(try await clean.taken().text == "no expiry")
            #expect(try await kept.taken().text == "no expiry")
            #expect(try await kept.untilPong().isEmpty)
        }
    }

    @Test(
        .statements("5.0 [MQTT-4.3.3-7] [MQTT-4.4.0-1]"),
        arguments: [MQTTQoS.atLeastOnce, .exactlyOnce],
        [false, true]
    )
    func `what was sent does not expire before it is acknowledged`(_ qos: MQTTQoS, isPurged: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let first = try await harness.mqtt("one", .v5, durable: true, properties: [.receiveMaximum(1)])
            _ = try await first.subscribe("t")
            for text in ["sent", "waiting"] {
                try await publisher.publish("t", text, qos: qos, properties: [.messageExpiryInterval(1)])
            }
            let sent = try await first.publication()
            #expect(sent.text == "sent")
            if !isPurged { try await first.drop() }
            // The statement is about time, so the test has to wait.
            try await Task.sleep(for: .milliseconds(1_300))
            if isPurged {
                let purged = try await harness.messenger.housekeeping(now: harness.messenger.time.now())
                #expect(purged == 1, "what waits, and not what was sent")
                try await first.drop()
            }
            let second = try await harness.mqtt("one", .v5, durable: true)
            let again = try await second.taken()
            #expect(again.text == "sent" && again.isDuplicate && again.packetID == sent.packetID)
            #expect(try await second.untilPong().isEmpty)
        }
    }

    // MARK: Wills

    private func will(
        _ text: String,
        qos: MQTTQoS = .atLeastOnce,
        retain: Bool = false,
        _ properties: MQTTProperty...
    ) -> MQTTWill {
        MQTTWill(
            topic: "will",
            payload: ByteBuffer(string: text),
            qos: qos,
            retain: retain,
            properties: MQTTProperties(properties)
        )
    }

    @Test(
        .statements(
            "3.1.1 [MQTT-3.1.2-8] [MQTT-3.1.2-9] [MQTT-3.1.2-10] [MQTT-3.1.2-12] [MQTT-3.1.2-16] [MQTT-3.1.2-17], 5.0 [MQTT-3.1.2-7] [MQTT-3.1.2-8] [MQTT-3.1.2-10] [MQTT-3.1.2-14] [MQTT-3.1.2-15]"
        ),
        arguments: MQTTVersion.allCases,
        [
            (MQTTQoS.atMostOnce, false), (.atMostOnce, true), (.atLeastOnce, true), (.exactlyOnce, false),
            (.exactlyOnce, true),
        ]
    )
    func `a lost connection's will is published, once, as it asks for`(
        _ version: MQTTVersion,
        _ kind: (qos: MQTTQoS, retain: Bool)
    ) async throws {
        let (qos, retain) = kind
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", version)
            _ = try await watch.subscribe("will")
            try await harness.mqtt("nothing to say", version).drop()
            try await harness.mqtt("one", version, will: will("lost", qos: qos, retain: retain)).drop()
            let publication = try await watch.taken()
            #expect(publication.text == "lost" && publication.qos == qos && !publication.retain)
            try await harness.mqtt("one", version).drop()
            #expect(try await watch.untilPong().isEmpty)
            _ = try await watch.subscribe("will")
            if retain { #expect(try await watch.taken().retain) }
            #expect(try await watch.untilPong().isEmpty)
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-3.14.4-3] [MQTT-3.1.2-10], 5.0 [MQTT-3.14.4-3] [MQTT-3.1.2-10]"),
        arguments: MQTTVersion.allCases
    )
    func `DISCONNECT takes the will back`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", version)
            _ = try await watch.subscribe("will")
            try await harness.mqtt("one", version, will: will("no")).disconnect()
            // When the client is accepted again, the previous connection has ended.
            let again = try await harness.mqtt("one", version)
            try await again.publish("will", "next")
            #expect(try await watch.taken().text == "next")
            #expect(try await watch.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.2-8]"))
    func `DISCONNECT with 0x04 publishes the will`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("will")
            try await harness.mqtt("one", .v5, will: will("yes")).disconnect(.disconnectWithWill)
            #expect(try await watch.taken().text == "yes")
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.1.2-8], 5.0 [MQTT-3.1.2-8]"), arguments: MQTTVersion.allCases)
    func `a violation is no goodbye`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", version)
            _ = try await watch.subscribe("will")
            let client = try await harness.mqtt("one", version, will: will("violated"))
            try await client.send(hex: "c1 00")
            _ = try await client.untilEnd()
            #expect(try await watch.taken().text == "violated")
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.3-10]"))
    func `the will's properties, in their order`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("will")
            let will = will(
                "lost",
                .userProperty("b", "1"),
                .contentType("text/plain"),
                .userProperty("a", "2"),
                .userProperty("b", "3"),
                .responseTopic("r"),
                .correlationData(ByteBuffer(string: "c")),
                .payloadFormatIndicator(true)
            )
            try await harness.mqtt("one", .v5, will: will).drop()
            let properties = try await watch.taken().properties
            #expect(properties.userProperties.map(\.value) == ["1", "2", "3"])
            #expect(Set(properties.list) == Set(will.properties.list))
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.3-9]"))
    func `who comes back before the delay has passed has no will published, also after a take-over`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("will")
            let will = will("late", .willDelayInterval(1))
            try await harness.mqtt("one", .v5, durable: true, will: will).drop()
            let second = try await harness.mqtt("one", .v5, durable: true, will: will)
            let third = try await harness.mqtt("one", .v5, durable: true)
            _ = try await second.untilEnd()
            // The statement is about time, so the test has to wait.
            try await Task.sleep(for: .milliseconds(1_300))
            #expect(try await watch.untilPong().isEmpty)
            #expect(try await third.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.2-8]"))
    func `a will waits for its delay, or for the end of the session`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("will")
            let began = ContinuousClock.now
            try await harness.mqtt("one", .v5, durable: true, will: will("delayed", .willDelayInterval(1))).drop()
            #expect(try await watch.taken().text == "delayed")
            #expect(ContinuousClock.now - began >= .milliseconds(950))
            // Without an expiry interval, the session ends with the connection, so the will is not delayed.
            try await harness.mqtt("two", .v5, will: will("ended", .willDelayInterval(600))).drop()
            #expect(try await watch.taken().text == "ended")
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `what was said before the end counts while a request is under way`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let witness = try await harness.mqtt("witness", version)
            _ = try await witness.subscribe("wills")
            let will = MQTTWill(topic: "wills", payload: ByteBuffer(string: "lost"))
            for number in 0..<20 {
                let client = try await harness.mqtt("hasty \(number)", version, durable: true, will: will)
                // The subscription is being stored when the DISCONNECT arrives.
                try await client.send(
                    .subscribe(MQTTSubscribe(packetID: 1, subscriptions: [MQTTSubscription(filter: "t")])),
                    .disconnect(MQTTDisconnect(reason: .success))
                )
                // The server may already have closed the connection.
                try? await client.drop()
            }
            try await harness.mqtt("other", version).publish("wills", "end")
            #expect(try await witness.taken().text == "end")
        }
    }
}
