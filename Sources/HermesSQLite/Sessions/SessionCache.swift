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

    /// Nonexistent sessions are never cached.
    var heads: [DurableSessionID: Head] = [:]

    /// Not carried over to the cache after a failed commit, which may have moved or not moved rows of them.
    var long = LongQueues()

    /// An upper bound of the fresh rows.
    var freshRows = 0
    var freshBytes = 0
    /// The running sweep, if there are many fresh rows.
    var sweep: FreshSweep?
    /// The fresh bytes when it began.
    var sweptBytes = 0

    /// Bounds memory with very many sessions: some 10 MB.
    static let maxEntries = 200_000

    /// A session has ended, or its queue was changed elsewhere.
    mutating func forget(_ id: DurableSessionID) {
        heads[id] = nil
        long.forget(id)
    }

    mutating func trim() {
        if heads.count > Self.maxEntries { heads.removeAll() }
    }
}
