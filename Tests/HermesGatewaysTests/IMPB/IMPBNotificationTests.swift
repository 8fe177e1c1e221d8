// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Testing

@testable import HermesGateways

/// Notification 3, which the published app knows as a command.
@Suite(.timeLimit(.minutes(1))) struct IMPBNotificationTests {
    @Test func `a back end's command is notification 3, with its own bytes`() async throws {
        try await GatewayTestServer.with { server in
            let ann = try await server.impb()
            let uid = try await ann.register("ann").uid
            _ = try await ann.logIn("ann")
            let user = try #require(UserID(uid))
            let native = try await server.delimited()
            _ = try await native.register("bob")
            #expect(server.messenger.sessions.notify(user, .command([0, 255, 7])) == 1)
            let notification = try await ann.notification()
            #expect(notification.type == .cmd)
            #expect(notification.targetUid == uid)
            #expect([UInt8](notification.body) == [0, 255, 7])
            #expect(notification.seq == 0)
        }
    }
}
