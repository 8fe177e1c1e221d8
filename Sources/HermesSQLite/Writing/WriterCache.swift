// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The writer's cache of frequently changed rows, so that a commit reads almost nothing.
///
/// The cache is valid as of the last commit: it is taken out during a transaction, and put back only if the transaction
/// commits. It is used only on the writer's queue; the `Mutex` in ``SQLiteStore`` shows that to the compiler.
struct WriterCache {
    struct Inbox {
        var head: UInt64
        var oldest: UInt64
        var acknowledged: UInt64
        /// Whether the inbox's owner blocks any accounts. Which accounts these are is looked up when it matters.
        var blocksSomebody = false
        /// The entries that wait in the inbox.
        var use = Holding()
        /// The use by source, for the sources that were looked up (``InboxBudget/needsShare(_:of:adding:)``).
        var shares: [EntrySource: Holding] = [:]
        var isDirty = false
    }

    struct Conversation {
        let key: Int64
        var lastSeq: UInt64
        /// When the last message was sent; nil: unknown.
        var lastAt: Timestamp?
        /// The messages that do not count as unread for the account with the lower id: its own messages, and recalled
        /// ones. For a group: the recalled messages.
        var quietLow: RecentSeqs
        /// The messages that do not count as unread for the account with the higher id.
        var quietHigh: RecentSeqs
        var isDirty = false

        /// Adds a message of `sender`.
        mutating func append(from sender: UserID, in id: ConversationID, at time: Timestamp) {
            lastSeq += 1
            lastAt = time
            quietLow.advance(to: lastSeq)
            quietHigh.advance(to: lastSeq)
            guard case .direct(let low, let high) = id else { return }
            if sender == low { quietLow.insert(lastSeq) }
            if sender == high { quietHigh.insert(lastSeq) }
        }

        mutating func recall(_ seq: UInt64) {
            guard seq <= lastSeq else { return }
            quietLow.insert(seq)
            quietHigh.insert(seq)
        }
    }

    /// The inboxes by account. An account that does not exist is never cached.
    var inboxes: [UserID: Inbox] = [:]
    var conversations: [ConversationID: Conversation] = [:]
    /// The cursors of all devices of a user.
    var cursors: [UserID: InboxCursors] = [:]
    /// Recently used groups.
    var groups: [GroupID: Group] = [:]

    /// An upper bound of the number of fresh entries.
    var freshEntries = 0
    /// The running sweep, which starts when there are many fresh entries; nil: none.
    var sweep: FreshSweep?

    /// The largest number of entries of each kind, which bounds memory to some 30 MB.
    static let maxEntries = 200_000
    /// The largest number of groups. Each has at most 500 members, with 24 bytes for each member.
    static let maxGroups = 2_000

    mutating func trim() {
        if inboxes.count > Self.maxEntries { inboxes.removeAll() }
        if conversations.count > Self.maxEntries { conversations.removeAll() }
        if groups.count > Self.maxGroups { groups.removeAll() }
        if cursors.count > Self.maxEntries { cursors.removeAll() }
    }

    /// Forgets a user whose rows were changed elsewhere.
    mutating func forget(_ user: UserID) {
        inboxes[user] = nil
        cursors[user] = nil
    }
}
