// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import HermesGateways

struct ThrottleTests {
    private func time(_ seconds: UInt64) -> NIODeadline { .uptimeNanoseconds(seconds * 1_000_000_000) }

    @Test func `pauses form a series until none comes for the respite`() {
        var throttle = Throttle()
        #expect(!throttle.isInSeries)
        #expect(throttle.budgetExceeded(now: time(100)) == nil)
        #expect(throttle.isInSeries)
        #expect(throttle.budgetExceeded(now: time(130)) == .seconds(30))
        #expect(throttle.budgetExceeded(now: time(160)) == .seconds(60))
        #expect(throttle.budgetExceeded(now: time(191)) == nil)
        #expect(throttle.budgetExceeded(now: time(192)) == .seconds(1))
    }

    @Test func `a series ends when the budget has recovered`() {
        var throttle = Throttle()
        #expect(throttle.budgetExceeded(now: time(100)) == nil)
        throttle.budgetRecovered()
        #expect(!throttle.isInSeries)
        #expect(throttle.budgetExceeded(now: time(101)) == nil)
    }

    @Test func `a pause becomes longer, never shorter`() {
        var throttle = Throttle()
        throttle.extend(until: time(5))
        throttle.extend(until: time(3))
        #expect(throttle.until == time(5))
        throttle.extend(until: time(7))
        #expect(throttle.until == time(7))
    }
}
