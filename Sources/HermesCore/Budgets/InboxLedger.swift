// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The entries of all inboxes together, and those that found no room. Each store has one and keeps it true.
///
/// State: a `Mutex` around a few numbers, taken once a commit; nothing is called under it.
package final class InboxLedger: Sendable {
    /// The effect of a commit.
    package struct Changes: Sendable, Hashable {
        /// Entries that came, less those that went.
        package var holding: Holding
        /// The largest inbox that something came into, by entries and by bytes.
        package private(set) var largest = Holding()
        /// Places in an inbox that stayed empty, and messages that were refused, for want of room.
        package var refused = 0
        /// Messages that were refused because too much of the sender's is unread.
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

        /// An entry has come into an inbox that holds so much now.
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

    /// - Parameter lying: the entries that are there already.
    package init(lying: Holding = Holding()) { sum = Mutex(Changes(holding: lying)) }

    /// The sums since the store was opened, with the entries that were there before.
    package var now: Changes { sum.withLock { $0 } }

    /// The largest inbox that something came into since the last call, by entries and by bytes.
    package func takeLargest() -> Holding { sum.withLock { $0.takeLargest() } }

    /// A commit is done.
    package func apply(_ changes: Changes) {
        guard !changes.isEmpty else { return }
        sum.withLock { $0.add(changes) }
    }
}
