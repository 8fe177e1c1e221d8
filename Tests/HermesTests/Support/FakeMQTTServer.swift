// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

@testable import Hermes

typealias FakeMQTTServer = FakeServer<MQTTFrameDecoder>

extension FakeServer.Connection where Decoder == MQTTFrameDecoder {
    func send(_ packets: MQTTPacket..., version: MQTTVersion = .v5) {
        for packet in packets {
            if let frame = try? packet.frame(version: version) { send(frame) }
        }
    }

    func accept(sessionPresent: Bool = false, _ properties: MQTTProperties = []) {
        send(.connack(MQTTConnack(sessionPresent: sessionPresent, reason: .success, properties: properties)))
    }
}

extension FakeServer where Decoder == MQTTFrameDecoder {
    /// Creates a server whose script gets packets.
    static func scripted(
        version: MQTTVersion = .v5,
        _ script: @escaping @Sendable (MQTTPacket, Connection) -> Void
    ) async throws -> FakeServer {
        try await FakeServer { frame, connection in
            guard let packet = try? MQTTPacket(frame, version: version) else { return connection.close() }
            script(packet, connection)
        }
    }

    /// Waits for a packet.
    func firstPacket(where isWanted: (Int, MQTTPacket) -> Bool) async -> MQTTPacket? {
        for await (number, frame) in received {
            guard let packet = try? MQTTPacket(frame, version: .v5) else { continue }
            if isWanted(number, packet) { return packet }
        }
        return nil
    }
}

extension MQTTClient.Configuration {
    /// A configuration for a fake server. The client reconnects at once and keeps its session.
    static func fake(_ server: FakeMQTTServer) -> Self {
        var configuration = Self(server: ServerAddress(port: server.port), clientID: "test")
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(60)
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(5)], jitter: 0)
        return configuration
    }
}
