// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Hermes

@Suite struct ClockOffsetTests {
    static let start: Int64 = 1_800_000_000_000

    @Test func `the quickest answer counts`() {
        var clock = ClockOffset()
        #expect(clock.milliseconds == nil)
        // The server's clock is 5,000 ms ahead. The times there and back differ, so slow answers give wrong estimates.
        clock.answered(askedAt: Self.start, answeredAt: Self.start + 400, serverTime: Self.start + 5390)
        #expect(clock.milliseconds == 5190)
        clock.answered(askedAt: Self.start + 1000, answeredAt: Self.start + 1020, serverTime: Self.start + 6010)
        #expect(clock.milliseconds == 5000)
        clock.answered(askedAt: Self.start + 2000, answeredAt: Self.start + 2300, serverTime: Self.start + 7010)
        #expect(clock.milliseconds == 5000)
    }

    @Test func `only the last answers count`() {
        var clock = ClockOffset()
        clock.answered(askedAt: Self.start, answeredAt: Self.start + 2, serverTime: Self.start + 1)
        for number in Int64(1)...8 {
            let asked = Self.start + number * 1000
            clock.answered(askedAt: asked, answeredAt: asked + 20, serverTime: asked + 110)
        }
        #expect(clock.milliseconds == 100)
    }

    @Test func `a clock that is set makes what was known worthless`() {
        var clock = ClockOffset()
        clock.answered(askedAt: Self.start, answeredAt: Self.start + 10, serverTime: Self.start + 5)
        // The device's clock was set back by an hour.
        let asked = Self.start - 3_600_000
        clock.answered(askedAt: asked, answeredAt: asked + 100, serverTime: Self.start + 1050)
        #expect(clock.milliseconds == 3_601_000)
    }

    @Test func `nonsense is left out`() {
        var clock = ClockOffset()
        for (asked, answered, server) in [
            (Self.start, Self.start - 1, Self.start), (Self.start, Self.start + 30_001, Self.start),
            (Self.start, Self.start, .max), (Self.start, Self.start, .min), (.min, .max, Self.start),
            (.max, .max, Self.start), (Int64.min, Int64.min, Self.start),
        ] {
            clock.answered(askedAt: asked, answeredAt: answered, serverTime: server)
        }
        #expect(clock.milliseconds == nil)
    }
}
