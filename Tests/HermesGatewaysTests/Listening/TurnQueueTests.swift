// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import HermesGateways

struct TurnQueueTests {
    private func at(_ milliseconds: UInt64) -> NIODeadline { .uptimeNanoseconds(milliseconds * 1_000_000) }

    @Test func `work is taken in order while the turn has time`() {
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

    @Test func `what comes later in a turn gets what is left of its time`() {
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

    @Test
    func `turns are short for 300 ms after a connection has broken its silence`() {
        var queue = TurnQueue()
        #expect(queue.duration(now: at(10)) == TurnQueue.time)
        #expect(queue.crowdDuration(now: at(10)) == TurnQueue.crowdTime)
        queue.silenceEnded(now: at(10))
        #expect(queue.begin(now: at(11)) == true)
        #expect(queue.hasTime(now: at(11) + TurnQueue.shortTime - .nanoseconds(1)))
        #expect(!queue.hasTime(now: at(11) + TurnQueue.shortTime))
        queue.end()
        #expect(queue.duration(now: at(309)) == TurnQueue.shortTime)
        #expect(queue.crowdDuration(now: at(309)) == TurnQueue.shortTime)
        #expect(queue.duration(now: at(310)) == TurnQueue.time)
    }

    @Test
    func `a connection that was read a moment before does not shorten the turns of others`() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let context = try #require(LoopContexts(group)[loop])
        let durations = try await loop.submit { () -> [TimeAmount] in
            var now = at(1_000)
            context.replacedTurnClock = { now }
            // This connection has already sent.
            var busy = at(999)
            var found: [TimeAmount] = []
            for _ in 0..<20 {
                now = now + .milliseconds(50)
                context.heard(&busy)
                found.append(context.turns.duration(now: now))
            }
            var confirming = at(999)
            context.heard(&confirming, isConfirming: true)
            found.append(context.turns.duration(now: now))
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

    /// The loop always has a due task here, because each turn causes a task that takes longer than the pause.
    @Test(.timeLimit(.minutes(1))) func `the loop looks at its sockets between two turns`() async throws {
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
                // The simulated clock lets a turn do one piece of work.
                var time = NIODeadline.now()
                context.replacedTurnClock = {
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

    @Test func `a kind of work has one time in a tick`() {
        var time = TickTime()
        let first = time.end(in: 7, now: at(10), .milliseconds(2))
        #expect(first.endsAt == at(12) && first.isNew)
        let again = time.end(in: 7, now: at(13), .milliseconds(2))
        #expect(again.endsAt == at(12) && !again.isNew, "it is over for this tick")
        let next = time.end(in: 8, now: at(14), .milliseconds(2))
        #expect(next.endsAt == at(16) && next.isNew)
        let uncounted = [
            time.end(in: nil, now: at(20), .milliseconds(2)), time.end(in: nil, now: at(21), .milliseconds(2)),
        ]
        #expect(uncounted.map(\.endsAt) == [at(22), at(23)] && uncounted.allSatisfy(\.isNew))
    }

    /// Each event causes the next event before the tick is over.
    @Test(.timeLimit(.minutes(1))) func `the loop looks at its sockets between events of other threads`() async throws {
        let ticks = LoopTicks()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1, metricsDelegate: ticks)
        let loop = group.next()
        let context = try #require(LoopContexts(group, ticks: ticks)[loop])
        let seen = Seen()
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            @Sendable func event() {
                seen.ticks.withLock { $0.append(context.ticks ?? 0) }
                guard seen.ticks.withLock({ $0.count < 50 }) else { return continuation.resume() }
                context.post(.run(event))
            }
            loop.execute {
                // The simulated clock leaves time for one event.
                var time = NIODeadline.now()
                context.replacedTurnClock = {
                    time = time + .milliseconds(15)
                    return time
                }
                context.post(.run(event))
            }
        }
        try await group.shutdownGracefully()
        let counts = seen.ticks.withLock { $0 }
        #expect(counts.count == 50)
        #expect(zip(counts, counts.dropFirst()).allSatisfy { $0 < $1 }, "\(counts)")
    }

    /// Tasks that become due while others run cannot each get their own time.
    @Test(.timeLimit(.minutes(1))) func `reading has one time in a tick`() async throws {
        let ticks = LoopTicks()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1, metricsDelegate: ticks)
        let loop = group.next()
        let context = try #require(LoopContexts(group, ticks: ticks)[loop])
        let answers = try await loop.submit { () -> [Bool] in
            var time = NIODeadline.now()
            context.replacedTurnClock = {
                time = time + .milliseconds(15)
                return time
            }
            return [context.hasTime(), context.hasTime()]
        }.get()
        let found = Mutex<[Bool]>([])
        let tick = try await loop.submit { context.ticks }.get()
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            @Sendable func ask() { found.withLock { $0.append(context.hasTime()) } }
            @Sendable func inTheNextTick() {
                guard context.ticks != tick else {
                    loop.scheduleTask(in: .milliseconds(1), inTheNextTick)
                    return
                }
                ask()
                ask()
                loop.execute {
                    // The loop has not read its sockets in between.
                    ask()
                    continuation.resume()
                }
            }
            loop.execute(inTheNextTick)
        }
        try await group.shutdownGracefully()
        #expect(answers == [true, true])
        #expect(found.withLock { $0 } == [true, true, false])
    }
}
