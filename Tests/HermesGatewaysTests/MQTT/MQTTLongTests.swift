// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// Long payloads are shared between subscribers. Publishers pay for long topics.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTLongTests {
    @Test(arguments: [5_000, 40_000, 300_000])
    func `a long payload arrives whole, in whatever form a subscriber gets it`(_ bytes: Int) async throws {
        try await GatewayHarness.with(MQTTGateway.self, loops: 2) { harness in
            let payload = String((0..<bytes).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
            let publisher = try await harness.mqtt("publisher", .v5)
            for version in MQTTVersion.allCases {
                for qos in MQTTQoS.allCases {
                    let plain = try await harness.mqtt("plain-\(version)-\(qos)", version)
                    _ = try await plain.subscribe("long/#", qos: qos)
                    let numbered = version == .v5 ? try await harness.mqtt("numbered-\(qos)", version) : plain
                    if version == .v5 { _ = try await numbered.subscribe("long/#", qos: qos, identifier: 7) }
                    for sent in MQTTQoS.allCases {
                        try await publisher.publish("long/\(sent)", payload, qos: sent)
                        for client in version == .v5 ? [plain, numbered] : [plain] {
                            let came = try await client.taken()
                            #expect(came.topic == "long/\(sent)" && came.qos == min(qos, sent))
                            #expect(came.payload == ByteBuffer(string: payload))
                        }
                    }
                    #expect(try await plain.untilPong().isEmpty)
                    try await plain.disconnect()
                    if version == .v5 { try await numbered.disconnect() }
                }
            }
            try await publisher.publish("long/kept", payload, retain: true)
            let late = try await harness.mqtt("late", .v311)
            _ = try await late.subscribe("long/kept", qos: .atLeastOnce)
            #expect(try await late.taken().payload == ByteBuffer(string: payload))
        }
    }

    @Test func `publications on a long topic wait until they are paid for, though an alias is short`() async throws {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = 1_000
        try await GatewayHarness.with(MQTTGateway.self, settings: settings) { harness in
            let client = try await harness.mqtt("flood", .v5)
            let other = try await harness.mqtt("other", .v5)
            func publish(_ topic: String) -> MQTTPacket {
                .publish(MQTTPublish(topic: topic, payload: ByteBuffer(string: "x"), properties: [.topicAlias(1)]))
            }
            let start = ContinuousClock.now
            try await client.send(publish(String(repeating: "u", count: 60_000)))
            for _ in 0..<60 { try await client.send(publish("")) }
            #expect(try await other.untilPong().isEmpty)
            #expect(try await client.untilPong().isEmpty)
            #expect(ContinuousClock.now - start > .milliseconds(900))
        }
    }
}
