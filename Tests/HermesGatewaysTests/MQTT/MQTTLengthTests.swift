// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// Lengths that a publisher writes in more bytes than necessary.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTLengthTests {
    struct Example: Sendable {
        let version: MQTTVersion
        let sent: String
        let received: String
    }

    private static let examples = [
        Example(version: .v5, sent: "30 85808000 0001 74 00 78", received: "30 05 0001 74 00 78"),
        Example(version: .v5, sent: "30 06 0001 74 8000 78", received: "30 05 0001 74 00 78"),
        Example(version: .v5, sent: "32 8700 0001 74 0001 00 78", received: "32 07 0001 74 0001 00 78"),
        Example(version: .v5, sent: "32 08 0001 74 0001 8000 78", received: "32 07 0001 74 0001 00 78"),
        Example(version: .v311, sent: "30 8400 0001 74 78", received: "30 04 0001 74 78"),
        // The packet is in the middle of packets that arrive together.
        Example(
            version: .v311,
            sent: "30 04 0001 74 78  30 8400 0001 74 79  30 04 0001 74 7a",
            received: "30 04 0001 74 78  30 04 0001 74 79  30 04 0001 74 7a"
        ),
    ]

    private static func bytes(_ hex: String) throws -> ByteBuffer {
        try ByteBuffer(plainHexEncodedBytes: hex.filter { !$0.isWhitespace })
    }

    @Test(.statements("5.0 [MQTT-1.5.5-1]"), arguments: examples)
    func `subscribers get lengths in as few bytes as possible`(_ example: Example) async throws {
        try await GatewayHarness.withMQTT { harness in
            let subscriber = try await WireClient<MQTTInputDecoder>.connect(port: harness.listener.port)
            let connect = MQTTConnect(version: example.version, clientID: "subscriber", cleanStart: true)
            let filter = MQTTSubscription(filter: "t", maximumQoS: .atLeastOnce)
            let subscribe = MQTTSubscribe(packetID: 1, subscriptions: [filter])
            var first = ByteBuffer()
            try MQTTPacket.connect(connect).write(into: &first, version: example.version)
            try MQTTPacket.subscribe(subscribe).write(into: &first, version: example.version)
            try await subscriber.send(first)
            // CONNACK and SUBACK.
            for _ in 0..<2 { _ = try await subscriber.next() }
            let publisher = try await harness.mqtt("publisher", example.version)
            try await publisher.wire.send(Self.bytes(example.sent))
            let expected = try Self.bytes(example.received)
            var received = ByteBuffer()
            while received.readableBytes < expected.readableBytes, let input = try await subscriber.next() {
                try input.write(into: &received)
            }
            #expect(received == expected)
        }
    }
}
