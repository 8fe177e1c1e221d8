// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

/// A login that the protocol cannot represent fails permanently. The client does not connect repeatedly with it.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct UnwritableLoginTests {
    @Test func `a name that every server would refuse fails the login, and the next login succeeds`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in connection.accept(id: packet.id) }
        let client = try HermesClient(.fake(server))
        let name = "a" + String(repeating: "\u{301}", count: StreamSafeText.maxRun + 1)
        let error = await #expect(throws: HermesClientError.self) {
            try await client.logIn(.password(nickName: name, password: "secret"))
        }
        #expect(error?.code == .notEncodable)
        _ = try await client.logIn(.token("t"))
        #expect(server.connectionCount <= 2)
        await client.close()
        try await server.stop()
    }

    @Test func `a login that is too long for MQTT fails`() async throws {
        let server = try await FakeMQTTServer.scripted { _, connection in connection.close() }
        var configuration = HermesClient.Configuration.fake(port: server.port)
        configuration.server = Carrier.mqtt.address(port: server.port)
        let client = try HermesClient(configuration)
        let password = String(repeating: "x", count: 65_536)
        let error = await #expect(throws: HermesClientError.self) {
            try await client.logIn(.password(nickName: "ann", password: password))
        }
        #expect(error?.code == .notEncodable)
        await client.close()
        try await server.stop()
    }

    @Test func `credentials that CONNECT cannot carry are refused, and the former ones stay`() async throws {
        let names = Log<String?>()
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect(let connect) = packet else { return }
            names.append(connect.userName)
            connection.accept(sessionPresent: connection.number > 1)
        }
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.userName = "ann"
        configuration.password = "old"
        let client = try MQTTClient(configuration)
        try await client.connect()
        let long = String(repeating: "x", count: 65_536)
        for (name, password) in [(long, "new"), ("bob", long), ("b\0b", "new")] {
            let error = await #expect(throws: HermesClientError.self) {
                try await client.useCredentials(userName: name, password: password)
            }
            #expect(error?.code == .notEncodable)
        }
        server.closeConnection()
        while names.all.count < 2 { await Task.yield() }
        #expect(names.all == ["ann", "ann"])
        await client.close()
        try await server.stop()
    }
}
