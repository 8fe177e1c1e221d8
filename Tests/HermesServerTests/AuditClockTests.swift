// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

@testable import HermesServer

@Suite(.inTurns, .timeLimit(.minutes(1))) struct AuditClockTests {
    private static let ahead = Duration.seconds(400 * 86_400)

    /// Records the failed login of a stranger.
    private func fail(_ server: TestServer) async throws {
        let administrators = try server.assembly().administrators
        await #expect(throws: HermesError.self) {
            _ = try await administrators.logIn(
                name: "stranger",
                password: "wrong",
                code: nil,
                address: "192.0.2.1",
                replacing: nil
            )
        }
    }

    private func log(_ server: TestServer) async throws -> [String] {
        try await server.assembly().administrators.auditLog(before: nil, limit: 10).map(\.event.action)
    }

    @Test(arguments: TestStore.allCases)
    func `a clock that is ahead deletes nothing from the audit log`(_ store: TestStore) async throws {
        let clock = ManualClock()
        try await withServer(store: store, time: clock) { server in
            let event = AuditEvent(who: "ann", address: "local", action: "deleteUser", result: "done")
            try await server.assembly().administrators.record(event)
            clock.jump(by: Self.ahead)
            try await fail(server)
            clock.jump(by: .zero - Self.ahead)
            #expect(try await log(server) == ["logIn", "deleteUser"])
            // The next process starts with this clock time.
            clock.jump(by: Self.ahead)
            try await server.restart()
            try await fail(server)
            clock.jump(by: .zero - Self.ahead)
            #expect(try await log(server) == ["logIn", "logIn", "deleteUser"])
        }
    }
}
