// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The writer's cache of frequently changed rows, so that a commit reads almost nothing.
///
/// Valid as of the last commit: it is taken out during a transaction and returned only if that commits. Used only on
/// the writer's queue; the `Mutex` in ``SQLiteStore`` shows that to the compiler.
struct WriterCache {
    struct Inbox {
        var head: UInt64
        var oldest: UInt64
        var acknowledged: UInt64
        /// Whether the messages of some do not come in here; who they are is asked when it matters.
        var blocksSomebody = false
        /// What waits in it.
        var use = Holding()
        /// The use by source, for those sources that were asked for (``InboxBudget/needsShare(_:adding:)``).
        var shares: [EntrySource: Holding] = [:]
        var isDirty = false
    }

    struct Conversation {
        let key: Int64
        var lastSeq: UInt64
        var isDirty = false
    }

    /// Nonexistent accounts are never cached.
    var inboxes: [UserID: Inbox] = [:]
    var conversations: [ConversationID: Conversation] = [:]
    /// The cursors of all devices of a user.
    var cursors: [UserID: InboxCursors] = [:]
    /// Recently used groups.
    var groups: [GroupID: Group] = [:]

    /// An upper bound of the fresh entries.
    var freshEntries = 0
    /// The running sweep, if there are many.
    var sweep: FreshSweep?

    /// Bounds memory with very many accounts: some 20 MB.
    static let maxEntries = 200_000
    /// At most 500 members each, 16 bytes a member.
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
