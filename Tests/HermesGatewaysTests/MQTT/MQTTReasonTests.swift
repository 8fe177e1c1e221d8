// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// Reason codes of refusals and failures, statement by statement.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTReasonTests {
    private func reason(in properties: MQTTProperties) -> String? {
        properties.first { if case .reasonString(let text) = $0 { text } else { nil } }
    }

    @Test(.statements("3.1.1 [MQTT-3.2.2-6]"))
    func `where no return code fits, the connection is closed without CONNACK`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness, .v311)
            // The reserved flag is set.
            try await client.send(hex: "10 0d 0004 4d515454 04 03 003c 0001 61")
            #expect(try await client.untilEnd().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-3.2.2-19]"), arguments: [nil, 20, 200] as [UInt32?])
    func `a reason string that makes CONNACK too large for the client is left out`(_ most: UInt32?) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await MQTTTestClient.open(harness)
            var connect = MQTTConnect(version: .v5, clientID: String(repeating: "x", count: 2_000))
            if let most { connect.properties = [.maximumPacketSize(most)] }
            try await client.send(.connect(connect))
            let packets = try await client.untilEnd()
            guard case .connack(let connack)? = packets.first, packets.count == 1 else {
                throw Unexpected("\(packets)")
            }
            #expect(connack.reason == .clientIdentifierNotValid)
            #expect((reason(in: connack.properties) == nil) == (most == 20))
        }
    }

    @Test(.statements("5.0 [MQTT-3.14.2-3]"), arguments: [nil, 20, 200] as [UInt32?])
    func `a reason string that makes DISCONNECT too large for the client is left out`(_ most: UInt32?) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5, properties: most.map { [.maximumPacketSize($0)] } ?? [])
            // The topic alias 0.
            try await client.send(hex: "30 07 0001 61 03 23 0000")
            let packets = try await client.untilEnd()
            guard case .disconnect(let disconnect)? = packets.first, packets.count == 1 else {
                throw Unexpected("\(packets)")
            }
            #expect(disconnect.reason == .topicAliasInvalid)
            #expect((reason(in: disconnect.properties) == nil) == (most == 20))
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.2-29]"))
    func `who wants no problem information gets reason codes alone`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("one", .v5, properties: [.requestProblemInformation(false)])
            // One filter is for another account's topics. The other filter is well formed, but deeper than the server
            // accepts.
            let deep = String(repeating: "a/", count: 200) + "#"
            let suback = try await client.subscribe("user/other/t", deep)
            #expect(suback.reasons == [.notAuthorized, .topicFilterInvalid] && suback.properties.isEmpty)
            let unsuback = try await client.unsubscribe("never")
            #expect(unsuback.reasons == [.noSubscriptionExisted] && unsuback.properties.isEmpty)
            for qos in [MQTTQoS.atLeastOnce, .exactlyOnce] {
                let publish = MQTTPublish(topic: "user/other/t", payload: ByteBuffer(), qos: qos, packetID: 7)
                try await client.send(.publish(publish))
                let refusal = MQTTAcknowledgement(packetID: 7, reason: .notAuthorized)
                #expect(try await client.next() == (qos == .atLeastOnce ? .puback(refusal) : .pubrec(refusal)))
            }
            try await client.send(.pubrel(MQTTAcknowledgement(packetID: 8)))
            #expect(
                try await client.next()
                    == .pubcomp(MQTTAcknowledgement(packetID: 8, reason: .packetIdentifierNotFound))
            )
        }
    }

    enum End: CaseIterable, Sendable {
        case takenOver
        case silent
        case tooLarge
        case malformed

        var reason: MQTTReasonCode {
            switch self {
            case .takenOver: .sessionTakenOver
            case .silent: .keepAliveTimeout
            case .tooLarge: .packetTooLarge
            case .malformed: .malformedPacket
            }
        }
    }

    @Test(arguments: End.allCases, [true, false])
    func `DISCONNECT has a reason string, unless the client wants none`(_ end: End, isWanted: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.client(
                "one",
                .v5,
                keepAlive: end == .silent ? 1 : 60,
                properties: isWanted ? [] : [.requestProblemInformation(false)]
            ).client
            switch end {
            case .takenOver: _ = try await harness.mqtt("one", .v5)
            case .silent: break
            case .tooLarge: try await client.send(hex: "30 ff ff ff 7f")
            // PINGREQ with flags.
            case .malformed: try await client.send(hex: "c1 00")
            }
            let packets = try await client.untilEnd()
            guard case .disconnect(let disconnect)? = packets.first, packets.count == 1 else {
                throw Unexpected("\(packets)")
            }
            #expect(disconnect.reason == end.reason)
            #expect((reason(in: disconnect.properties)?.isEmpty == false) == isWanted)
        }
    }

    @Test(.statements("5.0 [MQTT-3.14.2-3]"))
    func `the reason string of a session that is taken over is left out where it does not fit`() async throws {
        try await GatewayHarness.withMQTT { harness in
            for size in [24, 200] {
                let client = try await harness.mqtt("one", .v5, properties: [.maximumPacketSize(UInt32(size))])
                _ = try await harness.mqtt("one", .v5)
                guard case .disconnect(let disconnect)? = try await client.untilEnd().first else {
                    throw Unexpected("no DISCONNECT")
                }
                #expect(disconnect.reason == .sessionTakenOver)
                #expect((reason(in: disconnect.properties) == nil) == (size == 24))
            }
        }
    }

    // MARK: A store that fails

    @Test(
        .statements("3.1.1 [MQTT-4.8.0-2]"),
        arguments: MQTTVersion.allCases,
        [MQTTQoS.atLeastOnce, .exactlyOnce]
    )
    func `a store that fails closes the connection; in 5.0 it is told with a reason code`(
        _ version: MQTTVersion,
        _ qos: MQTTQoS
    ) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let subscriber = try await harness.mqtt("subscriber", version, durable: true)
            _ = try await subscriber.subscribe("t")
            let publisher = try await harness.mqtt("publisher", version)
            store.fail { if case .publish = $0 { true } else { false } }
            let publish = MQTTPublish(topic: "t", payload: ByteBuffer(string: "lost"), qos: qos, packetID: 1)
            try await publisher.send(.publish(publish))
            var again = publisher
            switch version {
            case .v311:
                #expect(try await publisher.untilEnd().isEmpty)
                again = try await harness.mqtt("publisher", version)
            case .v5:
                let failure = MQTTAcknowledgement(packetID: 1, reason: .unspecifiedError)
                #expect(try await publisher.next() == (qos == .atLeastOnce ? .puback(failure) : .pubrec(failure)))
            }
            store.recover()
            try await again.publish("t", "kept", qos: qos)
            #expect(try await subscriber.taken().text == "kept")
        }
    }

    @Test(arguments: [true, false])
    func `a store that fails at PUBREL or PUBREC is the reason of DISCONNECT`(isPublisher: Bool) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let client = try await harness.mqtt("client", .v5, durable: true)
            _ = try await client.subscribe("t")
            store.fail { operation in
                switch operation {
                case .released, .receivedReleased: true
                default: false
                }
            }
            if isPublisher {
                let publish = MQTTPublish(topic: "u", payload: ByteBuffer(), qos: .exactlyOnce, packetID: 7)
                try await client.send(.publish(publish))
                guard case .pubrec = try await client.next() else { throw Unexpected("no PUBREC") }
                try await client.send(.pubrel(MQTTAcknowledgement(packetID: 7)))
            } else {
                let publisher = try await harness.mqtt("publisher", .v5)
                try await publisher.publish("t", "x", qos: .exactlyOnce)
                let packetID = try #require(try await client.publication().packetID)
                try await client.send(.pubrec(MQTTAcknowledgement(packetID: packetID)))
            }
            let packets = try await client.untilEnd()
            guard case .disconnect(let disconnect)? = packets.first, packets.count == 1 else {
                throw Unexpected("\(packets)")
            }
            #expect(disconnect.reason == .unspecifiedError)
        }
    }
}
