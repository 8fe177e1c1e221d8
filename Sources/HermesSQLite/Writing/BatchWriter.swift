// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore
import Synchronization

/// Commits a batch of operations in one transaction.
extension SQLiteStore {
    package func commit(_ operations: [WriteOperation], now: Timestamp) throws(HermesError) -> [WriteOutcome] {
        do {
            return try commitBatch(operations, now: now)
        } catch {
            throw failure(error)
        }
    }

    package func commit(
        taking next: (_ isLong: Bool) -> WriteOperation?,
        now: Timestamp
    ) throws(HermesError) -> [WriteOutcome] {
        do {
            return try commitBatch([], taking: next, now: now)
        } catch {
            throw failure(error)
        }
    }

    /// Runs a batch on the writer. During the batch, the cache is taken out. It is put back only if the transaction
    /// commits.
    ///
    /// An operation that finds a damaged row is refused, and the other operations are applied.
    ///
    /// - Parameters:
    ///   - operations: the operations that are applied in any case.
    ///   - next: gives further operations (``MessageStore/commit(taking:now:)``).
    func commitBatch(
        _ operations: [WriteOperation],
        taking next: (_ isLong: Bool) -> WriteOperation? = { _ in nil },
        now: Timestamp
    ) throws -> [WriteOutcome] {
        waitingWrites.add(1, ordering: .relaxed)
        return try pool.writeWithoutTransaction { db in
            waitingWrites.subtract(1, ordering: .relaxed)
            return try commitBatch(operations, taking: next, now: now, in: db)
        }
    }

    func commitBatch(
        _ operations: [WriteOperation],
        taking next: (_ isLong: Bool) -> WriteOperation?,
        now: Timestamp,
        in db: Database
    ) throws -> [WriteOutcome] {
        var operations = operations
        do {
            return try commitBatch(&operations, taking: next, now: now, in: db, isolating: false)
        } catch let error as DatabaseError where StoreFailure.isDamage(error) {
            return try commitBatch(&operations, taking: { _ in nil }, now: now, in: db, isolating: true)
        }
    }

    /// - Parameters:
    ///   - operations: all of them are applied; the operations that `next` gives are appended.
    ///   - isolating: whether each operation can be rolled back separately, which is slow.
    private func commitBatch(
        _ operations: inout [WriteOperation],
        taking next: (_ isLong: Bool) -> WriteOperation?,
        now: Timestamp,
        in db: Database,
        isolating: Bool
    ) throws -> [WriteOutcome] {
        var taken = cache.withLock { cache in
            let taken = cache
            cache = WriterCache(freshEntries: taken.freshEntries, sweep: taken.sweep)
            // Isolated operations copy the cache each time, so they begin with an almost empty cache.
            return isolating ? cache : taken
        }
        var outcomes: [WriteOutcome] = []
        var effects = CommitEffects()
        try db.inTransaction(.immediate) {
            var writer = try BatchWriter(
                db,
                cache: taken,
                unread: unread,
                settings: settings,
                now: now,
                time: TimeSlice(clock, slice),
                sweepRows: sweepRows,
                keepsFresh: keepsFresh.load(ordering: .relaxed),
                damage: damage
            )
            taken = WriterCache()
            outcomes = try apply(&operations, taking: next, isolating: isolating, with: &writer, in: db)
            effects = writer.effects
            taken = try writer.finish()
            return .commit
        }
        cache.withLock { $0 = taken }
        apply(effects)
        return outcomes
    }

    /// Applies the operations, and then further ones while `next` gives some and the transaction has time.
    ///
    /// - Parameters:
    ///   - operations: all of them are applied; the operations that `next` gives are appended.
    ///   - isolating: whether an operation that finds a damaged row is rolled back and refused, instead of failing
    ///     the transaction.
    func apply<Writer: SlicedWriter>(
        _ operations: inout [Writer.Operation],
        taking next: (_ isLong: Bool) -> Writer.Operation?,
        isolating: Bool,
        with writer: inout Writer,
        in db: Database
    ) throws -> [Writer.Outcome] {
        var outcomes: [Writer.Outcome] = []
        outcomes.reserveCapacity(operations.count)
        for operation in operations {
            guard isolating else {
                outcomes.append(try writer.apply(operation))
                continue
            }
            outcomes.append(try isolated(operation, with: &writer, in: db) ?? Writer.refusedForDamage)
        }
        try writer.apply(taking: next, slice: slice, unless: isAwaited, &operations, &outcomes)
        return outcomes
    }

    /// Applies one operation, and rolls it back if it finds a damaged row.
    ///
    /// - Returns: nil if the operation found a damaged row.
    private func isolated<Writer: SlicedWriter>(
        _ operation: Writer.Operation,
        with writer: inout Writer,
        in db: Database
    ) throws -> Writer.Outcome? {
        let before = writer
        var outcome: Writer.Outcome?
        try db.inSavepoint {
            do {
                outcome = try writer.apply(operation)
                return .commit
            } catch let error as DatabaseError where StoreFailure.isDamage(error) {
                damage.found("a row needed by a commit: \(error.message ?? "no message")")
                return .rollback
            }
        }
        if outcome == nil { writer = before }
        return outcome
    }
}

/// Applies one batch of operations inside the writer's transaction.
///
/// Each operation is checked before it writes, so that a refused operation leaves nothing behind. If several operations
/// of a batch change the same row (an inbox's head, a conversation, a cursor), ``finish()`` writes the row once.
struct BatchWriter: SlicedWriter {
    typealias Operation = WriteOperation
    typealias Outcome = WriteOutcome

    let db: Database
    let now: Timestamp
    let settings: StoreSettings
    var time: TimeSlice
    /// The number of fresh rows that starts a sweep.
    let sweepRows: Int
    /// Whether fresh rows stay where they are (``SQLiteStore/takeBack(_:)``).
    private let keepsFresh: Bool
    let damage: Damage
    let statements: Statements
    var cache: WriterCache
    var dirtyInboxes: [UserID] = []
    var dirtyConversations: [ConversationID] = []
    var dirtyCursors: Set<DeviceKey> = []
    var effects = CommitEffects()
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
        sweepRows: Int,
        keepsFresh: Bool,
        damage: Damage
    ) throws {
        self.time = time
        self.sweepRows = sweepRows
        self.keepsFresh = keepsFresh
        self.damage = damage
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

    static var refusedForDamage: WriteOutcome { .refused(Damage.refusal) }

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
            statements.updateInbox.bind(Int64(inbox.use.entries), at: 4)
            statements.updateInbox.bind(Int64(inbox.use.bytes), at: 5)
            statements.updateInbox.bind(user, at: 6)
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

    /// The largest number of rows that stay fresh because of ``keepsFresh``, as a multiple of ``sweepRows``. If there
    /// are more, they are moved, and some of them may keep an expiry that is too late.
    private static let mostKept = 16

    /// Moves some fresh rows to their permanent tables, if there are many.
    private mutating func settleSlice() throws {
        guard !keepsFresh || cache.freshEntries >= Self.mostKept * sweepRows else {
            // A later sweep begins with the first row again, so that it also moves the rows that are added until then.
            cache.sweep = nil
            return
        }
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
}

/// Messages.
extension BatchWriter {
    /// Appends a message to its conversation, and to the inboxes of its recipients and its sender.
    ///
    /// Checks, in this order: whether the sender may write to the conversation (``recipients(of:)``); whether the
    /// client id is new; which inboxes have room for the message; for a 1:1 message, whether the sender's budget of
    /// unread messages has room for it (``admitted(_:for:)``). A repetition is a message with a known client id and
    /// with the same conversation and content. It gets the receipt of the first message, and is not appended again. A
    /// message with a known client id but another conversation or content is refused with `.clientIDConflict`. A
    /// group's message is not added to inboxes without room, but the heads of these inboxes still advance.
    ///
    /// Writes one row for the message, with the list of its recipients (`message`), one row for its client id
    /// (`client_id_fresh`), and one row for each inbox (`inbox_fresh`). ``finish()`` writes the heads of the inboxes
    /// and the conversation's last seq.
    mutating func append(_ append: MessageAppend) throws -> WriteOutcome {
        let draft = append.draft
        let sender = append.sender.user
        let recipients: [UserID]
        do {
            guard !append.mustBeRepetition else { throw StoreRefusals.notARepetition }
            recipients = try self.recipients(of: append)
        } catch let refusal as HermesError {
            // A repetition gets the receipt of the first message, even if the recipient has blocked the sender
            // meanwhile, or if the sender's daily budget is used up.
            guard let clientID = draft.clientID, let first = try claimed(clientID, of: sender) else { throw refusal }
            return try repetition(of: append, key: first)
        }
        let firstKey = Int64(bitPattern: append.id.high)
        if let clientID = draft.clientID, let first = try claim(clientID, of: sender, for: firstKey) {
            return try repetition(of: append, key: first)
        }

        let admission: Admission
        do {
            admission = try admitted(recipients, for: append)
        } catch let refusal as HermesError {
            try changeClaim(of: append, to: nil)
            throw refusal
        }
        let conversation = try loadConversation(draft.conversation)
        let place = Place(
            conversation: conversation.key,
            seq: conversation.lastSeq + 1,
            references: admission.taking.count
        )
        let senderSeq = listDeliveries(to: admission, from: sender)
        guard let key = try insert(append, preferring: firstKey, at: place) else {
            try changeClaim(of: append, to: nil)
            return .refused(StoreRefusals.messageIDTaken)
        }
        try advance(append)
        let deliveries = try deliver(Message(append, conversationSeq: place.seq), key: key, to: admission)
        let receipt = SendReceipt(
            messageID: append.id,
            clientID: draft.clientID,
            conversationSeq: place.seq,
            inboxSeq: senderSeq,
            sentAt: append.sentAt,
            isDuplicate: false
        )
        return .appended(receipt, deliveries: deliveries)
    }

    /// Returns the accounts whose inboxes get a message, and loads their inboxes. A group refuses senders who are not
    /// members, and muted members. While the whole group is muted, it also refuses members who are not
    /// administrators. A 1:1 conversation refuses blocked senders. If the server accepts messages only from contacts,
    /// it also refuses all other senders.
    ///
    /// - Throws: `HermesError` with the refusal, before anything is written.
    mutating func recipients(of append: MessageAppend) throws -> [UserID] {
        let sender = append.sender.user
        switch append.draft.conversation {
        case .group(let id):
            guard let group = try loadGroup(id) else { throw Group.notAMember }
            // A member whose account is being deleted has no inbox.
            return try group.recipients(ofMessageFrom: sender, now: now).filter { try loadInbox(of: $0) }
        case .direct:
            if let refusal = try refusal(of: append.recipients) { throw refusal }
            for user in append.recipients where user != sender {
                if try blocks(user, sender) { throw ContactPair.blockedByOther }
                guard append.requiresContact else { continue }
                guard try SocialReader(db: db).pair(sender, user).state == .accepted else {
                    throw ContactPair.notAContact
                }
            }
            return append.recipients
        }
    }

    /// The recipients of a message, and the room that the message takes in an inbox.
    private struct Admission {
        /// The accounts whose inboxes advance.
        let recipients: [UserID]
        /// The recipients whose inboxes have room for the message, in the order of ``recipients``.
        let taking: [UserID]
        let source: EntrySource
        let weight: Int
    }

    /// Finds the recipients that have room for a message. Throws if only the sender would get a message to others, or
    /// if too many of the sender's messages are unread.
    private mutating func admitted(_ recipients: [UserID], for append: MessageAppend) throws -> Admission {
        let sender = append.sender.user
        let source = EntrySource(append)
        let weight = InboxBudget.weight(ofContent: append.draft.content.bytes.count)
        var taking: [UserID] = []
        taking.reserveCapacity(recipients.count)
        var countable = Self.maxCounted
        for user in recipients
        where try hasRoom(in: user, from: source, by: sender, weight, countable: &countable) { taking.append(user) }
        guard !InboxBudget.reachesNobody(taking, of: recipients, from: sender) else {
            effects.inboxes.refused += 1
            throw InboxBudget.isFull
        }
        // A group's message does not count toward the sender's budget of unread messages.
        if case .direct = append.draft.conversation, let peer = recipients.first(where: { $0 != sender }) {
            let unread = self.unread[sender] + effects.unread[sender, default: 0]
            let hasRoom = try InboxBudget.leavesOthers(weight, unread: unread, of: settings.maxUnreadBytes) {
                try share(of: source, in: peer).bytes
            }
            guard hasRoom else {
                effects.inboxes.refusedUnread += 1
                throw InboxBudget.tooMuchUnread
            }
        }
        effects.inboxes.refused += recipients.count - taking.count
        return Admission(recipients: recipients, taking: taking, source: source, weight: weight)
    }

    /// Writes the list of recipients, with the seq of the message in each recipient's inbox, to ``deliveryBytes``.
    /// The message's row stores this list.
    ///
    /// - Returns: the seq that the message has in the sender's inbox; 0 if the sender is no recipient.
    private mutating func listDeliveries(to admission: Admission, from sender: UserID) -> UInt64 {
        deliveryBytes.removeAll(keepingCapacity: true)
        var senderSeq: UInt64 = 0
        var left = admission.taking[...]
        for user in admission.recipients {
            let seq = (cache.inboxes[user]?.head ?? 0) + 1
            if user == sender { senderSeq = seq }
            guard left.first == user else { continue }
            left.removeFirst()
            DeliveryList.append(user, seq, to: &deliveryBytes)
        }
        return senderSeq
    }

    /// Advances the inboxes, and adds an inserted message to those that have room for it.
    private mutating func deliver(_ message: Message, key: Int64, to admission: Admission) throws -> [InboxDelivery] {
        var deliveries: [InboxDelivery] = []
        deliveries.reserveCapacity(admission.taking.count)
        var rows: [(owner: Int64, seq: UInt64)] = []
        rows.reserveCapacity(admission.taking.count)
        var left = admission.taking[...]
        for user in admission.recipients {
            let seq = advanceInbox(of: user)
            guard left.first == user else { continue }
            left.removeFirst()
            rows.append((Int64(user.rawValue), seq))
            count(admission.weight, from: admission.source, in: user)
            let entry = InboxEntry(seq: seq, committedAt: now, event: .message(message))
            deliveries.append(InboxDelivery(user: user, entry: entry))
        }
        try statements.insertEntry.run(rows) { insert in
            insert.bind(InboxReader.messageKind, at: 1)
            insert.bind(key, at: 2)
            insert.bind(admission.source.number, at: 3)
            insert.bind(Int64(admission.weight), at: 4)
        }
        return deliveries
    }

    /// A message's place in its conversation, and the number of inboxes that get the message.
    private struct Place {
        let conversation: Int64
        let seq: UInt64
        let references: Int
    }

    /// Inserts the message's row under this key or, if the key is taken, under another one.
    ///
    /// - Returns: the key; nil if the message's id already exists, or if no key is left.
    private func insert(_ append: MessageAppend, preferring first: Int64, at place: Place) throws -> Int64? {
        if try insert(append, key: first, at: place) { return first }
        guard let free = try freeKey(for: append.id), try insert(append, key: free, at: place) else { return nil }
        try changeClaim(of: append, to: free)
        return free
    }

    /// Inserts the message's row.
    ///
    /// - Returns: false if the key is taken.
    private func insert(_ append: MessageAppend, key: Int64, at place: Place) throws -> Bool {
        let statement = statements.insertMessage
        statement.bind(key, at: 1)
        statement.bind(key &- Int64(bitPattern: append.id.high), at: 2)
        statement.bind(append.id.low, at: 3)
        statement.bind(place.conversation, at: 4)
        statement.bind(place.seq, at: 5)
        statement.bind(append.sender.user, at: 6)
        statement.bind(append.sentAt, at: 9)
        statement.bind(append.expiresAt, at: 10)
        statement.bind(now, at: 11)
        statement.bind(append.contentKept(by: settings), at: 12)
        statement.bind(Int64(place.references), at: 13)
        return try statement.bind(append.sender.device.rawValue, at: 7) {
            try statement.bind(append.draft.clientID, at: 8) {
                try statement.bind(deliveryBytes, at: 14) {
                    try statement.bind(append.draft.content.bytes, at: 15) {
                        try statement.runUnlessConflict()
                    }
                }
            }
        }
    }

    /// Counts a message in its conversation, which must be loaded.
    private mutating func advance(_ append: MessageAppend) throws {
        let id = append.draft.conversation
        let sender = append.sender.user
        change(id) { $0.append(from: sender, in: id, at: append.sentAt) }
        guard case .group(let group) = id, let lastSeq = cache.conversations[id]?.lastSeq else { return }
        statements.noteOwn.bind(lastSeq, at: 1)
        statements.noteOwn.bind(Int64(group.rawValue), at: 2)
        statements.noteOwn.bind(sender, at: 3)
        try statements.noteOwn.run()
    }
}
