// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The sessions whose queues are long. Their rows fill pages of the permanent table by themselves, so further ones go
/// there directly: by way of the fresh table they would be written twice.
///
/// A session's rows may go directly to the permanent table only while none of them is in the fresh one, because fresh
/// rows count as newer than all others. So a session of this kind waits for a sweep to pass it. To forget one is always
/// sound: its further rows are fresh.
///
/// A commit writes a page for each of these sessions that gets something, so they are few. One that gets nothing for
/// long makes room.
struct LongQueues {
    private struct Queue {
        /// Whether its rows go to the permanent table.
        var isSettled = false
        /// The number of sweeps since it last grew.
        var sweeps = 0
    }

    private var queues: [DurableSessionID: Queue] = [:]

    /// The number of messages from which a queue is long: short messages then fill several pages.
    static let startRows = 256
    /// The number below which a queue is long no more.
    static let endRows = 128
    static let maxSessions = 64
    /// A session that got nothing during so many sweeps is forgotten.
    static let maxSweeps = 2
    /// A queue is looked at whenever it has grown by so many messages.
    private static let stride = 64

    /// Whether another row of the session goes to the permanent table.
    func takes(_ id: DurableSessionID) -> Bool { !queues.isEmpty && queues[id]?.isSettled == true }

    /// A session has that many messages now.
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

    /// The session has ended, or has fresh rows for another reason.
    mutating func forget(_ id: DurableSessionID) {
        if !queues.isEmpty { queues[id] = nil }
    }

    /// A sweep has moved all fresh rows of the sessions with ids in `first..<end`.
    mutating func swept(from first: Int64, upTo end: Int64) {
        for id in queues.keys where id.rawValue >= first && id.rawValue < end {
            queues[id]?.isSettled = true
            queues[id]?.sweeps += 1
            if queues[id]?.sweeps ?? 0 > Self.maxSweeps { queues[id] = nil }
        }
    }
}
