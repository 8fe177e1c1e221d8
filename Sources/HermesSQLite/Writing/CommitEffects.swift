// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// The changes that a transaction on inboxes makes to the store's counts and caches. They are made only if the
/// transaction commits.
struct CommitEffects {
    /// The changes of each account's unread bytes.
    var unread: [UserID: Int] = [:]
    var inboxes = InboxLedger.Changes()
    /// Sessions that were deleted with their accounts.
    var removedSessions: [DurableSessionID] = []
    /// The entries in the queues of ``removedSessions``, as a negative amount.
    var queues = OwnerTally()
    /// The rows of inboxes that were rebuilt.
    var rebuilt: [InboxRow.Rebuilt] = []
}

extension SQLiteStore {
    /// Makes the changes of a transaction that has committed.
    func apply(_ effects: CommitEffects) {
        unread.apply(effects.unread)
        queues.apply(effects.queues)
        inboxes.apply(effects.inboxes)
        for row in effects.rebuilt { damage.rebuilt(row) }
        guard !effects.removedSessions.isEmpty else { return }
        sessionCache.withLock { cache in for id in effects.removedSessions { cache.forget(id) } }
    }
}
