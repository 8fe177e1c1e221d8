// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// The rows of inboxes, and the checks for room in an inbox.
extension BatchWriter {
    /// An entry with a damaged seq is searched for up to this distance above the head.
    private static let nearSeqs: UInt64 = 1 << 20
    /// After a message has counted this many entries by source, it counts no further inbox. Counting that many
    /// entries takes some milliseconds.
    static let maxCounted = 25_000

    /// Reads an inbox's row into the cache, unless the cache already has it. Reads only the last entry, so that an
    /// inbox with many entries is loaded as fast as any other inbox.
    ///
    /// If an entry with a damaged seq is a little above the head, the head moves to this seq, so that no new entry
    /// gets the same seq.
    ///
    /// - Returns: false if there is no such account.
    mutating func loadInbox(of user: UserID) throws -> Bool {
        if cache.inboxes[user] != nil { return true }
        guard let found = try soundRow(of: user) else { return false }
        var inbox = found.inbox
        inbox.use = try found.use ?? recount(user)
        statements.selectLast.bind(user, at: 1)
        statements.selectLast.bind(inbox.head + Self.nearSeqs, at: 2)
        let last = UInt64(clamping: try statements.selectLast.first { $0.integer(0) } ?? 0)
        cache.inboxes[user] = inbox
        if last > inbox.head, let index = cache.inboxes.index(forKey: user) {
            damage.found("entry \(last) of user \(user.rawValue)")
            cache.inboxes.values[index].head = last
            markDirty(index)
        }
        return true
    }

    /// Returns an inbox's row. A damaged row is rebuilt first.
    private mutating func soundRow(of user: UserID) throws -> (inbox: WriterCache.Inbox, use: Holding?)? {
        do {
            return try row(of: user)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            guard let rebuilt = try InboxRow.rebuild(user, in: db) else { throw error }
            effects.rebuilt.append(rebuilt)
            return try row(of: user)
        }
    }

    private func row(of user: UserID) throws -> (inbox: WriterCache.Inbox, use: Holding?)? {
        statements.selectInbox.bind(user, at: 1)
        return try statements.selectInbox.first { row in
            let inbox = WriterCache.Inbox(
                head: try row.sequence(0),
                oldest: try row.sequence(1),
                acknowledged: try row.sequence(2),
                blocksSomebody: row.integer(5) != 0
            )
            return (inbox: inbox, use: row.counts(3))
        }
    }

    /// Reads an inbox's row, as ``loadInbox(of:)`` does. Does not fail if the row is damaged, because the change also
    /// concerns other accounts.
    ///
    /// - Returns: false if there is no such account, or if the row is damaged.
    mutating func loadSoundInbox(of user: UserID) throws -> Bool {
        try damage.skipping("inbox of user \(user.rawValue)") { try loadInbox(of: user) } ?? false
    }

    /// Whether `owner`, whose inbox is loaded, blocks `peer`. Reads one row, or no row if `owner` blocks nobody.
    func blocks(_ owner: UserID, _ peer: UserID) throws -> Bool {
        guard cache.inboxes[owner]?.blocksSomebody == true else { return false }
        statements.selectBlock.bind(owner, at: 1)
        statements.selectBlock.bind(peer, at: 2)
        return try statements.selectBlock.first { _ in true } ?? false
    }

    /// Whether `sender` is a stranger to `owner`. A stranger is an account that `owner` has neither requested nor
    /// accepted as a contact. No account is a stranger to itself.
    func isStranger(_ sender: UserID, to owner: UserID) throws -> Bool {
        guard sender != owner else { return false }
        statements.selectContact.bind(owner, at: 1)
        statements.selectContact.bind(sender, at: 2)
        return try statements.selectContact.first { _ in true } == nil
    }

    /// Counts the entries of an inbox whose row has impossible counts.
    private func recount(_ user: UserID) throws -> Holding {
        damage.found("counts of the inbox of user \(user.rawValue)")
        return try InboxCounts.recount(user, in: db)
    }

    /// Whether a message fits into a loaded inbox.
    ///
    /// A message to a group may go to many inboxes whose entries were not counted by source yet. The writer then counts
    /// the entries of some of these inboxes. In the other inboxes, the limits of single sources do not apply until the
    /// entries are counted for one of the next messages.
    ///
    /// - Parameter countable: the number of entries that the message may still count by source. An inbox is counted if
    ///   the number is above 0, however many entries the inbox has.
    mutating func hasRoom(
        in user: UserID,
        from source: EntrySource,
        by sender: UserID,
        _ weight: Int,
        countable: inout Int
    ) throws -> Bool {
        guard let inbox = cache.inboxes[user] else { return false }
        let budget = settings.inbox
        guard budget.needsShare(inbox.use, of: source, adding: weight) else { return true }
        if budget.isClosedToStrangers(inbox.use, adding: weight), try isStranger(sender, to: user) { return false }
        return try budget.hasRoom(in: inbox.use, from: source, adding: weight) { asked in
            // An inbox that is full in any case is not counted.
            if source != source.whole, cache.inboxes[user]?.shares == nil {
                guard countable > 0 else { return Holding() }
                countable -= inbox.use.entries
            }
            return try share(of: asked, in: user)
        }
    }

    /// The entries of one source in a loaded inbox. The first call for an inbox reads all its entries and counts them
    /// by source. From then on the cache keeps all counts up to date, so no other source causes a read.
    mutating func share(of source: EntrySource, in user: UserID) throws -> Holding {
        if let known = cache.inboxes[user]?.shares { return known[source] }
        let shares = try readShares(of: user)
        cache.keep(shares, of: user)
        return shares[source]
    }

    /// Counts all entries of an inbox by source, including those of this batch, which are already in the table.
    private func readShares(of user: UserID) throws -> InboxShares {
        var shares = InboxShares()
        statements.selectSources.bind(user, at: 1)
        try statements.selectSources.forEachRow { row in
            shares.add(row.amount(1), from: row.integer(0))
        }
        return shares
    }

    /// Whether an entry that is not a message fits into a loaded inbox.
    ///
    /// - Parameter actor: the account that causes the entry; nil for a back end.
    mutating func hasReserve(in user: UserID, by actor: UserID?, _ weight: Int) throws -> Bool {
        let use = cache.inboxes[user]?.use ?? Holding()
        var hasRoom = settings.inbox.hasReserve(in: use, adding: weight)
        if hasRoom, let actor, settings.inbox.isClosedToStrangers(use, adding: weight) {
            hasRoom = try !isStranger(actor, to: user)
        }
        if !hasRoom { effects.inboxes.refused += 1 }
        return hasRoom
    }

    /// Counts a written entry.
    mutating func count(_ weight: Int, from source: EntrySource, in user: UserID) {
        guard let index = cache.inboxes.index(forKey: user) else { return }
        cache.inboxes.values[index].use.add(weight)
        effects.inboxes.came(weight, into: cache.inboxes.values[index].use)
        cache.countShare(weight, from: source.number, at: index)
        if case .user(let sender) = source, sender != user { effects.unread[sender, default: 0] += weight }
    }

    /// Advances an inbox's head and returns it, as the seq of a new entry.
    mutating func advanceInbox(of user: UserID) -> UInt64 {
        guard let index = cache.inboxes.index(forKey: user) else { return 0 }
        cache.inboxes.values[index].head += 1
        cache.freshEntries += 1
        markDirty(index)
        return cache.inboxes.values[index].head
    }

    mutating func markDirty(_ index: Dictionary<UserID, WriterCache.Inbox>.Index) {
        guard !cache.inboxes.values[index].isDirty else { return }
        cache.inboxes.values[index].isDirty = true
        dirtyInboxes.append(cache.inboxes.keys[index])
    }

    /// Checks that each recipient exists and is named once.
    ///
    /// - Returns: the refusal; nil if there is none.
    mutating func refusal(of recipients: [UserID]) throws -> HermesError? {
        for user in recipients {
            guard try loadInbox(of: user) else { return StoreRefusals.noSuchAccount }
        }
        return StoreRefusals.recipients(recipients)
    }
}
