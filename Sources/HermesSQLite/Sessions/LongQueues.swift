// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The sessions whose queues are long. Their rows fill pages of the permanent table by themselves, so further ones need
/// not wait in the fresh table: they would be written twice.
///
/// A session's rows may go to the permanent table at once only while none of them is in the fresh one, because fresh
/// rows count as newer than all others. So a session of this kind waits for a sweep to pass it. To forget one is always
/// sound: its further rows are fresh.
///
/// Each of these sessions has its own page to write in a commit, so they are few.
struct LongQueues {
    /// Whether the session's rows go to the permanent table.
    private var isSettled: [DurableSessionID: Bool] = [:]

    /// The number of messages of a long queue: several pages of short messages.
    static let startRows = 256
    /// The number below which a queue is long no more.
    static let endRows = 128
    static let maxSessions = 64

    /// Whether another row of the session goes to the permanent table.
    func takes(_ id: DurableSessionID) -> Bool { !isSettled.isEmpty && isSettled[id] == true }

    /// A session has that many messages now.
    mutating func grew(_ id: DurableSessionID, to rows: Int) {
        // Asked now and then.
        guard rows >= Self.startRows, rows % 64 == 0, isSettled.count < Self.maxSessions, isSettled[id] == nil else {
            return
        }
        isSettled[id] = false
    }

    mutating func lessened(_ id: DurableSessionID, to rows: Int) {
        if rows < Self.endRows { forget(id) }
    }

    /// The session has ended, or has fresh rows for another reason.
    mutating func forget(_ id: DurableSessionID) {
        if !isSettled.isEmpty { isSettled[id] = nil }
    }

    /// A sweep has moved all fresh rows of the sessions from one place up to, but not including, another one's.
    mutating func swept(from first: Int64, upTo end: Int64) {
        for (id, isSettled) in isSettled where !isSettled && id.rawValue >= first && id.rawValue < end {
            self.isSettled[id] = true
        }
    }
}
