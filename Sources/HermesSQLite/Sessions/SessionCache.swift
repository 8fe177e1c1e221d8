// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The writer's cache of sessions, so that a commit reads almost nothing; see ``WriterCache``.
struct SessionCache {
    struct Head {
        var head: UInt64
        var queued: Int
        var bytes: Int
        var payer: CommitSource
        var isDirty = false
    }

    /// The heads by session. A session that does not exist is never cached.
    var heads: [DurableSessionID: Head] = [:]

    /// The sessions with long queues. After a failed commit, this list starts empty, because it depends on which rows
    /// are fresh.
    var long = LongQueues()

    /// An upper bound of the number of fresh rows.
    var freshRows = 0
    var freshBytes = 0
    /// The running sweep, if there are many fresh rows.
    var sweep: FreshSweep?
    /// The fresh bytes when the sweep began.
    var sweptBytes = 0

    /// The largest number of sessions, which bounds memory to some 10 MB.
    static let maxEntries = 200_000

    /// Forgets a session that has ended, or whose queue was changed elsewhere.
    mutating func forget(_ id: DurableSessionID) {
        heads[id] = nil
        long.forget(id)
    }

    /// Forgets every second head if there are too many. The next commits then still find the other heads.
    mutating func trim() {
        if heads.count > Self.maxEntries { heads.halve() }
    }
}
