// Hermes
// SPDX-License-Identifier: Apache-2.0

/// One entry of a user's inbox. Seqs are contiguous per user from 1, so gaps and duplicates are visible in them.
package struct InboxEntry: Sendable, Hashable {
    package let seq: UInt64
    package let committedAt: Timestamp
    package let event: InboxEvent
    /// The time at which the cause of an entry came to the core (``TimeSource/uptime()``), if the entry was just
    /// committed; nil if it was read from the store. It does not count for equality.
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

    /// Whether it stands for entries that are no longer stored.
    package var isHole: Bool { hole != nil }

    /// The last seq that the entry covers: its own, or the end of a hole.
    package var lastSeq: UInt64 {
        guard case .expired(let through) = event else { return seq }
        return max(seq, through)
    }
}

/// The position of an inbox.
package struct InboxPosition: Sendable, Hashable {
    /// Changes only if the store was lost: seqs of another epoch are meaningless.
    package let epoch: UInt64
    /// The newest seq; 0 before the first entry.
    package let head: UInt64
    /// The oldest stored seq; `head + 1` if none is stored.
    package let oldest: UInt64

    package init(epoch: UInt64, head: UInt64, oldest: UInt64) {
        self.epoch = epoch
        self.head = head
        self.oldest = oldest
    }
}

/// A run of entries, and the position of the inbox when they were read.
package struct InboxPage: Sendable, Hashable {
    /// Contiguous and ascending; a hole in the store (expired entries) is one ``InboxEvent/expired(through:)`` entry.
    package let entries: [InboxEntry]
    package let position: InboxPosition

    package init(entries: [InboxEntry], position: InboxPosition) {
        self.entries = entries
        self.position = position
    }

    /// The contents of its entries, in bytes.
    package var bytes: Int { entries.reduce(0) { $0 + $1.event.bytes } }
}

extension InboxEntry {
    /// The end of the hole that the entry stands for; nil for other entries.
    fileprivate var hole: UInt64? {
        if case .expired(let through) = event { through } else { nil }
    }
}

extension InboxPage {
    /// The page without expired messages and pushes, which are not delivered even if the purge has not deleted them
    /// yet. Each run of them is one ``InboxEvent/expired(through:)`` entry.
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
            // A hole directly before grows.
            let first = kept.last?.hole == nil ? entry : kept.removeLast()
            kept.append(InboxEntry(seq: first.seq, committedAt: first.committedAt, event: .expired(through: through)))
        }
        return InboxPage(entries: kept, position: position)
    }
}
