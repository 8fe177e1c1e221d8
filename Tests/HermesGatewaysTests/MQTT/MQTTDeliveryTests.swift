// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// PUBLISH and its acknowledgements, both ways, statement by statement.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTDeliveryTests {
    private func publish(
        _ topic: String,
        _ text: String,
        _ qos: MQTTQoS,
        _ packetID: UInt16,
        duplicate: Bool = false
    ) -> MQTTPacket {
        .publish(
            MQTTPublish(
                topic: topic,
                payload: ByteBuffer(string: text),
                qos: qos,
                packetID: qos == .atMostOnce ? nil : packetID,
                isDuplicate: duplicate
            )
        )
    }

    private func acknowledgement(_ packetID: UInt16) -> MQTTAcknowledgement { MQTTAcknowledgement(packetID: packetID) }

    @Test(
        .statements(
            "3.1.1 [MQTT-3.8.4-6] [MQTT-4.3.1-1] [MQTT-4.3.2-1] [MQTT-4.3.3-1] [MQTT-2.3.1-5] [MQTT-3.3.2-3], 5.0 [MQTT-3.8.4-8] [MQTT-4.3.1-1] [MQTT-4.3.2-2] [MQTT-4.3.3-2] [MQTT-2.2.1-2] [MQTT-2.2.1-4] [MQTT-3.3.2-3]"
        ),
        arguments: MQTTVersion.allCases
    )
    func `delivered at the lower QoS, new, without DUP`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let subscriber = try await harness.mqtt("subscriber", version)
            for granted in MQTTQoS.allCases {
                _ = try await subscriber.subscribe("t/\(granted.rawValue)", qos: granted)
                for sent in MQTTQoS.allCases {
                    try await publisher.publish("t/\(granted.rawValue)", "\(sent.rawValue)", qos: sent)
                    let publication = try await subscriber.taken()
                    #expect(publication.topic == "t/\(granted.rawValue)" && publication.text == "\(sent.rawValue)")
                    #expect(publication.qos == min(sent, granted))
                    #expect(!publication.isDuplicate && !publication.retain)
                    #expect((publication.packetID ?? 0 != 0) == (publication.qos != .atMostOnce))
                }
            }
        }
    }

    @Test(
        .statements(
            "3.1.1 [MQTT-3.3.4-1] [MQTT-4.3.2-2] [MQTT-4.3.3-2] [MQTT-2.3.1-6], 5.0 [MQTT-3.3.4-1] [MQTT-4.3.2-4] [MQTT-4.3.3-8] [MQTT-4.3.3-11] [MQTT-2.2.1-5] [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-3.7.2-1]"
        ),
        arguments: MQTTVersion.allCases
    )
    func `each QoS has its answers, with its identifier`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", version)
            try await client.send(publish("t", "x", .atMostOnce, 0))
            #expect(try await client.untilPong().isEmpty)
            for packetID in [1, 0xFFFF, 0x0102] as [UInt16] {
                try await client.send(publish("t", "x", .atLeastOnce, packetID))
                guard case .puback(let puback) = try await client.next() else { throw Unexpected("no PUBACK") }
                #expect(puback.packetID == packetID && !puback.reason.isFailure)
                try await client.send(publish("t", "x", .exactlyOnce, packetID))
                guard case .pubrec(let pubrec) = try await client.next() else { throw Unexpected("no PUBREC") }
                #expect(pubrec.packetID == packetID && !pubrec.reason.isFailure)
                try await client.send(.pubrel(acknowledgement(packetID)))
                guard case .pubcomp(let pubcomp) = try await client.next() else { throw Unexpected("no PUBCOMP") }
                #expect(pubcomp.packetID == packetID && pubcomp.reason == .success)
            }
        }
    }

    @Test(.statements("3.1.1 [MQTT-4.3.2-2], 5.0 [MQTT-4.3.2-5]"), arguments: MQTTVersion.allCases)
    func `after PUBACK the identifier is a new message, DUP or not`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let subscriber = try await harness.mqtt("subscriber", version)
            _ = try await subscriber.subscribe("t")
            for _ in 0..<2 {
                try await publisher.send(publish("t", "x", .atLeastOnce, 7, duplicate: true))
                guard case .puback = try await publisher.next() else { throw Unexpected("no PUBACK") }
                // 3.1.1 [MQTT-3.3.1-3], 5.0 [MQTT-3.3.1-3]
                #expect(try await !subscriber.taken().isDuplicate)
            }
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-4.3.3-2], 5.0 [MQTT-4.3.3-10] [MQTT-4.3.3-12]"),
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `QoS 2 is delivered once until PUBREL, then anew`(_ version: MQTTVersion, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version, durable: durable)
            let subscriber = try await harness.mqtt("subscriber", version, durable: durable)
            _ = try await subscriber.subscribe("t")
            for round in 0..<2 {
                for attempt in 0..<3 {
                    try await publisher.send(publish("t", "\(round)", .exactlyOnce, 9, duplicate: attempt > 0))
                    guard case .pubrec(let pubrec) = try await publisher.next() else { throw Unexpected("no PUBREC") }
                    #expect(pubrec.packetID == 9 && !pubrec.reason.isFailure)
                }
                try await publisher.send(.pubrel(acknowledgement(9)))
                guard case .pubcomp = try await publisher.next() else { throw Unexpected("no PUBCOMP") }
                #expect(try await subscriber.taken().text == "\(round)")
                #expect(try await subscriber.untilPong().isEmpty)
            }
        }
    }

    @Test(.statements("5.0 [MQTT-3.7.2-1] [MQTT-4.3.3-11]"))
    func `PUBREL for what was never received is answered`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5)
            try await client.send(.pubrel(acknowledgement(77)))
            let answer = MQTTAcknowledgement(packetID: 77, reason: .packetIdentifierNotFound)
            #expect(try await client.next() == .pubcomp(answer))
        }
    }

    @Test(.statements("5.0 [MQTT-3.6.2-1]"))
    func `PUBREC for what was never sent is answered`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5)
            try await client.send(.pubrec(acknowledgement(77)))
            let answer = MQTTAcknowledgement(packetID: 77, reason: .packetIdentifierNotFound)
            #expect(try await client.next() == .pubrel(answer))
        }
    }

    @Test(.statements("5.0 [MQTT-4.3.3-4]"))
    func `a PUBREC that says no is not answered, whether the message is known or not`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let client = try await harness.mqtt("one", .v5, properties: [.receiveMaximum(1)])
            _ = try await client.subscribe("t")
            let refusal = MQTTReasonCode.implementationSpecificError
            try await client.send(.pubrec(MQTTAcknowledgement(packetID: 77, reason: refusal)))
            #expect(try await client.untilPong().isEmpty)
            try await publisher.publish("t", "one", qos: .exactlyOnce)
            let packetID = try #require(try await client.publication().packetID)
            try await client.send(.pubrec(acknowledgement(packetID)))
            #expect(try await client.next() == .pubrel(acknowledgement(packetID)))
            try await client.send(.pubrec(MQTTAcknowledgement(packetID: packetID, reason: refusal)))
            #expect(try await client.untilPong().isEmpty)
            // There will be no PUBCOMP, so the place in the window is free.
            try await publisher.publish("t", "two", qos: .exactlyOnce)
            #expect(try await client.publication().text == "two")
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-4.3.3-1], 5.0 [MQTT-4.3.3-4] [MQTT-3.6.2-1]"),
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `PUBREC is answered with PUBREL of its identifier`(_ version: MQTTVersion, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let subscriber = try await harness.mqtt("subscriber", version, durable: durable)
            _ = try await subscriber.subscribe("t")
            try await publisher.publish("t", "x", qos: .exactlyOnce)
            let packetID = try #require(try await subscriber.publication().packetID)
            for _ in 0..<2 {
                try await subscriber.send(.pubrec(acknowledgement(packetID)))
                #expect(try await subscriber.next() == .pubrel(acknowledgement(packetID)))
            }
        }
    }

    @Test(.statements("5.0 [MQTT-4.4.0-2] [MQTT-4.3.3-9]"), arguments: [false, true])
    func `a refused message counts as acknowledged and is not sent again`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt("subscriber", .v5, durable: true)
            _ = try await subscriber.subscribe("t")
            try await publisher.publish("t", "one", qos: .atLeastOnce)
            let first = try #require(try await subscriber.publication().packetID)
            try await subscriber.send(
                .puback(MQTTAcknowledgement(packetID: first, reason: .implementationSpecificError))
            )
            try await publisher.publish("t", "two", qos: .exactlyOnce)
            let second = try #require(try await subscriber.publication().packetID)
            try await subscriber.send(
                .pubrec(MQTTAcknowledgement(packetID: second, reason: .implementationSpecificError))
            )
            #expect(try await subscriber.untilPong().isEmpty)
            try await subscriber.drop()
            let (again, connack) = try await harness.client("subscriber", .v5, durable: true)
            #expect(connack.sessionPresent)
            #expect(try await again.untilPong().isEmpty)
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-4.6.0-5] [MQTT-4.6.0-6], 5.0 [MQTT-4.6.0-5] [MQTT-4.6.0-6]"),
        arguments: MQTTVersion.allCases,
        MQTTQoS.allCases
    )
    func `the order of each topic and QoS holds`(_ version: MQTTVersion, _ qos: MQTTQoS) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let clean = try await harness.mqtt("clean", version)
            let durable = try await harness.mqtt("durable", version, durable: true)
            for client in [clean, durable] { _ = try await client.subscribe("t") }
            for number in 0..<200 { try await publisher.publish("t", "\(number)", qos: qos) }
            for client in [clean, durable] {
                for number in 0..<200 { #expect(try await client.publication().text == "\(number)") }
            }
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-4.6.0-2] [MQTT-4.6.0-3], 5.0 [MQTT-4.6.0-2] [MQTT-4.6.0-3]"),
        arguments: MQTTVersion.allCases,
        [MQTTQoS.atLeastOnce, .exactlyOnce]
    )
    func `acknowledgements are in the order of the messages, stored or not`(
        _ version: MQTTVersion,
        _ qos: MQTTQoS
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let durable = try await harness.mqtt("durable", version, durable: true)
            _ = try await durable.subscribe("stored")
            for packetID in 1...100 as ClosedRange<UInt16> {
                // Some publications wait for the store. The others need no store.
                try await publisher.send(publish(packetID % 3 == 0 ? "stored" : "t", "x", qos, packetID))
            }
            for packetID in 1...100 as ClosedRange<UInt16> {
                switch try await publisher.next() {
                case .puback(let packet), .pubrec(let packet): #expect(packet.packetID == packetID)
                case let other: throw Unexpected("\(other)")
                }
            }
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-4.6.0-4], 5.0 [MQTT-4.6.0-4]"),
        arguments: MQTTVersion.allCases,
        [false, true]
    )
    func `PUBREL packets are in the order of the PUBREC packets`(_ version: MQTTVersion, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let subscriber = try await harness.mqtt("subscriber", version, durable: durable)
            _ = try await subscriber.subscribe("t")
            for _ in 0..<20 { try await publisher.publish("t", "x", qos: .exactlyOnce) }
            var packetIDs: [UInt16] = []
            for _ in 0..<20 { packetIDs.append(try #require(try await subscriber.publication().packetID)) }
            #expect(Set(packetIDs).count == 20)
            for packetID in packetIDs.reversed() { try await subscriber.send(.pubrec(acknowledgement(packetID))) }
            for packetID in packetIDs.reversed() {
                #expect(try await subscriber.next() == .pubrel(acknowledgement(packetID)))
            }
        }
    }

    // MARK: Flow control

    @Test(
        .statements("5.0 [MQTT-3.3.4-9] [MQTT-3.3.4-10] [MQTT-4.9.0-1] [MQTT-4.9.0-2] [MQTT-4.9.0-3]"),
        arguments: [false, true]
    )
    func `the client's receive maximum`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt(
                "subscriber",
                .v5,
                durable: durable,
                properties: [.receiveMaximum(2)]
            )
            _ = try await subscriber.subscribe("t/#")
            for number in 0..<5 {
                try await publisher.publish("t/1", "\(number)", qos: number % 2 == 0 ? .atLeastOnce : .exactlyOnce)
            }
            try await publisher.publish("t/0", "at most once", qos: .atMostOnce)
            let first = try await subscriber.publication()
            let second = try await subscriber.publication()
            #expect(first.text == "0" && second.text == "1")
            #expect(try await subscriber.publication().text == "at most once")
            // Other packets are not affected by a send quota of zero.
            #expect(try await subscriber.untilPong().isEmpty)
            let suback = try await subscriber.subscribe("other", packetID: 9)
            #expect(suback.packetID == 9)
            try await subscriber.publish("elsewhere", "x", qos: .atLeastOnce)
            let ids = (try #require(first.packetID), try #require(second.packetID))
            try await subscriber.send(.puback(acknowledgement(ids.0)))
            let third = try await subscriber.publication()
            #expect(third.text == "2")
            // For a QoS 2 message, only PUBCOMP frees the place, not PUBREC.
            try await subscriber.send(.pubrec(acknowledgement(ids.1)))
            #expect(try await subscriber.next() == .pubrel(acknowledgement(ids.1)))
            #expect(try await subscriber.untilPong().isEmpty)
            try await subscriber.send(.pubcomp(acknowledgement(ids.1)))
            #expect(try await subscriber.publication().text == "3")
        }
    }

    @Test(.statements("5.0 [MQTT-3.3.4-7]"))
    func `a client beyond the server's receive maximum is put out`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let (client, connack) = try await harness.client("one", .v5)
            let maximum: UInt16 =
                connack.properties.first { if case .receiveMaximum(let count) = $0 { count } else { nil } } ?? 65_535
            for packetID in 1...maximum { try await client.send(publish("t", "x", .exactlyOnce, packetID)) }
            for _ in 1...maximum {
                guard case .pubrec = try await client.next() else { throw Unexpected("no PUBREC") }
            }
            try await client.send(publish("t", "x", .exactlyOnce, maximum + 1))
            guard case .disconnect(let disconnect)? = try await client.untilEnd().first else {
                throw Unexpected("no DISCONNECT")
            }
            #expect(disconnect.reason == .receiveMaximumExceeded)
        }
    }

    @Test(
        .statements("5.0 [MQTT-3.1.2-24] [MQTT-3.1.2-25]"),
        arguments: MQTTQoS.allCases,
        [false, true]
    )
    func `what is too large for the client is as if it had been sent`(_ qos: MQTTQoS, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt(
                "subscriber",
                .v5,
                durable: durable,
                properties: [.maximumPacketSize(100), .receiveMaximum(2)]
            )
            _ = try await subscriber.subscribe("t", qos: qos)
            for _ in 0..<5 { try await publisher.publish("t", String(repeating: "x", count: 200), qos: qos) }
            try await publisher.publish("t", "small", qos: qos)
            #expect(try await subscriber.taken().text == "small")
        }
    }

    // MARK: Properties

    @Test(
        .statements(
            "5.0 [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-20]"
        ),
        arguments: MQTTQoS.allCases,
        [false, true]
    )
    func `properties are passed on as they came`(_ qos: MQTTQoS, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt("subscriber", .v5, durable: durable)
            _ = try await subscriber.subscribe("t", qos: qos)
            let sent: [MQTTProperty] = [
                .payloadFormatIndicator(true), .contentType("text/plain"), .responseTopic("answers/ä"),
                .correlationData(ByteBuffer(bytes: [0, 255, 1])), .userProperty("b", "1"), .userProperty("a", "2"),
                .userProperty("b", "1"), .userProperty("", ""),
            ]
            try await publisher.publish("t", "x", qos: qos, properties: MQTTProperties(sent))
            let publication = try await subscriber.taken()
            #expect(Set(publication.properties.list) == Set(sent))
            #expect(publication.properties.userProperties.map(\.name) == ["b", "a", "b", ""])
            #expect(publication.properties.userProperties.map(\.value) == ["1", "2", "1", ""])
        }
    }

    @Test(.statements("5.0 [MQTT-3.3.2-12] [MQTT-3.3.2-7]"))
    func `every alias up to the maximum, set and set anew, for one connection`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let (publisher, connack) = try await harness.client("publisher", .v5)
            let maximum: UInt16 =
                connack.properties.first { if case .topicAliasMaximum(let count) = $0 { count } else { nil } } ?? 0
            let subscriber = try await harness.mqtt("subscriber", .v5)
            _ = try await subscriber.subscribe("#")
            try #require(maximum > 0)
            for round in 0..<2 {
                for alias in 1...maximum {
                    try await publisher.publish(
                        "t/\(round)/\(alias)",
                        "set",
                        qos: .atMostOnce,
                        properties: [.topicAlias(alias)]
                    )
                    try await publisher.publish("", "used", qos: .atMostOnce, properties: [.topicAlias(alias)])
                    for text in ["set", "used"] {
                        let publication = try await subscriber.taken()
                        #expect(publication.topic == "t/\(round)/\(alias)" && publication.text == text)
                        // 5.0 [MQTT-3.1.2-27]: this client accepts no topic aliases.
                        #expect(publication.properties.isEmpty)
                    }
                }
            }
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.2-26] [MQTT-3.3.2-11]"), arguments: [false, true])
    func `the server's aliases stay within the client's maximum`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt(
                "subscriber",
                .v5,
                durable: durable,
                properties: [.topicAliasMaximum(2)]
            )
            _ = try await subscriber.subscribe("t/+")
            var names: [UInt16: String] = [:]
            for number in 0..<20 {
                try await publisher.publish("t/\(number % 4)", "\(number)", qos: .atLeastOnce)
                let publication = try await subscriber.taken()
                let alias: UInt16? = publication.properties.first {
                    if case .topicAlias(let alias) = $0 { alias } else { nil }
                }
                if let alias {
                    #expect(1...2 ~= alias)
                    if !publication.topic.isEmpty { names[alias] = publication.topic }
                }
                let topic = publication.topic.isEmpty ? alias.flatMap { names[$0] } : publication.topic
                #expect(topic == "t/\(number % 4)" && publication.text == "\(number)")
            }
        }
    }

    /// Each topic alias keeps its topic in memory until the connection ends.
    @Test
    func `a long topic gets no alias`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt("subscriber", .v5, properties: [.topicAliasMaximum(32)])
            _ = try await subscriber.subscribe("#")
            for number in 0..<32 {
                let isLong = number % 2 == 0
                let topic = "\(number)/" + String(repeating: "x", count: isLong ? 60_000 : 900)
                try await publisher.publish(topic, "\(number)", qos: .atLeastOnce)
                let publication = try await subscriber.taken()
                #expect(publication.topic == topic)
                #expect(publication.properties.isEmpty == isLong)
            }
        }
    }

    @Test(.statements("5.0 [MQTT-3.3.2-6] [MQTT-4.3.3-13]"))
    func `without waiting an expiry is passed on, and QoS 2 goes on to its end`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt("subscriber", .v5)
            _ = try await subscriber.subscribe("t")
            for qos in MQTTQoS.allCases {
                try await publisher.publish("t", "x", qos: qos, properties: [.messageExpiryInterval(1_000)])
                let left: UInt32? = try await subscriber.taken().properties.first {
                    if case .messageExpiryInterval(let seconds) = $0 { seconds } else { nil }
                }
                #expect(try 990...1_000 ~= #require(left))
            }
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.3.5-2]"), arguments: [MQTTQoS.atLeastOnce, .exactlyOnce])
    func `what may not be published is acknowledged as usual`(_ qos: MQTTQoS) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v311)
            try await client.publish("$SYS/broker/clients", "x", qos: qos)
            #expect(try await client.untilPong().isEmpty)
        }
    }

    @Test(
        .statements("5.0 [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-4.3.3-9]"),
        arguments: [MQTTQoS.atLeastOnce, .exactlyOnce]
    )
    func `what may not be published is refused, and the identifier is free`(_ qos: MQTTQoS) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5)
            for _ in 0..<2 {
                #expect(try await client.publish("$SYS/broker/clients", "x", qos: qos) == .notAuthorized)
            }
            _ = try await client.subscribe("t")
            try await client.send(publish("t", "x", qos, 1))
            let packets = try await client.untilPong()
            #expect(
                packets.contains { if case .publish(let publication) = $0 { publication.text == "x" } else { false } }
            )
        }
    }

    @Test(.statements("3.1.1 [MQTT-4.7.3-3], 5.0 [MQTT-4.7.3-3]"), arguments: MQTTVersion.allCases)
    func `a topic of 65,535 bytes`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            let subscriber = try await harness.mqtt("subscriber", version)
            let topic = Array(repeating: "a", count: 32_768).joined(separator: "/")
            _ = try await subscriber.subscribe("a/#")
            try await publisher.publish(topic, "x")
            #expect(try await subscriber.taken().topic == topic)
        }
    }
}
