// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import HermesCore
@testable import HermesGateways

/// The pauses before a connection reads again from a store that has failed.
struct RetryPauseTests {
    private let failure = HermesError(.storageUnavailable, "the disk is full")

    @Test func `pauses grow to half a minute, and are short again after a success`() {
        var pause = RetryPause()
        for limit in [1, 2, 4, 8, 16, 30, 30] as [Int64] {
            let next = pause.next(after: failure)
            #expect(next >= .milliseconds(limit * 500) && next <= .seconds(limit))
        }
        pause.succeeded()
        #expect(pause.next(after: failure) <= .seconds(1))
    }

    @Test func `pauses do not grow while the server is only busy`() {
        var pause = RetryPause()
        for _ in 0..<9 { #expect(pause.next(after: HermesError(.overloaded, "too many reads")) <= .seconds(1)) }
    }

    @Test func `a queue does not read the store while it waits to try again`() {
        var session = StoredSession(
            id: DurableSessionID(rawValue: 1),
            key: SessionKey(owner: .subject("ann"), clientID: "one")
        )
        session.head = 3
        let queue = MQTTDurableQueue(DurableOpening(session))
        func loads() -> Bool { if case .load = queue.next(notAbove: .max) { true } else { false } }
        #expect(loads())
        queue.mustWaitForRetry = true
        #expect(!loads())
        queue.advanced(to: 9)
        #expect(!loads())
        queue.mustWaitForRetry = false
        #expect(loads())
    }
}
