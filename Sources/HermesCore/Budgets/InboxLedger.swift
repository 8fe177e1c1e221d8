// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The entries of all inboxes together, and the number of entries that found no room. Each store has one ledger and
/// keeps it up to date.
///
/// State: a `Mutex` around a few numbers. It is locked once per commit, and nothing is called while it is locked.
package final class InboxLedger: Sendable {
    /// The effect of a commit.
    package struct Changes: Sendable, Hashable {
        /// The added entries minus the removed entries.
        package var holding: Holding
        /// The largest number of entries, and the largest number of bytes, of the inboxes that got an entry. The two
        /// numbers may belong to different inboxes.
        package private(set) var largest = Holding()
        /// The number of inbox entries and messages for which there was no room. Such entries are left out, and such
        /// messages are refused.
        package var refused = 0
        /// The number of messages that were refused because too many of the sender's messages are unread.
        package var refusedUnread = 0

        package init(holding: Holding = Holding()) { self.holding = holding }

        static func refusal(_ count: Int) -> Changes {
            var changes = Changes()
            changes.refused = count
            return changes
        }

        static var unreadRefusal: Changes {
            var changes = Changes()
            changes.refusedUnread = 1
            return changes
        }

        var isEmpty: Bool { self == Changes() }

        /// Counts an entry that was added to an inbox. After the addition, the inbox holds `inbox`.
        package mutating func came(_ bytes: Int, into inbox: Holding) {
            holding.add(bytes)
            largest.entries = max(largest.entries, inbox.entries)
            largest.bytes = max(largest.bytes, inbox.bytes)
        }

        package mutating func went(_ bytes: Int) { holding.subtract(bytes) }

        mutating func add(_ other: Changes) {
            holding += other.holding
            largest.entries = max(largest.entries, other.largest.entries)
            largest.bytes = max(largest.bytes, other.largest.bytes)
            refused += other.refused
            refusedUnread += other.refusedUnread
        }

        fileprivate mutating func takeLargest() -> Holding {
            defer { largest = Holding() }
            return largest
        }
    }

    private let sum: Mutex<Changes>

    /// - Parameter lying: the entries that the store already has.
    package init(lying: Holding = Holding()) { sum = Mutex(Changes(holding: lying)) }

    /// The sums of all changes since the store was opened, plus the entries that the store had at that time.
    package var now: Changes { sum.withLock { $0 } }

    /// Returns the largest number of entries, and the largest number of bytes, of the inboxes that got an entry since
    /// the last call.
    package func takeLargest() -> Holding { sum.withLock { $0.takeLargest() } }

    /// Adds the effect of a commit that is complete.
    package func apply(_ changes: Changes) {
        guard !changes.isEmpty else { return }
        sum.withLock { $0.add(changes) }
    }
}
