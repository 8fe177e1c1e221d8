// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// Publications that arrive together are delivered as if they had arrived separately, to all kinds of subscribers.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTRunTests {
    private static let count = 100

    private func bytes(_ version: MQTTVersion, _ qos: MQTTQoS, _ properties: MQTTProperties = []) throws -> ByteBuffer {
        var bytes = ByteBuffer()
        for number in 0..<Self.count {
            let packet = MQTTPublish(
                topic: "a/topic",
                payload: ByteBuffer(string: "\(number)"),
                qos: qos,
                packetID: qos == .atMostOnce ? nil : UInt16(number + 1),
                properties: number == 50 ? properties : []
            )
            try MQTTPacket.publish(packet).write(into: &bytes, version: version)
        }
        return bytes
    }

    private func publish(
        _ publisher: MQTTTestClient,
        _ qos: MQTTQoS,
        _ properties: MQTTProperties = []
    ) async throws {
        try await publisher.wire.send(bytes(publisher.version, qos, properties))
        for number in 0..<Self.count where qos != .atMostOnce {
            switch try await publisher.next() {
            case .puback(let answer) where qos == .atLeastOnce: #expect(Int(answer.packetID) == number + 1)
            case .pubrec(let answer) where qos == .exactlyOnce: #expect(Int(answer.packetID) == number + 1)
            case let other: throw Unexpected("\(other)")
            }
        }
        for number in 0..<Self.count where qos == .exactlyOnce {
            try await publisher.send(.pubrel(MQTTAcknowledgement(packetID: UInt16(number + 1))))
        }
        for number in 0..<Self.count where qos == .exactlyOnce {
            guard case .pubcomp(let answer) = try await publisher.next() else { throw Unexpected("no PUBCOMP") }
            #expect(Int(answer.packetID) == number + 1)
        }
    }

    @Test func `a run to many arrives whole and in order, also if the publisher leaves at once`() async throws {
        try await GatewayHarness.with(MQTTGateway.self, loops: 1) { harness in
            var subscribers: [MQTTTestClient] = []
            for number in 0..<70 {
                subscribers.append(try await harness.mqtt("subscriber-\(number)", .v311))
                _ = try await subscribers[number].subscribe("a/topic", qos: .atMostOnce)
            }
            let publisher = try await harness.mqtt("publisher", .v311)
            var bytes = ByteBuffer()
            for number in 0..<2_000 {
                let packet = MQTTPublish(topic: "a/topic", payload: ByteBuffer(string: "\(number)"))
                try MQTTPacket.publish(packet).write(into: &bytes, version: .v311)
            }
            try await publisher.wire.send(bytes)
            try await publisher.drop()
            for subscriber in [subscribers[0], subscribers[69]] {
                for number in 0..<2_000 {
                    guard case .publish(let packet) = try await subscriber.next() else {
                        throw Unexpected("no PUBLISH")
                    }
                    #expect(String(buffer: packet.payload) == "\(number)")
                }
            }
        }
    }

    /// Receives all publications and completes each acknowledgement.
    private func take(_ client: MQTTTestClient) async throws -> [MQTTPublish] {
        var publications: [MQTTPublish] = []
        var unreleased = 0
        while publications.count < Self.count || unreleased > 0 {
            switch try await client.next() {
            case .publish(let publication):
                publications.append(publication)
                guard let packetID = publication.packetID else { continue }
                if publication.qos == .exactlyOnce {
                    unreleased += 1
                    try await client.send(.pubrec(MQTTAcknowledgement(packetID: packetID)))
                } else {
                    try await client.send(.puback(MQTTAcknowledgement(packetID: packetID)))
                }
            case .pubrel(let release):
                unreleased -= 1
                try await client.send(.pubcomp(MQTTAcknowledgement(packetID: release.packetID)))
            case let other: throw Unexpected("\(other)")
            }
        }
        return publications
    }

    @Test(arguments: MQTTVersion.allCases, MQTTQoS.allCases)
    func `arrive in order at subscribers of every kind`(_ version: MQTTVersion, _ sent: MQTTQoS) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", version)
            var subscribers: [(client: MQTTTestClient, qos: MQTTQoS)] = []
            for granted in MQTTQoS.allCases {
                for theirs in MQTTVersion.allCases {
                    let client = try await harness.mqtt("plain \(granted) \(theirs)", theirs)
                    _ = try await client.subscribe("a/+", qos: granted)
                    subscribers.append((client, granted))
                }
                let identified = try await harness.mqtt("identified \(granted)", .v5)
                _ = try await identified.subscribe("a/topic", qos: granted, identifier: 7)
                subscribers.append((identified, granted))
                let aliased = try await harness.mqtt("aliased \(granted)", .v5, properties: [.topicAliasMaximum(3)])
                _ = try await aliased.subscribe("#", qos: granted)
                subscribers.append((aliased, granted))
                let narrow = try await harness.mqtt("narrow \(granted)", .v5, properties: [.receiveMaximum(3)])
                _ = try await narrow.subscribe("a/topic", qos: granted)
                subscribers.append((narrow, granted))
                let durable = try await harness.mqtt("durable \(granted)", .v5, durable: sent == .atMostOnce)
                _ = try await durable.subscribe("a/topic", qos: granted)
                subscribers.append((durable, granted))
            }
            try await publish(publisher, sent)
            for (client, granted) in subscribers {
                for (number, publication) in try await take(client).enumerated() {
                    #expect(publication.text == "\(number)" && publication.qos == min(sent, granted))
                    #expect(!publication.isDuplicate && !publication.retain)
                }
                #expect(try await client.untilPong().isEmpty)
            }
        }
    }

    @Test(arguments: MQTTQoS.allCases)
    func `a session that is away misses nothing`(_ qos: MQTTQoS) async throws {
        guard qos != .atMostOnce else { return }
        try await GatewayHarness.withMQTT { harness in
            let away = try await harness.mqtt("away", .v5, durable: true)
            _ = try await away.subscribe("a/topic", qos: .exactlyOnce)
            try await away.disconnect()
            try await publish(harness.mqtt("publisher", .v311), qos)
            let back = try await harness.mqtt("away", .v5, durable: true)
            for (number, publication) in try await take(back).enumerated() {
                #expect(publication.text == "\(number)" && publication.qos == qos)
            }
            #expect(try await back.untilPong().isEmpty)
        }
    }

    @Test func `one among them that is special is treated so`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt("subscriber", .v5)
            _ = try await subscriber.subscribe("a/topic", qos: .atMostOnce)
            try await publish(publisher, .atMostOnce, [.contentType("text/plain")])
            for number in 0..<Self.count {
                let publication = try await subscriber.publication()
                #expect(publication.text == "\(number)")
                #expect(publication.properties.list == (number == 50 ? [.contentType("text/plain")] : []))
            }
        }
    }

    @Test func `what was released not yet is not taken twice`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let subscriber = try await harness.mqtt("subscriber", .v5)
            _ = try await subscriber.subscribe("a/topic", qos: .atMostOnce)
            // All publications are sent once without PUBREL, then all are sent again.
            for _ in 0..<2 {
                try await publisher.wire.send(bytes(.v5, .exactlyOnce))
                for _ in 0..<Self.count {
                    guard case .pubrec = try await publisher.next() else { throw Unexpected("no PUBREC") }
                }
            }
            for number in 0..<Self.count { #expect(try await subscriber.publication().text == "\(number)") }
            #expect(try await subscriber.untilPong().isEmpty)
        }
    }

    @Test func `no local holds for all`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let client = try await harness.mqtt("both", .v5)
            _ = try await client.subscribe("a/topic", qos: .atMostOnce, noLocal: true)
            try await client.wire.send(bytes(.v5, .atMostOnce))
            #expect(try await client.untilPong().isEmpty)
        }
    }
}
