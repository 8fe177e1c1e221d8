// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// Bytes that do not belong to the present connection.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct StrayBytesTests {
    private static func server() async throws -> FakeMQTTServer {
        try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect: connection.accept()
            case .pingreq: connection.send(.pingresp)
            default: return
            }
        }
    }

    @Test func `what arrives while a connection closes is not kept, and the buffer of the connection is released`()
        async throws
    {
        let server = try await Self.server()
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.reconnect = .never
        let client = try MQTTClient(configuration)
        try await client.connect()
        let bytes = ByteBuffer(repeating: 0, count: 1_000_000)
        #expect(await client.driver.bytesKept(of: bytes) == 0)
        await #expect(throws: HermesClientError.self) { try await client.run() }
        #expect(await client.driver.inbound.capacity == 0)
        try await server.stop()
    }

    /// When endpoints race, bytes may still arrive from a slower WebSocket.
    @Test func `what arrives over another channel is not read`() async throws {
        let server = try await Self.server()
        let client = try MQTTClient(.fake(server))
        let other = try MQTTClient(.fake(server))
        try await client.connect()
        try await other.connect()
        guard let channel = await other.driver.channel else {
            Issue.record("no channel")
            return
        }
        // MQTT has no packet type 0, so these bytes would end the connection.
        await client.driver.bytesReceived(ByteBuffer(bytes: [0, 0]), on: channel)
        try await client.ping()
        #expect(server.connectionCount == 2)
        await client.close()
        await other.close()
        try await server.stop()
    }
}

extension ConnectionDriver {
    /// Abandons the connection, and then receives bytes before it is closed.
    ///
    /// - Returns: the number of bytes that are kept.
    fileprivate func bytesKept(of bytes: ByteBuffer) -> Int {
        guard let channel else { return -1 }
        fail(HermesClientError(.connectionLost, "test"))
        bytesReceived(bytes, on: channel)
        return inbound.readableBytes
    }
}
