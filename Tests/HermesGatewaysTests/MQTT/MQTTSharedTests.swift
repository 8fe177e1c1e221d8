// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// Shared subscriptions (4.8.2), statement by statement.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTSharedTests {
    private static let filter = "$share/group/t"

    @Test(
        .statements("5.0 [MQTT-4.8.2-3]"),
        arguments: MQTTQoS.allCases,
        [false, true]
    )
    func `a member gets nothing above the QoS that it was granted`(_ granted: MQTTQoS, durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let member = try await harness.mqtt("member", .v5, durable: durable)
            #expect(
                try await member.subscribe(Self.filter, qos: granted).reasons == [
                    MQTTReasonCode(rawValue: granted.rawValue)
                ]
            )
            for qos in MQTTQoS.allCases {
                try await publisher.publish("t", "x", qos: qos)
                #expect(try await member.taken().qos.rawValue == min(qos.rawValue, granted.rawValue))
            }
        }
    }

    @Test(arguments: [false, true])
    func `who accepts only small packets swallows none of the larger ones while others are there`(
        durable: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let small = try await harness.mqtt("small", .v5, durable: durable, properties: [.maximumPacketSize(300)])
            _ = try await small.subscribe(Self.filter, qos: .atLeastOnce)
            let other = try await harness.mqtt("other", .v5, durable: durable)
            _ = try await other.subscribe(Self.filter, qos: .atLeastOnce)
            let long = String(repeating: "x", count: 1_000)
            for number in 1...20 as ClosedRange<UInt16> {
                #expect(try await publisher.publish("t", "\(number) \(long)", packetID: number) == .success)
            }
            // The messages do not wait for an acknowledgement.
            for number in 1...20 { #expect(try await other.taken().text == "\(number) \(long)") }
            #expect(try await small.untilPong().isEmpty)
            // The client gets its turn for messages that fit.
            for number in 1...4 as ClosedRange<UInt16> { try await publisher.publish("t", "s", packetID: number) }
            #expect(try await small.taken().text == "s")
        }
    }

    @Test(.statements("5.0 [MQTT-4.8.2-4]"))
    func `a QoS 2 message that was sent to a member waits for that member to come back`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let first = try await harness.mqtt("first", .v5, durable: true)
            _ = try await first.subscribe(Self.filter)
            try await publisher.publish("t", "x", qos: .exactlyOnce)
            let sent = try await first.publication()
            let second = try await harness.mqtt("second", .v5, durable: true)
            _ = try await second.subscribe(Self.filter)
            try await first.drop()
            let (again, connack) = try await harness.client("first", .v5, durable: true)
            #expect(connack.sessionPresent)
            let publication = try await again.taken()
            #expect(publication.text == "x" && publication.isDuplicate && publication.packetID == sent.packetID)
            #expect(try await again.untilPong().isEmpty)
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-4.8.2-4]"))
    func `a QoS 2 message that was sent to a member goes to no other after the rules have changed`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let first = try await harness.mqtt("first", .v5, durable: true)
            _ = try await first.subscribe(Self.filter)
            try await publisher.publish("t", "x", qos: .exactlyOnce)
            let sent = try await first.publication()
            let second = try await harness.mqtt("second", .v5, durable: true)
            _ = try await second.subscribe(Self.filter)
            try await first.drop()
            harness.environment.access.replace(with: try TopicRules(parsing: "deny client first read t"))
            let again = try await harness.mqtt("first", .v5, durable: true)
            // The client may keep the identifier until it gets PUBREL.
            let release = MQTTAcknowledgement(packetID: try #require(sent.packetID))
            #expect(try await again.next() == .pubrel(release))
            try await again.send(.pubcomp(release))
            #expect(try await again.untilPong().isEmpty)
            try await again.drop()
            let last = try await harness.mqtt("first", .v5, durable: true)
            #expect(try await last.untilPong().isEmpty)
            try await publisher.publish("t", "next", qos: .exactlyOnce)
            #expect(try await second.taken().text == "next")
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-4.8.2-5]"))
    func `what was sent with QoS 2 goes to nobody else, even if the member then asks for QoS 1`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let first = try await harness.mqtt("first", .v5)
            _ = try await first.subscribe(Self.filter, qos: .exactlyOnce)
            try await publisher.publish("t", "x", qos: .exactlyOnce)
            _ = try await first.publication()
            _ = try await first.subscribe(Self.filter, qos: .atLeastOnce)
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe(Self.filter)
            try await first.disconnect()
            _ = try await harness.mqtt("first", .v5)
            try await publisher.publish("t", "next", qos: .exactlyOnce)
            #expect(try await second.taken().text == "next")
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-4.8.2-5]"), arguments: [MQTTQoS.atLeastOnce, .exactlyOnce])
    func `what a member had got when its session ended goes to the others with QoS 1, to nobody with QoS 2`(
        _ qos: MQTTQoS
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let first = try await harness.mqtt("first", .v5)
            _ = try await first.subscribe(Self.filter)
            try await publisher.publish("t", "x", qos: qos)
            #expect(try await first.publication().text == "x")
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe(Self.filter)
            try await first.drop()
            // When the client is accepted again, the previous connection has ended.
            _ = try await harness.mqtt("first", .v5)
            try await publisher.publish("t", "next", qos: qos)
            var texts = [try await second.taken().text]
            if qos == .atLeastOnce { texts.append(try await second.taken().text) }
            #expect(texts.sorted() == (qos == .atLeastOnce ? ["next", "x"] : ["next"]))
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(.statements("5.0 [MQTT-4.8.2-6]"), arguments: [MQTTQoS.atLeastOnce, .exactlyOnce])
    func `what a member refused goes to no other`(_ qos: MQTTQoS) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let first = try await harness.mqtt("first", .v5)
            _ = try await first.subscribe(Self.filter)
            try await publisher.publish("t", "x", qos: qos)
            let sent = try await first.publication()
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe(Self.filter)
            let refusal = MQTTAcknowledgement(packetID: try #require(sent.packetID), reason: .notAuthorized)
            try await first.send(qos == .atLeastOnce ? .puback(refusal) : .pubrec(refusal))
            try await first.disconnect()
            _ = try await harness.mqtt("first", .v5)
            try await publisher.publish("t", "next", qos: qos)
            #expect(try await second.taken().text == "next")
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `clean and kept members share; what one leaves behind when its session ends goes to the other`(
        keptOneLeaves: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let kept = try await harness.mqtt("kept", .v5, durable: true)
            _ = try await kept.subscribe(Self.filter, qos: .atLeastOnce)
            let clean = try await harness.mqtt("clean", .v5)
            _ = try await clean.subscribe(Self.filter, qos: .atLeastOnce)
            for number in 0..<4 { try await publisher.publish("t", "\(number)") }
            var left: [String] = []
            for _ in 0..<2 {
                left.append(try await (keptOneLeaves ? kept : clean).publication().text)
                _ = try await (keptOneLeaves ? clean : kept).taken()
            }
            if keptOneLeaves {
                try await kept.disconnect(properties: [.sessionExpiryInterval(0)])
            } else {
                try await clean.drop()
            }
            let other = keptOneLeaves ? clean : kept
            #expect(Set([try await other.taken().text, try await other.taken().text]) == Set(left))
            #expect(try await other.untilPong().isEmpty)
        }
    }

    @Test(arguments: [true, false])
    func `a member that may not read a topic gets nothing of it, and the others all`(durable: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            var members: [MQTTTestClient] = []
            for name in ["allowed", "denied"] {
                let member = try await harness.mqtt(name, .v5, durable: durable)
                _ = try await member.subscribe("$share/group/jobs/#")
                members.append(member)
            }
            harness.environment.access.replace(with: try TopicRules(parsing: "deny client denied read jobs/secret"))
            await harness.turnsAreTaken()
            _ = try await members[1].untilPong()
            for number in 0..<4 { try await publisher.publish("jobs/secret", "\(number)") }
            for number in 0..<4 { #expect(try await members[0].taken().text == "\(number)") }
            #expect(try await members[1].untilPong().isEmpty)
        }
    }
}
