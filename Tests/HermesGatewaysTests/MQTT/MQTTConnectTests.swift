// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// CONNECT and CONNACK, statement by statement.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTConnectTests {
    @Test(
        .statements(
            "3.1.1 [MQTT-3.1.4-4] [MQTT-3.2.0-1] [MQTT-3.2.2-1], 5.0 [MQTT-3.1.4-5] [MQTT-3.2.0-1] [MQTT-3.2.0-2] [MQTT-3.2.2-1] [MQTT-3.2.2-2]"
        ),
        arguments: MQTTVersion.allCases
    )
    func `a clean CONNECT is accepted, once, without a session`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            _ = try await harness.mqtt("one", version, durable: true)
            let (client, connack) = try await harness.client("one", version, clean: true)
            #expect(connack.reason == .success)
            #expect(!connack.sessionPresent)
            #expect(try await client.untilPong().isEmpty)
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.1.2-2], 5.0 [MQTT-3.1.2-2]"), arguments: [0x03, 0x06, 0xFF] as [UInt8])
    func `another protocol level is told so`(_ level: UInt8) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness, .v311)
            let hex = String(level, radix: 16)
            try await client.send(hex: "10 0d 0004 4d515454" + (hex.count == 1 ? "0" : "") + hex + "02 003c 0001 61")
            let packets = try await client.untilEnd()
            #expect(packets == [.connack(MQTTConnack(reason: .unsupportedProtocolVersion))])
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.1.2-2]"))
    func `MQTT 3.1 is told so`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness, .v311)
            try await client.send(hex: "10 0f 0006 4d5149736470 03 02 003c 0001 61")
            #expect(try await client.untilEnd() == [.connack(MQTTConnack(reason: .unsupportedProtocolVersion))])
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-3.1.3-5], 5.0 [MQTT-3.1.3-5]"),
        arguments: MQTTVersion.allCases,
        ["a", "0123456789abcdefghijklm", "nopqrstuvwxyzABCDEFGHIJ", "KLMNOPQRSTUVWXYZ"]
    )
    func `client identifiers of 1 to 23 letters and digits`(_ version: MQTTVersion, _ name: String) async throws {
        try await GatewayHarness.withMQTT { harness in
            let connack = try await harness.client(name, version).connack
            #expect(connack.reason == .success)
        }
    }

    @Test(.statements("3.1.1 [MQTT-1.5.3-3], 5.0 [MQTT-1.5.4-3]"), arguments: MQTTVersion.allCases)
    func `u+FEFF is a character of a client identifier and of a topic`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let plain = try await harness.mqtt("a", version)
            let marked = try await harness.mqtt("\u{FEFF}a", version)
            _ = try await marked.subscribe("\u{FEFF}t")
            try await plain.publish("t", "without")
            try await plain.publish("\u{FEFF}t", "with")
            let publication = try await marked.taken()
            #expect(publication.text == "with")
            #expect(publication.topic.unicodeScalars.first == "\u{FEFF}")
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.1.3-6]"))
    func `an empty client identifier is one of its own`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let first = try await harness.mqtt("", .v311)
            _ = try await harness.mqtt("", .v311)
            #expect(try await first.untilPong().isEmpty)
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.1.3-8] [MQTT-3.1.3-9] [MQTT-3.2.2-4] [MQTT-3.2.2-5]"))
    func `no identifier, no lasting session`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness, .v311)
            try await client.send(.connect(MQTTConnect(version: .v311, clientID: "", cleanStart: false)))
            #expect(try await client.untilEnd() == [.connack(MQTTConnack(reason: .clientIdentifierNotValid))])
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.3-6] [MQTT-3.1.3-7] [MQTT-3.2.2-16]"))
    func `an empty client identifier is replaced, and told`() async throws {
        try await GatewayHarness.withMQTT { harness in
            var names: Set<String> = []
            for _ in 0..<3 {
                let connack = try await harness.client("", .v5).connack
                let name: String? = connack.properties.first {
                    if case .assignedClientIdentifier(let name) = $0 { name } else { nil }
                }
                names.insert(try #require(name))
            }
            #expect(names.count == 3 && !names.contains(""))
            // The identifier belongs to the client. Another connection with the identifier takes over.
            let (first, connack) = try await harness.client("", .v5, durable: true, clean: true)
            let name: String? = connack.properties.first {
                if case .assignedClientIdentifier(let name) = $0 { name } else { nil }
            }
            let again = try await harness.client(try #require(name), .v5, durable: true)
            #expect(again.connack.sessionPresent)
            #expect(try await first.untilEnd().count == 1)
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.3-8] [MQTT-3.2.2-6] [MQTT-3.2.2-7] [MQTT-3.2.2-8]"))
    func `an identifier that is too long is refused`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness)
            try await client.send(.connect(MQTTConnect(version: .v5, clientID: String(repeating: "x", count: 2_000))))
            let packets = try await client.untilEnd()
            guard case .connack(let connack)? = packets.first, packets.count == 1 else {
                throw Unexpected("\(packets)")
            }
            #expect(connack.reason == .clientIdentifierNotValid && !connack.sessionPresent)
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.1.4-5], 5.0 [MQTT-3.1.4-6]"), arguments: MQTTVersion.allCases)
    func `nothing behind a refused CONNECT is looked at`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", version)
            _ = try await watch.subscribe("t")
            let client = try await MQTTTestClient.open(harness, version)
            let refused = MQTTConnect(
                version: version,
                clientID: version == .v311 ? "" : String(repeating: "x", count: 2_000),
                cleanStart: false
            )
            try await client.send(
                .connect(refused),
                .publish(MQTTPublish(topic: "t", payload: ByteBuffer(string: "no")))
            )
            #expect(try await client.untilEnd().count == 1)
            #expect(try await watch.untilPong().isEmpty)
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-3.1.3-2] [MQTT-3.1.4-2], 5.0 [MQTT-3.1.3-2] [MQTT-3.1.4-3]"),
        arguments: MQTTVersion.allCases
    )
    func `the same client identifier takes over`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let first = try await harness.mqtt("one", version)
            let second = try await harness.mqtt("one", version)
            let said = try await first.untilEnd()
            switch version {
            case .v311: #expect(said.isEmpty)
            case .v5:
                guard case .disconnect(let disconnect)? = said.first else { throw Unexpected("\(said)") }
                #expect(disconnect.reason == .sessionTakenOver)
            }
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.1.2-24], 5.0 [MQTT-3.1.2-22] [MQTT-3.2.2-22]"), arguments: MQTTVersion.allCases)
    func `silence for one and a half times the keep-alive is a lost network`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", version)
            _ = try await watch.subscribe("will")
            let will = MQTTWill(topic: "will", payload: ByteBuffer(string: "silent"))
            let client = try await harness.client("silent", version, keepAlive: 1, will: will).client
            let began = ContinuousClock.now
            _ = try await client.untilEnd()
            // The limit is one and a half times the keep alive of a second, plus the delay of a busy machine.
            #expect((.milliseconds(1_200)...(.seconds(15))).contains(ContinuousClock.now - began))
            #expect(try await watch.taken().text == "silent")
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.12.4-1], 5.0 [MQTT-3.12.4-1]"), arguments: MQTTVersion.allCases)
    func `PINGREQ is answered`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", version)
            try await client.send(.pingreq, .pingreq)
            #expect(try await client.next() == .pingresp)
            #expect(try await client.next() == .pingresp)
        }
    }

    @Test(.statements("5.0 [MQTT-4.12.0-1] [MQTT-4.12.0-4] [MQTT-3.1.4-2]"))
    func `an authentication method that nobody knows is refused`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness)
            var connect = MQTTConnect(version: .v5, clientID: "one")
            connect.properties = [.authenticationMethod("SCRAM-SHA-1")]
            try await client.send(.connect(connect))
            let packets = try await client.untilEnd()
            guard case .connack(let connack)? = packets.first else { throw Unexpected("\(packets)") }
            #expect(connack.reason == .badAuthenticationMethod)
        }
    }

    @Test
    func `5.0 3.1.2.11.10: authentication data without a method is refused`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness)
            var connect = MQTTConnect(version: .v5, clientID: "one")
            connect.properties = [.authenticationData(ByteBuffer(string: "x"))]
            try await client.send(.connect(connect))
            let packets = try await client.untilEnd()
            guard case .connack(let connack)? = packets.first else { throw Unexpected("\(packets)") }
            #expect(connack.reason == .protocolError)
        }
    }

    @Test(.statements("5.0 [MQTT-4.12.0-6]"))
    func `without an authentication method there is none in CONNACK`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let connack = try await harness.client("one", .v5).connack
            #expect(!connack.properties.list.contains { if case .authenticationMethod = $0 { true } else { false } })
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.2-28]"))
    func `response information only for who asks for it`() async throws {
        try await GatewayHarness.withMQTT { harness in
            for isWanted in [nil, false, true] {
                let properties = isWanted.map { [MQTTProperty.requestResponseInformation($0)] } ?? []
                let connack = try await harness.client("one", .v5, properties: properties).connack
                let isThere = connack.properties.list.contains {
                    if case .responseInformation = $0 { true } else { false }
                }
                #expect(isThere == (isWanted == true))
            }
            // A client can subscribe and publish to the returned topic.
            for (name, told) in [("a/b", "response/a/b"), ("a+b", nil), ("#", nil)] {
                let asked: [MQTTProperty] = [.requestResponseInformation(true)]
                let connack = try await harness.client(name, .v5, properties: asked).connack
                let found = connack.properties.first {
                    if case .responseInformation(let text) = $0 { text } else { nil }
                }
                #expect(connack.reason == .success && found == told)
            }
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.4-4] [MQTT-3.1.2-4]"))
    func `clean start throws the session away`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let first = try await harness.mqtt("one", .v5, durable: true)
            _ = try await first.subscribe("t")
            try await first.disconnect()
            let (second, connack) = try await harness.client("one", .v5, durable: true, clean: true)
            #expect(!connack.sessionPresent)
            try await second.publish("t", "nobody")
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(
        .statements("3.1.1 [MQTT-7.1.1-1] [MQTT-7.0.0-2], 5.0 [MQTT-4.2.0-1] [MQTT-2.2.2-1]"),
        arguments: MQTTVersion.allCases
    )
    func `byte by byte, and all at once`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            var bytes = ByteBuffer()
            let subscribe = MQTTSubscribe(packetID: 1, subscriptions: [MQTTSubscription(filter: "t")])
            let publish = MQTTPublish(topic: "t", payload: ByteBuffer(string: "x"))
            let packets: [MQTTPacket] = [
                .connect(MQTTConnect(version: version, clientID: "one")), .subscribe(subscribe), .publish(publish),
                .pingreq,
            ]
            for packet in packets { try packet.write(into: &bytes, version: version) }
            for isWhole in [true, false] {
                let client = try await MQTTTestClient.open(harness, version)
                if isWhole {
                    try await client.wire.send(bytes)
                } else {
                    for byte in bytes.readableBytesView { try await client.wire.send(ByteBuffer(bytes: [byte])) }
                }
                guard case .connack = try await client.next(), case .suback = try await client.next() else {
                    throw Unexpected("no CONNACK or SUBACK")
                }
                #expect(try await client.publication().text == "x")
                #expect(try await client.next() == .pingresp)
                try await client.drop()
            }
        }
    }
}
