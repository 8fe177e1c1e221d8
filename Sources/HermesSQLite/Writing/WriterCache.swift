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
        /// Whether the inbox's owner blocks any accounts. The blocked accounts are read from the database when they
        /// matter.
        var blocksSomebody = false
        /// The entries that wait in the inbox.
        var use = Holding()
        /// The use by source; nil if it is not counted. It is counted only when a share is needed
        /// (``InboxBudget/needsShare(_:of:adding:)``), and forgotten if it takes too much memory.
        var shares: InboxShares?
        var isDirty = false
    }

    struct Conversation {
        let key: Int64
        var lastSeq: UInt64
        /// The time when the last message was sent; nil if it is unknown.
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
    /// The size of the shares of all inboxes (``InboxShares/size``).
    private(set) var sharesSize = 0
    var conversations: [ConversationID: Conversation] = [:]
    /// The cursors of all devices of a user.
    var cursors: [UserID: InboxCursors] = [:]
    /// Recently used groups.
    var groups: [GroupID: Group] = [:]

    /// An upper bound of the number of fresh entries.
    var freshEntries = 0
    /// The running sweep, which starts when there are many fresh entries; nil if there is none.
    var sweep: FreshSweep?

    /// The largest number of entries of each kind, which bounds memory to some 30 MB.
    static let maxEntries = 200_000
    /// The largest number of groups. Each has at most 500 members, with 24 bytes for each member.
    static let maxGroups = 2_000
    /// The largest size of the shares of all inboxes, which bounds their memory to some 30 MB.
    static let maxSharesSize = 1_000_000

    /// If there are too many entries of a kind, forgets every second one. The next commits then still find the other
    /// entries.
    mutating func trim() {
        if inboxes.count > Self.maxEntries {
            inboxes.halve()
            sharesSize = inboxes.values.reduce(0) { $0 + ($1.shares?.size ?? 0) }
        }
        trimShares()
        if conversations.count > Self.maxEntries { conversations.halve() }
        if groups.count > Self.maxGroups { groups.halve() }
        if cursors.count > Self.maxEntries { cursors.halve() }
    }

    /// Caches an inbox.
    mutating func keep(_ inbox: Inbox, of user: UserID) {
        _ = take(user)
        sharesSize += inbox.shares?.size ?? 0
        inboxes[user] = inbox
    }

    /// Takes an inbox out of the cache, so that it can be changed without a copy of its shares.
    mutating func take(_ user: UserID) -> Inbox? {
        guard let inbox = inboxes.removeValue(forKey: user) else { return nil }
        sharesSize -= inbox.shares?.size ?? 0
        return inbox
    }

    /// Caches the shares of a cached inbox.
    mutating func keep(_ shares: InboxShares, of user: UserID) {
        guard let index = inboxes.index(forKey: user) else { return }
        sharesSize += shares.size - size(at: index)
        inboxes.values[index].shares = shares
        trimShares()
    }

    /// Counts one more entry in the shares of a cached inbox, unless these are unknown.
    ///
    /// - Parameter source: the stored form of the entry's source.
    mutating func countShare(_ weight: Int, from source: Int64, at index: Dictionary<UserID, Inbox>.Index) {
        let before = size(at: index)
        inboxes.values[index].shares?.add(weight, from: source)
        sharesSize += size(at: index) - before
    }

    /// The size of the shares of a cached inbox.
    private func size(at index: Dictionary<UserID, Inbox>.Index) -> Int { inboxes.values[index].shares?.size ?? 0 }

    /// If the shares take too much room, forgets the largest ones, until a tenth of the room is free. So this is not
    /// needed again for a long time.
    private mutating func trimShares() {
        guard sharesSize > Self.maxSharesSize else { return }
        var sizes = inboxes.compactMap { user, inbox in inbox.shares.map { (user: user, size: $0.size) } }
        sizes.sort { $0.size > $1.size }
        for (user, size) in sizes {
            guard sharesSize > Self.maxSharesSize / 10 * 9 else { return }
            inboxes[user]?.shares = nil
            sharesSize -= size
        }
    }

    /// Forgets a user whose rows were changed elsewhere.
    mutating func forget(_ user: UserID) {
        _ = take(user)
        cursors[user] = nil
    }
}

extension Dictionary {
    /// Removes every second entry.
    mutating func halve() {
        var keeps = false
        self = filter { _ in
            keeps.toggle()
            return keeps
        }
    }
}
