// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOConcurrencyHelpers
import NIOCore
import Testing

@testable import Hermes

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct DeviceConditionsTests {
    @Test func `a suspended client leaves and comes back with the app; a client that has ended does not listen`()
        async throws
    {
        let server = try await FakeHermesServer.scripted { packet, connection in
            if case .authenticate = packet.body { connection.accept(id: packet.id) }
        }
        let conditions = DeviceConditions()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.conditions = conditions
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        var isSuspended = false
        for await state in client.states {
            switch state {
            case .live:
                if !isSuspended { conditions.appState = .suspended }
                isSuspended = true
            case .paused(let error):
                #expect(error.code == .suspended)
                #expect(server.connectionCount == 1)
                conditions.appState = .foreground
            default: break
            }
            if isSuspended, case .live = state, server.connectionCount == 2 { break }
        }
        #expect(conditions.state.withLockedValue { $0.observers.count } == 1)
        await client.close()
        #expect(conditions.state.withLockedValue { $0.observers.isEmpty })
        try await server.stop()
    }

    @Test func `a network that returns is used at once`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            if case .authenticate = packet.body { connection.accept(id: packet.id) }
        }
        let conditions = DeviceConditions()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.conditions = conditions
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.seconds(3600)])
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        conditions.networkPath = NetworkPath(label: "none", isUsable: false)
        server.closeConnection()
        for await state in client.states {
            if case .paused = state { conditions.networkPath = NetworkPath(label: "wifi 192.168.1.1") }
            if case .live = state, server.connectionCount == 2 { break }
        }
        await client.close()
        try await server.stop()
    }
}
