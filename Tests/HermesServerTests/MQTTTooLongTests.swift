// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesGateways
import HermesServer
import HermesTestKit
import Testing

/// A publication over MQTT 3.1.1 that is longer than the server accepts.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTTooLongTests {
    /// The longer text does not fit into the sockets' buffers, so the server resets the connection.
    @Test(arguments: [4_000, 16 << 20])
    func `what is longer than the server's limit fails for good, and what waited is published`(
        length: Int
    ) async throws {
        func configure(_ settings: inout ServerSettings) { settings.gateways.broker.maxPacketBytes = 2_048 }
        try await withServer(configure: configure) { server in
            var configuration = MQTTClient.Configuration(
                server: ServerAddress(port: server.port("mqtt")),
                clientID: "sender"
            )
            configuration.version = .v311
            configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(20)], jitter: 0)
            try await MQTTClient.withClient(configuration) { client, _ in
                async let short = client.publish("short", to: "a", qos: .atLeastOnce)
                let long = String(repeating: "x", count: length)
                let error = await #expect(throws: HermesClientError.self) {
                    try await client.publish(long, to: "a", qos: .atLeastOnce)
                }
                #expect(error?.code == .notEncodable)
                #expect(error?.message.contains("each of the 5 times") == true, "\(error?.message ?? "")")
                let outcome = try await short
                #expect(outcome == .success)
                #expect(try await client.publish("after", to: "a", qos: .atLeastOnce) == .success)
                #expect(try await client.publish("last", to: "a", qos: .exactlyOnce) == .success)
            }
        }
    }
}
