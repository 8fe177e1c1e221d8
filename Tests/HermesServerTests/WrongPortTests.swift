// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesTestKit
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1))) struct WrongPortTests {
    @Test func `an MQTT client at the HTTP port learns that it is one`() async throws {
        try await withServer { server in
            var configuration = MQTTClient.Configuration(
                server: ServerAddress(port: server.port("http")),
                clientID: "lost"
            )
            configuration.reconnect = .never
            let client = try MQTTClient(configuration)
            let error = await #expect(throws: HermesClientError.self) { try await client.connect() }
            #expect(error?.message.contains("HTTP server") == true, "\(String(describing: error))")
            await client.close()
        }
    }
}
