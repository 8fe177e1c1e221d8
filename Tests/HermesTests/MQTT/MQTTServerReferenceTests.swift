// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

/// A server that redirects its clients to another server (MQTT 5.0, 4.13).
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct MQTTServerReferenceTests {
    private static func configuration(_ server: FakeMQTTServer) -> MQTTClient.Configuration {
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.conditions = DeviceConditions()
        configuration.reconnect = ReconnectPolicy(
            windows: [],
            delays: [.milliseconds(5)],
            jitter: 0,
            maxAdvisedWindow: .zero
        )
        return configuration
    }

    @Test(arguments: [MQTTReasonCode.useAnotherServer, .serverMoved], [true, false])
    func `the client goes where it is sent`(reason: MQTTReasonCode, isAccepted: Bool) async throws {
        let other = try await FakeMQTTServer.scripted { packet, connection in
            if case .connect = packet { connection.accept() }
        }
        let properties: MQTTProperties = [.serverReference("not:a:reference 127.0.0.1:\(other.port) example.com")]
        let first = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            if isAccepted {
                connection.accept()
                connection.send(.disconnect(MQTTDisconnect(reason: reason, properties: properties)))
            } else {
                connection.send(.connack(MQTTConnack(sessionPresent: false, reason: reason, properties: properties)))
            }
            connection.close()
        }
        let client = try MQTTClient(Self.configuration(first))
        try await client.connect()
        let isThere = await other.firstPacket { _, packet in if case .connect = packet { true } else { false } }
        #expect(isThere != nil)
        await client.close()
        try await first.stop()
        try await other.stop()
    }

    @Test func `servers that send a client in a circle are not followed for ever`() async throws {
        let port = Log<Int>()
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            let properties: MQTTProperties = [.serverReference("127.0.0.1:\(port.all.first ?? 0)")]
            connection.send(
                .connack(MQTTConnack(sessionPresent: false, reason: .useAnotherServer, properties: properties))
            )
            connection.close()
        }
        port.append(server.port)
        let client = try MQTTClient(Self.configuration(server))
        let error = await #expect(throws: HermesClientError.self) { try await client.connect() }
        #expect(error?.mqttReason?.rawValue == 0x9C)
        #expect(server.connectionCount == MQTTServerReferences.maxHops + 1)
        try await server.stop()
    }
}
