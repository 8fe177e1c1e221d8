// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// What the writer knows of sessions, so that a commit reads next to nothing; see ``WriterCache``.
struct SessionCache {
    struct Head {
        var head: UInt64
        var queued: Int
        var bytes: Int
        var isDirty = false
    }

    /// Nil: the session does not exist; that is never cached.
    var heads: [DurableSessionID: Head] = [:]

    /// What is fresh, at most.
    var freshRows = 0
    var freshBytes = 0
    /// Under way where there is much.
    var sweep: FreshSweep?
    /// What was fresh when it began.
    var sweptBytes = 0

    /// Keeps memory bounded with very many sessions: some 10 MB.
    static let maxEntries = 200_000

    mutating func trim() {
        if heads.count > Self.maxEntries { heads.removeAll() }
    }
}
