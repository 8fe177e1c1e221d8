// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The queues of kept sessions, counted by owner. Each store has one budget and keeps it up to date; the rules are the
/// same for every store.
///
/// State: a `Mutex` around ``OwnerShares``. It is locked once for each publication in a queue and once per commit.
/// Nothing is called while it is locked.
package final class QueueBudget: Sendable {
    /// The room in use, and the number of publications that found no room.
    package struct Statistics: Sendable, Hashable {
        package var used = Holding()
        package var limit = Holding()
        package var refused: UInt64 = 0

        package init() {}
    }

    private struct State {
        var shares: OwnerShares
        var refused: UInt64 = 0
    }

    /// The maximum number of publications that may wait for one session.
    package let maxEntriesPerQueue: Int
    private let state: Mutex<State>

    /// - Parameter waiting: the publications that already wait.
    package init(_ settings: StoreSettings, waiting: OwnerTally = OwnerTally()) {
        var shares = OwnerShares(entries: settings.queuedMessages, bytes: settings.queuedBytes)
        shares.add(waiting)
        state = Mutex(State(shares: shares))
        maxEntriesPerQueue = settings.maxQueuedMessages
    }

    /// Whether an owner may have `holding` in addition. The check does not copy the table of owners.
    ///
    /// - Parameter changes: the changes of a commit that is not complete yet.
    package func hasRoom(for holding: Holding, of owner: CommitSource, with changes: OwnerTally? = nil) -> Bool {
        state.withLock { $0.shares.hasRoom(for: holding, of: owner, with: changes) }
    }

    /// Returns how many of `count` publications find room in the queues of an owner. The others count as refused.
    ///
    /// - Parameter weight: the size of each publication, in bytes.
    package func room(for count: Int, weight: Int, of owner: CommitSource) -> Int {
        state.withLock { state in
            let room = state.shares.room(for: count, bytes: weight, of: owner)
            state.refused += UInt64(count - room)
            return room
        }
    }

    /// Returns the same as ``room(for:weight:of:)``, for a caller that queues nothing yet: no publication counts as
    /// refused.
    package func free(for count: Int, weight: Int, of owner: CommitSource) -> Int {
        state.withLock { $0.shares.room(for: count, bytes: weight, of: owner) }
    }

    package var statistics: Statistics {
        state.withLock { state in
            var statistics = Statistics()
            statistics.used = state.shares.tally.total
            statistics.limit = Holding(entries: state.shares.entries.total, bytes: state.shares.bytes.total)
            statistics.refused = state.refused
            return statistics
        }
    }

    /// Counts the changes of a commit that is complete.
    package func apply(_ changes: OwnerTally, refused: Int = 0) {
        guard !changes.isEmpty || refused > 0 else { return }
        state.withLock { state in
            state.shares.add(changes)
            state.refused += UInt64(refused)
        }
    }
}
