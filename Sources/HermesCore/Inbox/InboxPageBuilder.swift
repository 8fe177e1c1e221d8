// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Builds an ``InboxPage`` from a store's entries in ascending order. It adds entries for the holes, and applies the
/// limits.
package struct InboxPageBuilder {
    private var entries: [InboxEntry] = []
    private var last: UInt64
    private let limit: Int
    private var bytes = 0
    private var isCut = false

    /// - Parameter limit: the caller's limit; at most ``StoreSettings/maxPageEntries``.
    package init(after seq: UInt64, limit: Int) {
        last = seq
        self.limit = StoreSettings.pageLimit(limit)
    }

    /// The maximum number of stored entries in a page.
    package var capacity: Int { limit }

    /// Returns whether an entry with this seq fits. Adds an entry for the hole before that entry, if there is a hole.
    /// After the first result of false, the page is full.
    package mutating func hasRoom(before seq: UInt64) -> Bool {
        guard !isCut, seq > last, entries.count < limit, bytes < StoreSettings.maxPageBytes else {
            isCut = true
            return false
        }
        if seq > last + 1 {
            appendHole(through: seq - 1)
            isCut = entries.count >= limit
        }
        return !isCut
    }

    /// Appends an entry for which ``hasRoom(before:)`` was true.
    package mutating func append(_ entry: InboxEntry, bytes: Int) {
        entries.append(entry)
        last = entry.seq
        self.bytes += bytes
    }

    /// Returns the page. Call this after all stored entries were offered, or after an entry did not fit.
    package consuming func finish(_ position: InboxPosition) -> InboxPage {
        if !isCut, entries.count < limit, last < position.head {
            appendHole(through: position.head)
        }
        return InboxPage(entries: entries, position: position)
    }

    private mutating func appendHole(through seq: UInt64) {
        let hole = InboxEntry(seq: last + 1, committedAt: Timestamp(rawValue: 0), event: .expired(through: seq))
        entries.append(hole)
        last = seq
    }
}
