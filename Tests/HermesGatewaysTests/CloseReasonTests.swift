// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import Testing

@testable import HermesGateways

/// What each protocol says at the end of a connection, for every end there is.
@Suite struct CloseReasonTests {
    @Test("LiveRoom and QSIOP tell why, where there is somebody to tell") func farewells() {
        let told: [(CloseReason, HermesError.Code)] = [
            (.notAuthenticated, .notAuthenticated), (.shuttingDown, .shuttingDown),
            (.session(.replaced), .replaced), (.session(.accountDisabled), .accountDisabled),
            (.session(.accountDeleted), .accountDisabled), (.session(.accountRenamed), .notAuthenticated),
            (.session(.revoked), .invalidToken), (.tokenExpired, .invalidToken),
            (.session(.shuttingDown), .shuttingDown), (.memory, .overloaded), (.rateLimited, .rateLimited),
        ]
        for (reason, code) in told {
            #expect(LiveRoomTranslation.kick(for: reason)?.code == code)
            #expect(QSIOPTranslation.answer(for: reason)?.code == code.rawValue)
        }
        for reason in [CloseReason.goodbye, .finished, .idle, .slowReader, .loginBudget] {
            #expect(LiveRoomTranslation.kick(for: reason) == nil)
            #expect(QSIOPTranslation.answer(for: reason) == nil)
        }
    }

    @Test func `every label is known to the metrics`() {
        let reasons: [CloseReason] = [
            .goodbye, .finished, .malformed(WireError(.badBody, "")), .notAuthenticated, .tokenExpired,
            .loginBudget, .idle, .slowReader,
            .memory, .rateLimited, .session(.replaced), .session(.accountDisabled), .session(.accountDeleted),
            .session(.accountRenamed),
            .session(.revoked),
            .session(.shuttingDown), .shuttingDown,
        ]
        #expect(Set(reasons.map(\.label)) == Set(CloseReason.labels))
    }
}
