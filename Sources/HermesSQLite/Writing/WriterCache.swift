// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// What the writer knows of the rows it changes all the time, so that a commit reads next to nothing.
///
/// True as of the last commit: it is taken out while a transaction runs and put back only if that committed.
/// Used on the writer's queue alone; a `Mutex` in ``SQLiteStore`` says so to the compiler.
struct WriterCache {
    struct Inbox {
        var head: UInt64
        var oldest: UInt64
        var acknowledged: UInt64
        /// Whose messages do not come in here.
        var blocked: Set<UserID> = []
        /// What waits in it.
        var use = InboxUse()
        /// What waits by source; only of sources that were asked for (``InboxBudget/needsShare(_:adding:)``).
        var shares: [EntrySource: InboxUse] = [:]
        var isDirty = false
    }

    struct Conversation {
        let key: Int64
        var lastSeq: UInt64
        var isDirty = false
    }

    /// Nil: the account does not exist; that is never cached.
    var inboxes: [UserID: Inbox] = [:]
    var conversations: [ConversationID: Conversation] = [:]
    /// The cursors of all devices of a user.
    var cursors: [UserID: [DeviceID: UInt64]] = [:]
    /// Those that were written to lately.
    var groups: [GroupID: Group] = [:]

    /// How many entries are fresh, at most.
    var freshEntries = 0
    /// Under way where many are.
    var sweep: FreshSweep?

    /// Keeps memory bounded on servers with very many accounts: some 20 MB.
    static let maxEntries = 200_000
    /// At most 500 members each, 16 bytes a member.
    static let maxGroups = 2_000

    mutating func trim() {
        if inboxes.count > Self.maxEntries { inboxes.removeAll() }
        if conversations.count > Self.maxEntries { conversations.removeAll() }
        if groups.count > Self.maxGroups { groups.removeAll() }
        if cursors.count > Self.maxEntries { cursors.removeAll() }
    }

    /// After a change to a user's rows that did not go through here.
    mutating func forget(_ user: UserID) {
        inboxes[user] = nil
        cursors[user] = nil
    }
}
