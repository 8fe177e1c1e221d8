// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

@Suite struct LateEventsTests {
    @Test func `typing comes behind messages and answers, and is dropped where very much waits`() async throws {
        try await GatewayHarness.withMQTT { harness in
            _ = try await harness.mqtt("one", .v5)
            let loop = try #require(harness.environment.loops.all.first { $0.connectionCount > 0 })
            let user = try #require(UserID(7))
            let counts = try await loop.eventLoop.submit { () throws -> [Int] in
                let connection = try #require(loop.connections.first)
                let typing = EphemeralEvent.typing(.direct(between: user, and: user), by: user, stopped: false)
                var late = LateEvents()
                for _ in 0..<20_000 { late.append([.ephemeral(connection, typing), .run {}]) }
                let full = [late.events.count, late.ephemeral.count]
                let presence = EphemeralEvent.presence(user, isOnline: true, lastSeen: nil)
                late.append([.ephemeral(connection, presence)])
                late.removeFirst(20_000)
                let isEmpty = late.isEmpty
                late.removeFirstEphemeral(LateEvents.maxEphemeral)
                guard case .ephemeral(_, presence)? = late.takeEphemeral() else { return [] }
                return full + [isEmpty ? 1 : 0, late.isEmpty ? 1 : 0]
            }.get()
            #expect(counts == [20_000, LateEvents.maxEphemeral, 0, 1])
        }
    }
}
