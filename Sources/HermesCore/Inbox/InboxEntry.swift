// Hermes
// SPDX-License-Identifier: Apache-2.0

/// One entry of a user's inbox. Seqs are contiguous per user from 1, so that gaps and duplicates show by arithmetic.
package struct InboxEntry: Sendable, Hashable {
    package let seq: UInt64
    package let committedAt: Timestamp
    package let event: InboxEvent

    package init(seq: UInt64, committedAt: Timestamp, event: InboxEvent) {
        self.seq = seq
        self.committedAt = committedAt
        self.event = event
    }

    /// The last seq that the entry stands for: its own, or the end of a hole.
    package var lastSeq: UInt64 {
        guard case .expired(let through) = event else { return seq }
        return max(seq, through)
    }
}

/// What can stand in an inbox.
package enum InboxEvent: Sendable, Hashable {
    /// To the user, or by the user itself (for its other devices).
    case message(Message)
    /// `by` has read all messages of the conversation up to this conversation seq.
    case readMark(ConversationID, by: UserID, upTo: UInt64)
    case recalled(ConversationID, MessageID, conversationSeq: UInt64, by: UserID)
    /// Somebody asked, answered or ended being a contact.
    case contact(ContactEvent)
    /// A group changed.
    case group(GroupEvent)
    /// A back end posted a notification.
    case push(Push)
    /// This entry and all up to `through` are no longer stored: nothing to fetch. Its `committedAt` is 0: unknown.
    case expired(through: UInt64)
}

/// Where an inbox stands.
package struct InboxPosition: Sendable, Hashable {
    /// Changes only if the store was lost: seqs of another epoch mean nothing.
    package let epoch: UInt64
    /// The newest seq; 0 if there never was an entry.
    package let head: UInt64
    /// The oldest seq that is still stored; `head + 1` if none is.
    package let oldest: UInt64

    package init(epoch: UInt64, head: UInt64, oldest: UInt64) {
        self.epoch = epoch
        self.head = head
        self.oldest = oldest
    }
}

/// A run of entries, and where the inbox stood when they were read.
package struct InboxPage: Sendable, Hashable {
    /// Contiguous and ascending; a hole in the store (expired entries) is one ``InboxEvent/expired(through:)`` entry.
    package let entries: [InboxEntry]
    package let position: InboxPosition

    package init(entries: [InboxEntry], position: InboxPosition) {
        self.entries = entries
        self.position = position
    }
}

extension InboxEntry {
    /// Up to where nothing is stored, if the entry says that.
    fileprivate var hole: UInt64? {
        if case .expired(let through) = event { through } else { nil }
    }
}

extension InboxPage {
    /// The page without messages and pushes whose time is up: they are not delivered any more, even if the store has not yet
    /// purged them. Each run of them is one ``InboxEvent/expired(through:)`` entry.
    package func withoutExpired(at now: Timestamp) -> InboxPage {
        func isOver(_ entry: InboxEntry) -> Bool {
            switch entry.event {
            case .message(let message): message.expiresAt <= now
            case .push(let push): push.expiresAt <= now
            case .readMark, .recalled, .contact, .group, .expired: false
            }
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
