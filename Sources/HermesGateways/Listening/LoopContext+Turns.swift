// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Fairness: connections with much to do give way to those with little (``TurnQueue``).
extension LoopContext {
    /// Returns the present time, by the clock that limits turns. Tests replace this clock.
    func turnTime() -> NIODeadline {
        if let replacedTurnClock { return replacedTurnClock() }
        return eventLoop.now
    }

    /// Whether work that can wait may continue in this turn of the loop. Long work calls this function from time to
    /// time.
    func hasTime() -> Bool {
        eventLoop.assertInEventLoop()
        let now = turnTime()
        if let ticks, tickOfTime != ticks, !isInTurn {
            tickOfTime = ticks
            turns.end()
        }
        guard turns.begin(now: now) else {
            let hasTime = turns.hasTime(now: now)
            if !hasTime, !isInTurn { tickOverTime = ticks }
            return hasTime
        }
        // The turn ends in a task, because tasks run after all connections that are ready.
        if ticks == nil { eventLoop.execute { self.turns.end() } }
        return true
    }

    /// Whether ``hasTime()`` has already returned false in this tick. If so, connections with much to do wait for a
    /// turn before they handle another frame.
    var isOverTime: Bool { ticks != nil && tickOverTime == ticks && !isInTurn }

    /// Notes that a connection has sent something.
    ///
    /// - Parameters:
    ///   - lastReadAt: the time of the last read from the connection, or of the end of its last pause. This function
    ///     sets it to the present time.
    ///   - isConfirming: whether the connection only confirms messages that it got. In that case, it does not end a
    ///     silence (``TurnQueue/silence``), because nobody waits for confirmations, and many subscribers of a busy
    ///     loop confirm late.
    func heard(_ lastReadAt: inout NIODeadline, isConfirming: Bool = false) {
        let now = turnTime()
        if now - lastReadAt >= TurnQueue.silence, !isConfirming { turns.silenceEnded(now: now) }
        lastReadAt = now
    }

    /// Does work in a later turn, after the work that already waits.
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
        // The loop has not served its sockets since the last turn, because other tasks were due meanwhile.
        if let tickOfTurn, tickOfTurn == ticks { return scheduleTurn() }
        tickOfTurn = ticks
        // This turn neither lengthens nor shortens the time of the connections from which the tick has read.
        let suspended = turns.suspend()
        isInTurn = true
        _ = turns.begin(now: turnTime())
        while let work = turns.next(now: turnTime()) { work() }
        isInTurn = false
        turns.resume(ticks == nil ? nil : suspended)
        scheduleTurn()
    }

    /// Makes turns follow the loop's ticks. From now on, ``tickEnded()`` must be called after each tick.
    func turnsFollowTicks() { ticks = 0 }

    /// Notes the end of a tick: the loop has run all due tasks.
    func tickEnded() { ticks? &+= 1 }

    /// Finishes many items that an ended connection has left, a slice of them in each turn of the loop.
    ///
    /// - Parameters:
    ///   - count: the number of items. A few of them are finished at once, before this returns.
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
