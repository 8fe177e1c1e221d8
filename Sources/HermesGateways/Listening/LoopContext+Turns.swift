// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Fairness: connections with much to do give way to those with little (``TurnQueue``).
extension LoopContext {
    /// Whether work that can wait may go on in this turn of the loop. Asked now and then by work that takes long.
    func hasTime() -> Bool {
        eventLoop.assertInEventLoop()
        let now = clock()
        if let ticks, tickOfTime != ticks, !isInTurn {
            tickOfTime = ticks
            turns.end()
        }
        guard turns.begin(now: now) else {
            let hasTime = turns.hasTime(now: now)
            if !hasTime, !isInTurn { tickOverTime = ticks }
            return hasTime
        }
        // Tasks run after all connections that are ready.
        if ticks == nil { eventLoop.execute { self.turns.end() } }
        return true
    }

    /// Whether ``hasTime()`` has said no in this tick. Then connections with much to do wait for a
    /// turn at once.
    var isOverTime: Bool { ticks != nil && tickOverTime == ticks && !isInTurn }

    /// A connection has sent something.
    ///
    /// - Parameters:
    ///   - lastReadAt: when it was read from before, or waited to be; now from here on.
    ///   - isConfirming: whether it only confirms what it was sent. Nobody waits for that, and a large crowd on a busy
    ///     loop confirms late.
    func heard(_ lastReadAt: inout NIODeadline, isConfirming: Bool = false) {
        let now = clock()
        if now - lastReadAt >= TurnQueue.silence, !isConfirming { turns.silenceEnded(now: now) }
        lastReadAt = now
    }

    /// Does something in a later turn, after what already waits.
    func inTurn(_ work: @escaping () -> Void) {
        eventLoop.assertInEventLoop()
        turns.append(work)
        scheduleTurn()
    }

    private func scheduleTurn() {
        guard !isTurnScheduled, !turns.isEmpty else { return }
        isTurnScheduled = true
        eventLoop.scheduleTask(in: TurnQueue.pause) { self.takeTurn() }
    }

    private func takeTurn() {
        isTurnScheduled = false
        // The loop has not looked at its sockets since the last turn, because other tasks were due meanwhile.
        if let tickOfTurn, tickOfTurn == ticks { return scheduleTurn() }
        tickOfTurn = ticks
        // The time of what the tick has read is no longer or shorter for the turn.
        let suspended = turns.suspend()
        isInTurn = true
        _ = turns.begin(now: clock())
        while let work = turns.next(now: clock()) { work() }
        isInTurn = false
        turns.resume(ticks == nil ? nil : suspended)
        scheduleTurn()
    }

    /// Somebody calls ``tickEnded()`` from now on.
    func turnsFollowTicks() { ticks = 0 }

    /// The loop has run all due tasks.
    func tickEnded() { ticks? &+= 1 }

    /// Does something that an ended connection has left to do for many things, a slice in each turn of the loop.
    ///
    /// - Parameters:
    ///   - count: how many they are. A few are done at once, before this returns.
    ///   - body: gets the indices of the next slice.
    func finishLater(_ count: Int, _ body: @escaping (Range<Int>) -> Void) {
        eventLoop.assertInEventLoop()
        var work = SlicedWork(count, body)
        work.step(atMost: turns.isEmpty ? Self.leftoversPerTurn : Self.leftoversAtOnce)
        if !work.isDone { finish(work) }
    }

    private func finish(_ work: SlicedWork) {
        inTurn { [self] in
            var work = work
            work.step(atMost: Self.leftoversPerTurn)
            if !work.isDone { finish(work) }
        }
    }
}
