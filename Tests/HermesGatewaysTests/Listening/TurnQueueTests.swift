// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import Testing

@testable import HermesGateways

struct TurnQueueTests {
    private func at(_ milliseconds: UInt64) -> NIODeadline { .uptimeNanoseconds(milliseconds * 1_000_000) }

    @Test func workIsTakenInOrderWhileTheTurnHasTime() {
        var queue = TurnQueue()
        var done: [Int] = []
        for number in 1...3 { queue.append { done.append(number) } }
        let isFirst = queue.begin(now: at(10))
        #expect(isFirst)
        queue.next(now: at(10))?()
        queue.next(now: at(29))?()
        let late = queue.next(now: at(30))
        #expect(late == nil, "20 ms are over")
        #expect(done == [1, 2] && !queue.isEmpty)
        queue.end()
        let isNext = queue.begin(now: at(31))
        #expect(isNext)
        queue.next(now: at(31))?()
        #expect(done == [1, 2, 3] && queue.isEmpty)
    }

    @Test func whatComesLaterInATurnGetsWhatIsLeftOfItsTime() {
        var queue = TurnQueue()
        let isFirst = queue.begin(now: at(10))
        #expect(isFirst)
        let isSecond = queue.begin(now: at(11))
        #expect(!isSecond, "it has begun")
        #expect(queue.hasTime(now: at(29)))
        #expect(!queue.hasTime(now: at(30)))
        queue.end()
        #expect(queue.hasTime(now: at(30)))
    }
}
