// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// A broker with settings that offer less than the full MQTT: a lower QoS, and no retained messages.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTCapabilityTests {
    private func settings(qos: MQTTQoS = .exactlyOnce, retain: Bool = true) -> GatewaySettings {
        var settings = GatewaySettings()
        settings.broker.maximumQoS = Int(qos.rawValue)
        settings.broker.isRetainAvailable = retain
        return settings
    }

    private func expectEnd(_ client: MQTTTestClient, _ reason: MQTTReasonCode) async throws {
        let packets = try await client.untilEnd()
        guard client.version == .v5 else {
            #expect(packets.isEmpty)
            return
        }
        guard case .disconnect(let disconnect)? = packets.first, packets.count == 1 else {
            throw Unexpected("\(packets)")
        }
        #expect(disconnect.reason == reason)
    }

    private func expectRefusal(
        _ harness: GatewayHarness,
        _ version: MQTTVersion,
        _ will: MQTTWill,
        _ reason: MQTTReasonCode
    ) async throws {
        var connect = MQTTConnect(version: version, clientID: "two")
        connect.will = will
        let client = try await MQTTTestClient.open(harness, version)
        try await client.send(.connect(connect))
        let packets = try await client.untilEnd()
        guard version == .v5 else {
            #expect(packets.isEmpty)
            return
        }
        guard case .connack(let connack)? = packets.first, packets.count == 1 else { throw Unexpected("\(packets)") }
        #expect(connack.reason == reason)
    }

    @Test(
        .statements("5.0 [MQTT-3.2.2-9] [MQTT-3.2.2-10] [MQTT-3.2.2-12]"),
        arguments: MQTTVersion.allCases,
        [MQTTQoS.atMostOnce, .atLeastOnce]
    )
    func `a lower QoS is told, granted at most, and demanded`(_ version: MQTTVersion, _ most: MQTTQoS) async throws {
        try await GatewayHarness.withMQTT(settings: settings(qos: most)) { harness in
            let (client, connack) = try await harness.client("one", version)
            let told = connack.properties.list.filter { if case .maximumQoS = $0 { true } else { false } }
            #expect(told == (version == .v5 ? [.maximumQoS(most)] : []))
            for qos in MQTTQoS.allCases {
                let suback = try await client.subscribe("t/\(qos.rawValue)", qos: qos)
                #expect(suback.reasons == [MQTTReasonCode(rawValue: min(qos, most).rawValue)])
            }
            try await client.publish("elsewhere", "x", qos: most)
            for count in [1, 3] {
                // One publication alone, and several that arrive together.
                let publisher = try await harness.mqtt("publisher", version)
                var bytes = ByteBuffer()
                for number in 0..<count {
                    let packet = MQTTPublish(
                        topic: "t/2",
                        payload: ByteBuffer(string: "x"),
                        qos: most == .atMostOnce ? .atLeastOnce : .exactlyOnce,
                        packetID: UInt16(number + 1)
                    )
                    try MQTTPacket.publish(packet).write(into: &bytes, version: version)
                }
                try await publisher.wire.send(bytes)
                try await expectEnd(publisher, .qosNotSupported)
            }
            #expect(try await client.untilPong().isEmpty)
            let will = MQTTWill(topic: "t/2", payload: ByteBuffer(), qos: .exactlyOnce)
            try await expectRefusal(harness, version, will, .qosNotSupported)
        }
    }

    @Test(.statements("5.0 [MQTT-3.2.2-13]"), arguments: MQTTVersion.allCases)
    func `without retained messages that is told, and who asks for one is disconnected`(
        _ version: MQTTVersion
    ) async throws {
        try await GatewayHarness.withMQTT(settings: settings(retain: false)) { harness in
            let (client, connack) = try await harness.client("one", version)
            let told = connack.properties.list.filter { if case .retainAvailable = $0 { true } else { false } }
            #expect(told == (version == .v5 ? [.retainAvailable(false)] : []))
            let publisher = try await harness.mqtt("publisher", version)
            try await publisher.publish("t", "plain", qos: .atLeastOnce)
            let packet = MQTTPublish(
                topic: "t",
                payload: ByteBuffer(string: "x"),
                qos: .atLeastOnce,
                packetID: 1,
                retain: true
            )
            try await publisher.send(.publish(packet))
            try await expectEnd(publisher, .retainNotSupported)
            _ = try await client.subscribe("t")
            #expect(try await client.untilPong().isEmpty)
            let will = MQTTWill(topic: "t", payload: ByteBuffer(), retain: true)
            try await expectRefusal(harness, version, will, .retainNotSupported)
        }
    }

    @Test
    func `what the broker offers in full is not told`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let connack = try await harness.client("one", .v5).connack
            let told = connack.properties.list.contains {
                switch $0 {
                case .maximumQoS, .retainAvailable: true
                default: false
                }
            }
            #expect(!told)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a CONNECT with all that MQTT lets it hold is answered`(_ version: MQTTVersion) async throws {
        try await GatewayHarness.withMQTT { harness in
            let most = String(repeating: "x", count: 65_535)
            let client = try await MQTTTestClient.open(harness, version)
            var connect = MQTTConnect(version: version, clientID: "one")
            connect.will = MQTTWill(topic: most, payload: ByteBuffer(string: most))
            connect.userName = most
            connect.password = ByteBuffer(string: most)
            try await client.send(.connect(connect))
            guard case .connack(let refusal)? = try await client.untilEnd().first else {
                throw Unexpected("no CONNACK")
            }
            #expect(refusal.reason == .badUserNameOrPassword)
            // The same broker accepts another client.
            let other = try await MQTTTestClient.open(harness, version)
            connect.userName = nil
            connect.password = nil
            try await other.send(.connect(connect))
            guard case .connack(let connack) = try await other.next() else { throw Unexpected("no CONNACK") }
            #expect(connack.reason == .success)
        }
    }
}
