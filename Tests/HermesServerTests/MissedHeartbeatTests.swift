// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesGateways
import HermesProtocols
import HermesServer
import HermesTestKit
import Testing

/// A client whose heartbeat does not arrive in time gets the reason for the close, and reconnects.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MissedHeartbeatTests {
    private static let silence = HeartbeatPolicy(interval: .seconds(60), answerTimeout: nil)
    private static let reconnect = ReconnectPolicy(
        windows: [],
        delays: [.milliseconds(20)],
        jitter: 0,
        maxAdvisedWindow: .zero
    )

    /// Whether a logged-in client logs in once more.
    private static func returns(_ states: AsyncStream<ConnectionState>) async -> Bool {
        var count = 0
        for await state in states where state == .live {
            count += 1
            if count == 2 { return true }
        }
        return false
    }

    @Test func `over LiveRoom`() async throws {
        func configure(_ settings: inout ServerSettings) { settings.gateways.room.silence = .seconds(1) }
        try await withServer(configure: configure) { server in
            var configuration = LiveRoomClient.Configuration(
                server: ServerAddress(port: server.port("liveroom")),
                user: RoomUser(name: "vic"),
                room: "lobby"
            )
            configuration.heartbeat = Self.silence
            configuration.reconnect = Self.reconnect
            configuration.conditions = DeviceConditions()
            let viewer = try LiveRoomClient(configuration)
            try await viewer.join()
            #expect(await Self.returns(viewer.states))
            await viewer.close()
        }
    }

    @Test func `over IMPB`() async throws {
        func configure(_ settings: inout ServerSettings) { settings.gateways.limits.idle = .seconds(1) }
        try await withServer(configure: configure) { server in
            var configuration = IMPBClient.Configuration(
                server: ServerAddress(port: server.port("impb")),
                device: ClientDevice(id: "phone")
            )
            configuration.heartbeat = Self.silence
            configuration.reconnect = Self.reconnect
            configuration.conditions = DeviceConditions()
            let client = try IMPBClient(configuration)
            _ = try await client.logIn(.register(nickName: "ann", password: "secret-ann"))
            #expect(await Self.returns(client.states))
            await client.close()
        }
    }
}
