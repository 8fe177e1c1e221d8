// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import NIOCore

/// The work of one event loop that can wait, and the time for this work in one turn. This type does no I/O.
///
/// In a turn, a loop serves all connections that are ready, and then runs all its tasks. Connections with little to
/// do are served at once. Connections with much to do share ``time``. Work for which there is no time waits here.
/// Later turns do this work in the order of its arrival. So a thousand busy connections delay the other connections
/// about as much as one busy connection does.
struct TurnQueue {
    /// The time of one turn for connections with much to do, if no other connections are active. It is as much as a
    /// hundred busy connections need for one read each. Cutting work into smaller pieces costs more: with
    /// ``shortTime``, publications of QoS 1 by ten publishers to a hundred subscribers take a quarter more processor
    /// time.
    static let time = TimeAmount.milliseconds(20)
    /// The time of one turn while there are connections that send something only now and then. A message of one of
    /// these connections waits for several turns on its way: four to six turns of loops, and the turns of the store.
    /// With turns of half a millisecond, the work needs no more processor time in total than with turns of two
    /// milliseconds.
    static let shortTime = TimeAmount.microseconds(500)
    /// The time in which one tick (one pass of the event loop) writes output to crowds, if no other connections are
    /// active. A crowd is the very many subscribers of one topic on this loop. In this time, a thousand subscribers
    /// get a whole batch of publications. Cutting the work costs more: the next publications arrive before the rest
    /// is written, and form a separate batch. With ``time`` instead, publications of QoS 1 to a thousand subscribers
    /// take a quarter more processor time.
    static let crowdTime = TimeAmount.milliseconds(50)
    /// The silence after which a connection counts as one that sends something now and then. A silence during which the
    /// connection had to wait does not count.
    static let silence = TimeAmount.milliseconds(100)
    /// The time for which turns are short when a connection has sent something after a ``silence``, because its message
    /// is on its way.
    static let attention = TimeAmount.milliseconds(300)
    /// The pause between two turns. It is not zero, because a loop runs all due tasks, including those that these tasks
    /// add, before it serves its connections. If other tasks take as long as the pause, the turn waits until the loop
    /// has served its connections (``LoopTicks``).
    static let pause = TimeAmount.microseconds(20)

    private var waiting = Deque<() -> Void>()
    /// The end of the present turn's time; nil if no connection has had much to do in this turn.
    private var endsAt: NIODeadline?
    /// The time until which turns are short.
    private var attentiveUntil = NIODeadline.distantPast

    var isEmpty: Bool { waiting.isEmpty }

    /// Starts the time of the present turn, unless it has started already.
    ///
    /// - Returns: whether this call has started it.
    mutating func begin(now: NIODeadline) -> Bool {
        guard endsAt == nil else { return false }
        endsAt = now + duration(now: now)
        return true
    }

    /// Returns the time of a turn that begins now.
    func duration(now: NIODeadline) -> TimeAmount { now < attentiveUntil ? Self.shortTime : Self.time }

    /// Returns the time for output to crowds in a tick that begins now.
    func crowdDuration(now: NIODeadline) -> TimeAmount { now < attentiveUntil ? Self.shortTime : Self.crowdTime }

    /// Makes the next turns short, because a connection has sent something after a silence.
    mutating func silenceEnded(now: NIODeadline) { attentiveUntil = now + Self.attention }

    /// Ends the time of the present turn.
    mutating func end() { endsAt = nil }

    /// Interrupts the present turn for another turn. ``resume(_:)`` continues the interrupted turn with the time that
    /// this function returns.
    mutating func suspend() -> NIODeadline? {
        defer { endsAt = nil }
        return endsAt
    }

    mutating func resume(_ suspended: NIODeadline?) { endsAt = suspended }

    func hasTime(now: NIODeadline) -> Bool {
        guard let endsAt else { return true }
        return now < endsAt
    }

    mutating func append(_ work: @escaping () -> Void) { waiting.append(work) }

    /// Removes and returns the next work, if there is time for it.
    mutating func next(now: NIODeadline) -> (() -> Void)? { hasTime(now: now) ? waiting.popFirst() : nil }
}

/// The time of one kind of work in one tick of the loop. If work of this kind occurs again before the loop serves its
/// sockets, the time does not restart. This type does no I/O.
struct TickTime {
    private var tick: UInt64?
    private var endsAt = NIODeadline.distantPast

    /// - Parameters:
    ///   - tick: the tick; nil if nobody counts the ticks. In that case, the time restarts with each call.
    ///   - duration: the length of the time that begins if the tick is new.
    /// - Returns: the end of the time, and whether the time begins now. If the time begins now, some work must be done,
    ///   however long it takes.
    mutating func end(in tick: UInt64?, now: NIODeadline, _ duration: TimeAmount) -> (endsAt: NIODeadline, isNew: Bool)
    {
        if let tick, tick == self.tick { return (endsAt, false) }
        self.tick = tick
        endsAt = now + duration
        return (endsAt, true)
    }
}
