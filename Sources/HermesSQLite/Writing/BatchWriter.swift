// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Applies one batch of operations inside the writer's transaction.
///
/// Each operation is checked before it writes, so that a refused one leaves nothing behind. If several operations of a
/// batch change the same row (an inbox's head, a conversation, a cursor), ``finish()`` writes the row once.
struct BatchWriter: SlicedWriter {
    typealias Operation = WriteOperation
    typealias Outcome = WriteOutcome

    let db: Database
    let now: Timestamp
    let settings: StoreSettings
    var time: TimeSlice
    /// The number of fresh rows that starts a sweep.
    let sweepRows: Int
    let statements: Statements
    var cache: WriterCache
    var dirtyInboxes: [UserID] = []
    var dirtyConversations: [ConversationID] = []
    var dirtyCursors: Set<DeviceKey> = []
    /// Sessions that were deleted with their accounts.
    var removedSessions: [DurableSessionID] = []
    var inboxChanges = InboxLedger.Changes()
    /// The entries in the queues of ``removedSessions``, as a negative amount.
    var removedQueues = OwnerTally()
    /// The changes of each account's unread bytes by this batch.
    var unreadChanges: [UserID: Int] = [:]
    let unread: UnreadLedger
    /// A buffer that is reused for each message.
    var deliveryBytes: [UInt8] = []
    /// The number of fresh entries before this batch.
    private let freshBefore: Int

    struct DeviceKey: Hashable {
        let user: UserID
        let device: DeviceID
    }

    init(
        _ db: Database,
        cache: consuming WriterCache,
        unread: UnreadLedger,
        settings: StoreSettings,
        now: Timestamp,
        time: TimeSlice,
        sweepRows: Int
    ) throws {
        self.time = time
        self.sweepRows = sweepRows
        self.db = db
        self.unread = unread
        self.now = now
        self.settings = settings
        self.cache = cache
        statements = try Statements(db)
        freshBefore = self.cache.freshEntries
        self.cache.trim()
    }

    /// Whether another operation fits into the transaction. A running sweep gets a part of the time.
    var hasTime: Bool {
        let isLate = cache.freshEntries >= 4 * sweepRows
        return time.elapsed < FreshSweep.share(of: time, beside: cache.sweep, isLate: isLate)
    }

    /// - Throws: errors that fail the whole batch. A refused operation is an outcome, not an error.
    mutating func apply(_ operation: WriteOperation) throws -> WriteOutcome {
        do {
            return try applyUnlessRefused(operation)
        } catch let refusal as HermesError {
            return .refused(refusal)
        }
    }

    private mutating func applyUnlessRefused(_ operation: WriteOperation) throws -> WriteOutcome {
        switch operation {
        case .append(let append):
            try self.append(append)
        case .markRead(let conversation, let user, let seq):
            try markRead(conversation, by: user, upTo: seq)
        case .acknowledge(let user, let device, let seq, let isProven):
            try acknowledge(user, device, upTo: seq, isProven: isProven)
        case .recall(let id, let conversation, let user, let notBefore):
            try recall(id, in: conversation, by: user, notBefore: notBefore)
        case .contact(let command, let principal, let peer, let message):
            try apply(command, by: principal, to: peer, message: message)
        case .group(let command, let user, let requiresContacts):
            try apply(command, by: user, requiresContacts: requiresContacts)
        case .push(let operation):
            .pushed(try apply(operation))
        case .deleteAccount(let user):
            try deleteAccount(user)
        case .openDevice(let opening):
            .deviceOpened(try open(opening))
        }
    }

    /// Writes the collected values and returns the cache.
    consuming func finish() throws -> WriterCache {
        for user in dirtyInboxes {
            guard let inbox = cache.inboxes[user] else { continue }
            statements.updateInbox.bind(inbox.head, at: 1)
            statements.updateInbox.bind(inbox.oldest, at: 2)
            statements.updateInbox.bind(inbox.acknowledged, at: 3)
            statements.updateInbox.bind(user, at: 4)
            try statements.updateInbox.run()
            cache.inboxes[user]?.isDirty = false
        }
        for id in dirtyConversations {
            guard let conversation = cache.conversations[id] else { continue }
            statements.updateConversation.bind(conversation.lastSeq, at: 1)
            statements.updateConversation.bind(conversation.lastAt?.rawValue, at: 2)
            statements.updateConversation.bind(conversation.quietLow.bits, at: 3)
            statements.updateConversation.bind(conversation.quietHigh.bits, at: 4)
            statements.updateConversation.bind(conversation.key, at: 5)
            try statements.updateConversation.run()
            cache.conversations[id]?.isDirty = false
        }
        for key in dirtyCursors {
            guard let cursor = cache.cursors[key.user]?[key.device] else { continue }
            statements.updateCursor.bind(cursor.seq, at: 1)
            statements.updateCursor.bind(key.user, at: 2)
            try statements.updateCursor.bind(key.device.rawValue, at: 3) { try statements.updateCursor.run() }
        }
        try settleSlice()
        return cache
    }

    /// Moves some fresh rows to their permanent tables, once there are many.
    private mutating func settleSlice() throws {
        if cache.sweep == nil, cache.freshEntries >= sweepRows {
            cache.sweep = FreshSweep([.inbox, .clientIDs])
        }
        guard var sweep = cache.sweep else { return }
        try sweep.step(db, appended: cache.freshEntries - freshBefore, time)
        if sweep.isDone {
            cache.freshEntries = sweep.appended
            cache.sweep = nil
        } else {
            cache.sweep = sweep
        }
    }

    /// Moves all fresh rows to their permanent tables, when the store is opened.
    static func settle(_ db: Database) throws {
        for sql in settlingSQL { try PreparedStatement(db, sql).run() }
    }

    static let settlingSQL = FreshTables.inbox.moveAllSQL + FreshTables.clientIDs.moveAllSQL

    /// Reads an inbox's row into the cache, unless it is there already.
    ///
    /// - Returns: false if there is no such account.
    mutating func loadInbox(of user: UserID) throws -> Bool {
        if cache.inboxes[user] != nil { return true }
        statements.selectInbox.bind(user, at: 1)
        let found = try statements.selectInbox.first { row in
            WriterCache.Inbox(
                head: try row.sequence(0),
                oldest: try row.sequence(1),
                acknowledged: try row.sequence(2),
                blocksSomebody: row.integer(3) != 0
            )
        }
        guard var inbox = found else { return false }
        if inbox.head >= inbox.oldest {
            statements.selectUse.bind(user, at: 1)
            inbox.use = try Self.use(statements.selectUse)
        }
        cache.inboxes[user] = inbox
        return true
    }

    /// Whether `owner`, whose inbox is loaded, blocks `peer`. Reads one row, and none if `owner` blocks nobody.
    func blocks(_ owner: UserID, _ peer: UserID) throws -> Bool {
        guard cache.inboxes[owner]?.blocksSomebody == true else { return false }
        statements.selectBlock.bind(owner, at: 1)
        statements.selectBlock.bind(peer, at: 2)
        return try statements.selectBlock.first { _ in true } ?? false
    }

    /// Whether `owner` has neither asked for nor accepted `sender` as a contact. No account is a stranger to itself.
    func isStranger(_ sender: UserID, to owner: UserID) throws -> Bool {
        guard sender != owner else { return false }
        statements.selectContact.bind(owner, at: 1)
        statements.selectContact.bind(sender, at: 2)
        return try statements.selectContact.first { _ in true } == nil
    }

    private static func use(_ query: PreparedStatement) throws -> Holding {
        try query.first {
            Holding(entries: Int($0.integer(0)), bytes: $0.amount(1, upTo: PreparedStatement.maxSum))
        } ?? Holding()
    }

    /// Whether a message fits into a loaded inbox.
    mutating func hasRoom(
        in user: UserID,
        from source: EntrySource,
        by sender: UserID,
        _ weight: Int
    ) throws -> Bool {
        guard let inbox = cache.inboxes[user] else { return false }
        let budget = settings.inbox
        guard budget.needsShare(inbox.use, of: source, adding: weight) else { return true }
        if budget.isClosedToStrangers(inbox.use, adding: weight), try isStranger(sender, to: user) { return false }
        return try budget.hasRoom(in: inbox.use, from: source, adding: weight) { try share(of: $0, in: user) }
    }

    /// The entries of one source in a loaded inbox.
    mutating func share(of source: EntrySource, in user: UserID) throws -> Holding {
        if let known = cache.inboxes[user]?.shares[source] { return known }
        statements.selectShare.bind(user, at: 1)
        statements.selectShare.bind(source.numbers.lowerBound, at: 2)
        statements.selectShare.bind(source.numbers.upperBound, at: 3)
        statements.selectShare.bind(source.formerNumber ?? source.number, at: 4)
        // The result includes the entries of this batch, which are in the table already.
        let share = try Self.use(statements.selectShare)
        cache.inboxes[user]?.shares[source] = share
        return share
    }

    /// Whether an entry other than a message fits into a loaded inbox.
    ///
    /// - Parameter actor: the account that causes the entry; nil: a back end.
    mutating func hasReserve(in user: UserID, by actor: UserID?, _ weight: Int) throws -> Bool {
        let use = cache.inboxes[user]?.use ?? Holding()
        var hasRoom = settings.inbox.hasReserve(in: use, adding: weight)
        if hasRoom, let actor, settings.inbox.isClosedToStrangers(use, adding: weight) {
            hasRoom = try !isStranger(actor, to: user)
        }
        if !hasRoom { inboxChanges.refused += 1 }
        return hasRoom
    }

    /// Counts a written entry.
    mutating func count(_ weight: Int, from source: EntrySource, in user: UserID) {
        guard let index = cache.inboxes.index(forKey: user) else { return }
        cache.inboxes.values[index].use.add(weight)
        inboxChanges.came(weight, into: cache.inboxes.values[index].use)
        cache.inboxes.values[index].shares[source]?.add(weight)
        if source != source.whole { cache.inboxes.values[index].shares[source.whole]?.add(weight) }
        if case .user(let sender) = source, sender != user { unreadChanges[sender, default: 0] += weight }
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
    /// - Returns: the refusal, or nil.
    mutating func refusal(of recipients: [UserID]) throws -> HermesError? {
        for user in recipients {
            guard try loadInbox(of: user) else { return StoreRefusals.noSuchAccount }
        }
        return StoreRefusals.recipients(recipients)
    }
}
