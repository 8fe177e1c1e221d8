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
    /// The time of one turn for connections with much to do. Small against what people notice, because a message may
    /// meet several busy loops on its way; but as much as a hundred busy connections need for a read each, because what
    /// is cut into pieces costs more (with 2 ms, QoS 1 of a hundred publishers took half as much again).
    static let time = TimeAmount.milliseconds(20)
    /// The pause between two turns. It is not zero: a loop runs all due tasks, also those that tasks add, before it serves
    /// its connections. If other tasks take as long as this, the turn waits (``LoopTicks``).
    static let pause = TimeAmount.microseconds(20)

    private var waiting = Deque<() -> Void>()
    /// The end of the present turn's time; nil if nothing has had much to do in it.
    private var endsAt: NIODeadline?

    var isEmpty: Bool { waiting.isEmpty }

    /// Begins a turn's time, unless it has begun.
    ///
    /// - Returns: whether it begins now.
    mutating func begin(now: NIODeadline) -> Bool {
        guard endsAt == nil else { return false }
        endsAt = now + Self.time
        return true
    }

    /// The turn is over.
    mutating func end() { endsAt = nil }

    func hasTime(now: NIODeadline) -> Bool {
        guard let endsAt else { return true }
        return now < endsAt
    }

    mutating func append(_ work: @escaping () -> Void) { waiting.append(work) }

    /// Takes the next work if there is time for it.
    mutating func next(now: NIODeadline) -> (() -> Void)? { hasTime(now: now) ? waiting.popFirst() : nil }
}
