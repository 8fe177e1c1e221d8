// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import Synchronization
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

    @Test("Turns are short for 300 ms after a connection has broken its silence")
    func turnsAreShortWhileOthersSpeakNowAndThen() {
        var queue = TurnQueue()
        #expect(queue.duration(now: at(10)) == TurnQueue.time)
        queue.silenceEnded(now: at(10))
        #expect(queue.begin(now: at(11)) == true)
        #expect(queue.hasTime(now: at(12)))
        #expect(!queue.hasTime(now: at(13)), "2 ms are over")
        queue.end()
        #expect(queue.duration(now: at(309)) == TurnQueue.shortTime)
        #expect(queue.duration(now: at(310)) == TurnQueue.time)
    }

    @Test("A connection that was read a moment before does not shorten the turns of others")
    func whoSendsWithoutAPauseIsNoReasonForShortTurns() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let context = try #require(LoopContexts(group)[loop])
        let durations = try await loop.submit { () -> [TimeAmount] in
            var now = at(1_000)
            context.clock = { now }
            // It has sent before.
            var busy = at(999)
            var found: [TimeAmount] = []
            for _ in 0..<20 {
                now = now + .milliseconds(50)
                context.heard(&busy)
                found.append(context.turns.duration(now: now))
            }
            var rare = at(999)
            context.heard(&rare)
            found.append(context.turns.duration(now: now))
            return found
        }.get()
        try await group.shutdownGracefully()
        #expect(durations.dropLast().allSatisfy { $0 == TurnQueue.time })
        #expect(durations.last == TurnQueue.shortTime)
    }

    private final class Seen: Sendable {
        let ticks = Mutex<[UInt64]>([])
    }

    /// The loop is never without a due task here: each turn causes one that takes longer than the pause.
    @Test(.timeLimit(.minutes(1))) func theLoopLooksAtItsSocketsBetweenTwoTurns() async throws {
        let ticks = LoopTicks()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1, metricsDelegate: ticks)
        let loop = group.next()
        let context = try #require(LoopContexts(group, ticks: ticks)[loop])
        let seen = Seen()
        @Sendable func spin() {
            let end = NIODeadline.now() + TurnQueue.pause + TurnQueue.pause
            while NIODeadline.now() < end {}
        }
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            @Sendable func work() {
                seen.ticks.withLock { $0.append(context.ticks ?? 0) }
                guard seen.ticks.withLock({ $0.count < 50 }) else { return continuation.resume() }
                loop.execute { spin() }
                context.inTurn(work)
            }
            loop.execute {
                // A turn has time for one work.
                var time = NIODeadline.now()
                context.clock = {
                    time = time + .milliseconds(15)
                    return time
                }
                context.inTurn(work)
            }
        }
        try await group.shutdownGracefully()
        let counts = seen.ticks.withLock { $0 }
        #expect(counts.count == 50)
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $0 < $1 }, "\(counts)")
    }
}
