// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite struct LineThrottleTests {
    @Test func `the first line of a kind is logged, and then one a minute with the number left out`() {
        let throttle = LineThrottle()
        #expect(throttle.skipped("full", now: .seconds(5)) == 0)
        for second in 6..<65 { #expect(throttle.skipped("full", now: .seconds(second)) == nil) }
        #expect(throttle.skipped("damaged", now: .seconds(64)) == 0, "another kind")
        #expect(throttle.skipped("full", now: .seconds(65)) == 59)
        #expect(throttle.skipped("full", now: .seconds(66)) == nil)
        #expect(throttle.skipped("full", now: .seconds(200)) == 1)
    }

    @Test func `the number of kinds is bounded`() {
        let throttle = LineThrottle()
        let logged = (0..<1_000).filter { throttle.skipped("kind \($0)", now: .zero) != nil }
        #expect(logged.count == 65)
    }
}
