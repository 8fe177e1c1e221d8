// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The sessions whose queues are long. The rows of such a queue fill whole pages of the permanent table. So further
/// rows go there directly: through the fresh table they would be written twice.
///
/// A session's rows may go directly to the permanent table only while the fresh table has none of them, because fresh
/// rows count as newer than all others. So a session that gets a long queue first waits until a sweep has passed it. It
/// is always safe to forget a session: its further rows then go to the fresh table.
///
/// A commit writes a page for each of these sessions that gets a message, so their number is limited. A session that
/// gets nothing for a long time makes room for another session.
struct LongQueues {
    private struct Queue {
        /// Whether new rows of the queue go to the permanent table.
        var isSettled = false
        /// The number of sweeps since the queue last grew.
        var sweeps = 0
    }

    private var queues: [DurableSessionID: Queue] = [:]

    /// A queue with this number of messages or more is long. This number of short messages fills several pages.
    static let startRows = 256
    /// The number of messages below which a queue is no longer long.
    static let endRows = 128
    static let maxSessions = 64
    /// The largest number of sweeps for which a session is remembered while its queue does not grow.
    static let maxSweeps = 2
    /// The growth of a queue is noted at each multiple of this number of messages.
    private static let stride = 64

    /// Whether a further row of the session goes to the permanent table.
    func takes(_ id: DurableSessionID) -> Bool { !queues.isEmpty && queues[id]?.isSettled == true }

    /// Notes that the queue of a session has grown to this number of messages.
    mutating func grew(_ id: DurableSessionID, to rows: Int) {
        guard rows >= Self.startRows, rows % Self.stride == 0 else { return }
        guard queues[id] == nil else {
            queues[id]?.sweeps = 0
            return
        }
        if queues.count < Self.maxSessions { queues[id] = Queue() }
    }

    mutating func lessened(_ id: DurableSessionID, to rows: Int) {
        if rows < Self.endRows { forget(id) }
    }

    /// Forgets a session, because it has ended or its further rows must be fresh.
    mutating func forget(_ id: DurableSessionID) {
        if !queues.isEmpty { queues[id] = nil }
    }

    /// Notes that a sweep has moved all fresh rows of the sessions with ids in `first..<end`.
    mutating func swept(from first: Int64, upTo end: Int64) {
        for id in queues.keys where id.rawValue >= first && id.rawValue < end {
            queues[id]?.isSettled = true
            queues[id]?.sweeps += 1
            if queues[id]?.sweeps ?? 0 > Self.maxSweeps { queues[id] = nil }
        }
    }
}
