// Hermes
// SPDX-License-Identifier: Apache-2.0

/// One entry of a user's inbox. The seqs of a user begin at 1 and are contiguous, so they reveal gaps and duplicates.
package struct InboxEntry: Sendable, Hashable {
    package let seq: UInt64
    package let committedAt: Timestamp
    package let event: InboxEvent
    /// The time (``TimeSource/uptime()``) at which the operation that caused the entry reached the core. The time is
    /// set if the entry was just committed, and nil if the entry was read from the store. Equality ignores this time.
    package var acceptedAt: Duration?

    package init(seq: UInt64, committedAt: Timestamp, event: InboxEvent) {
        self.seq = seq
        self.committedAt = committedAt
        self.event = event
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.seq == right.seq && left.committedAt == right.committedAt && left.event == right.event
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(seq)
        hasher.combine(committedAt)
        hasher.combine(event)
    }

    /// Whether the entry is a hole. A hole represents entries that are not stored any more.
    package var isHole: Bool { hole != nil }

    /// The last seq that the entry covers: its own seq, or the end of a hole.
    package var lastSeq: UInt64 {
        guard case .expired(let through) = event else { return seq }
        return max(seq, through)
    }
}

/// The state of an inbox's numbering.
package struct InboxPosition: Sendable, Hashable {
    /// A number that changes only if the store was lost. Seqs of another epoch are meaningless.
    package let epoch: UInt64
    /// The newest seq; 0 before the first entry.
    package let head: UInt64
    /// The oldest stored seq; `head + 1` if no entry is stored.
    package let oldest: UInt64
    /// The number of stored entries; nil if it is not known. It is less than `head - oldest + 1` if some seqs have no
    /// entry.
    package let entries: Int?

    package init(epoch: UInt64, head: UInt64, oldest: UInt64, entries: Int? = nil) {
        self.epoch = epoch
        self.head = head
        self.oldest = oldest
        self.entries = entries
    }
}

/// A run of entries, and the position of the inbox when they were read.
package struct InboxPage: Sendable, Hashable {
    /// The entries, whose seqs are contiguous and ascending. Each hole in the store is one
    /// ``InboxEvent/expired(through:)`` entry.
    package let entries: [InboxEntry]
    package let position: InboxPosition

    package init(entries: [InboxEntry], position: InboxPosition) {
        self.entries = entries
        self.position = position
    }

    /// The size of the entries' contents, in bytes.
    package var bytes: Int { entries.reduce(0) { $0 + $1.event.bytes } }
}

extension InboxEntry {
    /// If the entry is a hole, the last seq that the hole covers; otherwise nil.
    fileprivate var hole: UInt64? {
        if case .expired(let through) = event { through } else { nil }
    }
}

extension InboxPage {
    /// Returns the page without expired messages and pushes, which are not delivered even if the purge has not deleted
    /// them yet. Each run of expired entries becomes one ``InboxEvent/expired(through:)`` entry.
    package func withoutExpired(at time: ExpiryTime) -> InboxPage {
        func isOver(_ entry: InboxEntry) -> Bool {
            entry.event.expiry.map { time.isOver($0, storedAt: entry.committedAt) } ?? false
        }
        guard entries.contains(where: isOver) else { return self }
        var kept: [InboxEntry] = []
        for entry in entries {
            guard let through = isOver(entry) ? entry.seq : entry.hole else {
                kept.append(entry)
                continue
            }
            // A hole directly before this entry is extended.
            let first = kept.last?.hole == nil ? entry : kept.removeLast()
            kept.append(InboxEntry(seq: first.seq, committedAt: first.committedAt, event: .expired(through: through)))
        }
        return InboxPage(entries: kept, position: position)
    }
}
