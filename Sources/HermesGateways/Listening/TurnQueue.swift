// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import NIOCore

/// Work of one event loop that can wait, and the time for such work in one turn. Pure.
///
/// In a turn a loop serves all connections that are ready, then all its tasks. Connections with little to do are served
/// at once. Those with much to do share ``time``; what is left of it waits here, and later turns do it in the order in
/// which it came. So a thousand busy connections delay the others hardly more than one does.
struct TurnQueue {
    /// The time of one turn for connections with much to do, if nobody else is there: as much as a hundred busy
    /// connections need for a read each. What is cut into pieces costs more: with ``shortTime``, publications of QoS 1
    /// by ten publishers to a hundred subscribers take a quarter more processor time.
    static let time = TimeAmount.milliseconds(20)
    /// The time of one turn while others are there that say something now and then. Their messages meet several turns
    /// on the way: four to six of a loop, and the turns of the store. Half a millisecond costs no more than two.
    static let shortTime = TimeAmount.microseconds(500)
    /// The time in which one tick writes output to crowds, if nobody else is there. A thousand get a whole batch in it.
    /// What is cut costs more: the next publications come before the rest is written, and make a batch of their
    /// own. With ``time``, publications of QoS 1 to a thousand subscribers take a quarter more processor time.
    static let crowdTime = TimeAmount.milliseconds(50)
    /// A connection that was silent for this long, and not because it had to wait, counts as one that says something
    /// now and then.
    static let silence = TimeAmount.milliseconds(100)
    /// The time for which turns are short after such a connection has said something: its message is on the way.
    static let attention = TimeAmount.milliseconds(300)
    /// The pause between two turns. It is not zero: a loop runs all due tasks, also those that tasks add, before it
    /// serves its connections. If other tasks take as long as this, the turn waits (``LoopTicks``).
    static let pause = TimeAmount.microseconds(20)

    private var waiting = Deque<() -> Void>()
    /// The end of the present turn's time; nil if nothing has had much to do in it.
    private var endsAt: NIODeadline?
    /// Until then turns are short.
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

    /// The time of a turn that begins now.
    func duration(now: NIODeadline) -> TimeAmount { now < attentiveUntil ? Self.shortTime : Self.time }

    /// The time for output to crowds in a tick that begins now.
    func crowdDuration(now: NIODeadline) -> TimeAmount { now < attentiveUntil ? Self.shortTime : Self.crowdTime }

    /// A connection says something after some time of silence. The next turns are short.
    mutating func silenceEnded(now: NIODeadline) { attentiveUntil = now + Self.attention }

    /// The turn is over.
    mutating func end() { endsAt = nil }

    /// Another turn begins within this one, which goes on behind it (``resume(_:)``).
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

    /// Takes the next work if there is time for it.
    mutating func next(now: NIODeadline) -> (() -> Void)? { hasTime(now: now) ? waiting.popFirst() : nil }
}

/// The time of one kind of work in one tick of the loop, however often it comes up before the loop looks at its sockets
/// again: all that is done keeps the rest due meanwhile. Pure.
struct TickTime {
    private var tick: UInt64?
    private var endsAt = NIODeadline.distantPast

    /// - Parameters:
    ///   - tick: the tick; nil if nobody counts them. Then the time begins anew each time.
    ///   - duration: the time that begins if the tick is a new one.
    /// - Returns: the end of the time, and whether it begins now. Then something is to be done whatever it takes.
    mutating func end(in tick: UInt64?, now: NIODeadline, _ duration: TimeAmount) -> (endsAt: NIODeadline, isNew: Bool)
    {
        if let tick, tick == self.tick { return (endsAt, false) }
        self.tick = tick
        endsAt = now + duration
        return (endsAt, true)
    }
}
