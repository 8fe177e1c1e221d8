// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores inboxes, conversations and cursors. Works in batches: the core groups the operations of many connections into
/// one commit (``InboxCommitter``), so that the operations share the cost of the commit.
///
/// Implementations: `Memory/MemoryStore` (the executable specification) and HermesSQLite. Both pass
/// `MessageStoreConformance` of HermesTestKit.
package protocol MessageStore: Sendable {
    /// Applies all operations in order in one transaction. When the call returns, all operations are durable.
    ///
    /// In each process, only one thread calls this at a time, and never on an event loop. The call may block. A store
    /// that only one process uses can rely on one call at a time. The memory store does not rely on this, because
    /// several instances of the core can share one memory store. An operation that is refused (outcome `.refused`)
    /// changes nothing and does not affect the other operations.
    /// - Throws: ``HermesError`` with `.storageUnavailable`. Then no operation of the batch was applied.
    func commit(_ operations: [WriteOperation], now: Timestamp) throws(HermesError) -> [WriteOutcome]

    /// Applies operations like ``commit(_:now:)``, but takes them while the transaction runs. As many operations are
    /// taken as fit into a short transaction.
    ///
    /// - Parameter next: returns the next operation, or nil if the transaction is to end. Its argument is false until
    ///   the transaction has used its usual time; after that, the argument is true. The transaction can also end
    ///   earlier, but only after at least one operation was taken.
    /// - Returns: an outcome for each operation that was taken.
    func commit(taking next: (_ isLong: Bool) -> WriteOperation?, now: Timestamp) throws(HermesError) -> [WriteOutcome]

    /// Reads up to `limit` entries after `seq`. Sees everything that was committed before the call.
    ///
    /// A page may be shorter than `limit` (``StoreSettings/maxPageEntries``, ``StoreSettings/maxPageBytes``). A page is
    /// the last page if its last entry reaches ``InboxPosition/head``. The store has no clock, so it returns expired
    /// entries until ``purge(now:limit:)`` deletes them. The names of senders are their present names.
    func entries(of user: UserID, after seq: UInt64, limit: Int) async throws(HermesError) -> InboxPage

    /// Returns the position of a user's inbox.
    func position(of user: UserID) async throws(HermesError) -> InboxPosition

    /// Reads stored messages of a conversation, in ascending order.
    ///
    /// Returns only messages that history keeps (``StoreSettings/historyPeriod``). Returns nothing while history is
    /// off, because waiting messages arrive through the inbox. Recalled messages are included, without content.
    ///
    /// One read skips at most ``HistoryQuery/maxPassed`` messages. If a read must skip more messages, the read ends,
    /// and the result says where the next read continues.
    func history(_ query: HistoryQuery) async throws(HermesError) -> StoredHistory

    /// Reads the conversations of an account after `place`, or the first conversations if `place` is nil. The
    /// conversations are the 1:1 conversations with messages, and the groups that the account is a member of. They have
    /// the order of ``ConversationPlace``. The cost depends only on `limit`, not on the number of messages or waiting
    /// entries.
    ///
    /// - Returns: at most `limit` conversations, and at most ``StoreSettings/maxPageEntries``. Only the last page has
    ///   fewer conversations.
    func conversations(
        of user: UserID,
        after place: ConversationPlace?,
        limit: Int
    ) async throws(HermesError) -> [ConversationSummary]

    /// Returns the incomplete pushes to many accounts, in the order in which they were accepted.
    func pushJobs() async throws(HermesError) -> [MessageID]

    /// Returns the accounts whose deletion has begun and is not complete (``WriteOperation/deleteAccount(_:)``).
    func deletions() async throws(HermesError) -> [UserID]

    /// Deletes a bounded amount per call:
    /// - entries that have expired, or that every registered device has acknowledged. An account without devices keeps
    ///   its entries until they expire.
    /// - the content of messages that no inbox refers to and that history does not keep, and finally the records of
    ///   such messages (``StoreSettings/recordPeriod``).
    /// - expired claims of pushes.
    ///
    /// - Returns: the number of rows that were handled; 0 if nothing is left to do.
    func purge(now: Timestamp, limit: Int) async throws(HermesError) -> Int

    /// Remembers a jump of the clock. From then on, entries, messages and records that were stored before the jump
    /// expire later by the jump's length, and ``entries(of:after:limit:)`` returns their corrected expiry. Returns when
    /// the jump is durable.
    func record(_ jump: ClockJump) async throws(HermesError)

    /// Undoes the earlier jump that a step back of the clock shows to be wrong (``ClockSetback/undoes(_:)``). The store
    /// forgets the jump, and corrects the times of everything that was stored after the jump. If there was no such
    /// jump, the call has no effect.
    func takeBack(_ setback: ClockSetback) async throws(HermesError)

    /// Removes deleted content from the files, and returns free space to the file system. Each call handles a bounded
    /// amount. It is called about once a second.
    /// - Parameter uptime: the time of a clock that never jumps.
    func maintain(uptime: Duration) async throws(HermesError)

    /// Writes a consistent copy of the whole store to a new file at `path` while work continues.
    /// - Returns: the number of accounts in the copy; nil if damage prevents counting them.
    /// - Throws: `.invalidArgument` if the file exists, `.unsupported` if the store has no files,
    ///   `.storageUnavailable`.
    @discardableResult
    func backup(to path: String) async throws(HermesError) -> Int?

    /// The counts of the entries in all inboxes together. They are cheap to read.
    var inboxes: InboxLedger { get }
}

extension MessageStore {
    /// The default implementation, for stores without long transactions.
    package func commit(
        taking next: (_ isLong: Bool) -> WriteOperation?,
        now: Timestamp
    ) throws(HermesError) -> [WriteOutcome] {
        var operations: [WriteOperation] = []
        while let operation = next(false) { operations.append(operation) }
        return try commit(operations, now: now)
    }

    /// The default implementation, for stores without times.
    package func record(_ jump: ClockJump) async throws(HermesError) {}

    /// The default implementation, for stores without times.
    package func takeBack(_ setback: ClockSetback) async throws(HermesError) {}

    /// The default implementation, for stores that delete at once.
    package func deletions() async throws(HermesError) -> [UserID] { [] }

    /// The default implementation, for stores without files.
    package func maintain(uptime: Duration) async throws(HermesError) {}
}

/// One change in a commit.
package enum WriteOperation: Sendable {
    /// Appends a message to its conversation and an entry to the inbox of each recipient (the sender included). The
    /// operation is refused (`.forbidden`) if the 1:1 receiver blocks the sender, or if the sender may not write in the
    /// group.
    case append(MessageAppend)
    /// Records a read mark, and appends ``InboxEvent/readMark(_:)`` (`.eventAppended`) to the reader's own inbox. In a
    /// 1:1 conversation, the event is also appended to the other account's inbox, unless one of the two accounts blocks
    /// the other.
    ///
    /// A mark beyond the conversation's last message is reduced to this message. A mark is appended only if it is ahead
    /// of the reader's last mark, so there are never more marks than messages. Otherwise, the outcome is
    /// `.eventAppended([])`. The operation is refused (`.forbidden`) if the reader does not take part in the
    /// conversation.
    case markRead(ConversationID, by: UserID, upTo: UInt64)
    /// Moves a device's cursor forward. A seq that is below the cursor or beyond the head is clamped.
    ///
    /// - Parameter isProven: whether the connection has proved that it belongs to the device. Once the device has shown
    ///   a proof, the operation moves the cursor only if this is true.
    case acknowledge(UserID, DeviceID, upTo: UInt64, isProven: Bool = true)
    /// Empties a message that `by` sent at `notBefore` or later, and appends ``InboxEvent/recalled(_:)`` for all
    /// recipients of the message. Changes nothing if the message is recalled already (`.eventAppended([])`). In a
    /// group, `by` must still be a member.
    case recall(MessageID, ConversationID, by: UserID, notBefore: Timestamp)
    /// Applies the rules of ``ContactPair``. If there is an event, appends it to the peer's inbox (`.eventAppended`).
    case contact(ContactCommand, by: Principal, peer: UserID, message: String)
    /// Applies the rules of ``Group`` and appends its notices (`.groupChanged`). An account that blocks `by` cannot be
    /// added. If `requiresContacts` is true, an account can be added only by a contact.
    case group(GroupCommand, by: UserID, requiresContacts: Bool = false)
    /// Appends pushes (`.pushed`).
    case push(PushOperation)
    /// Deletes an account and everything that belongs only to this account: devices, tokens, push tokens, inbox,
    /// contacts, memberships, and MQTT sessions under its name. Notifies groups and contacts. The account's number is
    /// never reused, and its messages to other accounts stay. Nobody can take the account's name until the name is
    /// freed (``AccountStore/keptNames()``). The operation is refused (`.notFound`) if there is no such account.
    ///
    /// One commit deletes a bounded amount (`.deleted`). Repeat the operation to continue. After the first commit, the
    /// account can no longer be found, and it gets no more entries. See ``MessageStore/deletions()``.
    case deleteAccount(UserID)
    /// Registers a new device, whose cursor starts before the account's oldest stored entry. For a known device, renews
    /// the description and `lastSeenAt`. If a token is given, stores it for the device. The outcome is `.deviceOpened`.
    /// Only the newest tokens of a device are kept (``StoreSettings/maxTokensPerDevice``).
    /// ``DeviceOpening/check(known:count:password:isTokenKnown:)`` decides whether the operation is refused.
    case openDevice(DeviceOpening)
}

/// A message to be appended: a draft, completed by the core.
package struct MessageAppend: Sendable {
    package let id: MessageID
    package let draft: MessageDraft
    package let sender: Principal
    package let sentAt: Timestamp
    package let expiresAt: Timestamp
    /// The accounts whose inboxes get an entry. Each account is listed once, and the sender is the first. For a group,
    /// the list is empty: then the group's members at the time of the commit get an entry.
    package let recipients: [UserID]
    /// Whether the message is refused if the 1:1 receiver is not a contact.
    package let requiresContact: Bool
    /// Whether the message is refused with ``StoreRefusals/notARepetition`` if the sender has not sent it before.
    package var mustBeRepetition = false

    package init(
        id: MessageID,
        draft: MessageDraft,
        sender: Principal,
        sentAt: Timestamp,
        expiresAt: Timestamp,
        recipients: [UserID],
        requiresContact: Bool = false
    ) {
        self.id = id
        self.draft = draft
        self.sender = sender
        self.sentAt = sentAt
        self.expiresAt = expiresAt
        self.recipients = recipients
        self.requiresContact = requiresContact
    }
}

extension Message {
    /// The message that an append adds to its conversation.
    package init(_ append: MessageAppend, conversationSeq: UInt64) {
        self.init(
            id: append.id,
            conversation: append.draft.conversation,
            conversationSeq: conversationSeq,
            sender: append.sender.user,
            senderName: append.sender.nickName.rawValue,
            senderDevice: append.sender.device,
            clientID: append.draft.clientID,
            content: append.draft.content,
            sentAt: append.sentAt,
            expiresAt: append.expiresAt
        )
    }
}

/// The outcome of one operation.
package enum WriteOutcome: Sendable {
    /// A message was appended. The deliveries are the entries in the recipients' inboxes.
    case appended(SendReceipt, deliveries: [InboxDelivery])
    /// The sender had already sent this content under this client id. The receipt is the receipt of the first message,
    /// marked as a duplicate.
    case duplicate(SendReceipt)
    /// An event was appended.
    case eventAppended([InboxDelivery])
    /// A group after a change. If it was dissolved, it has no members.
    case groupChanged(Group, deliveries: [InboxDelivery])
    /// Pushes were appended, or had already been appended.
    case pushed(PushOutcome)
    /// An account was deleted. If `isDone` is false, only a part of the account was deleted.
    case deleted([InboxDelivery], isDone: Bool)
    /// The cursor after an acknowledgement.
    case acknowledged(UInt64)
    /// A device after it was opened.
    case deviceOpened(Device)
    /// Nothing was changed. The error is, for example, `.notFound` (there is no such recipient, device or message),
    /// `.clientIDConflict`, `.forbidden` or `.invalidArgument`.
    case refused(HermesError)

    /// The entries that the operation put into inboxes.
    package var deliveries: [InboxDelivery] {
        switch self {
        case .appended(_, let deliveries), .eventAppended(let deliveries), .groupChanged(_, let deliveries),
            .deleted(let deliveries, _):
            deliveries
        case .pushed(let outcome): outcome.deliveries
        case .duplicate, .acknowledged, .deviceOpened, .refused: []
        }
    }
}

extension MessageStore {
    package var inboxes: InboxLedger { InboxLedger() }
}

/// The part of a conversation's history to read.
package struct HistoryQuery: Sendable {
    package let conversation: ConversationID
    /// The conversation seq above which messages are read.
    package let after: UInt64
    /// The conversation seq below which messages are read; nil to read up to the newest message.
    package let before: UInt64?
    /// The largest number of messages that the read may return; at most ``StoreSettings/maxPageEntries``.
    package let limit: Int
    /// The size limit of the page's contents, in bytes; at most ``StoreSettings/maxPageBytes``. The message that
    /// reaches this size is the last message of the page.
    package let maxBytes: Int
    /// The time by which the store decides which messages are too old for the history. Such messages are left out even
    /// before they are purged. If the time is nil, they are included until they are purged.
    package let time: ExpiryTime?
    /// The largest number of messages that the read may skip; at least 1.
    package let maxPassed: Int

    package init(
        of conversation: ConversationID,
        after: UInt64 = 0,
        before: UInt64? = nil,
        limit: Int,
        maxBytes: Int = .max,
        unexpiredAt time: ExpiryTime? = nil,
        maxPassed: Int = StoreSettings.maxPageEntries
    ) {
        self.conversation = conversation
        self.after = after
        self.before = before
        self.limit = StoreSettings.pageLimit(limit)
        self.maxBytes = min(maxBytes, StoreSettings.maxPageBytes)
        self.time = time
        self.maxPassed = max(1, maxPassed)
    }
}

/// The part of a conversation's history that one read has found.
package struct StoredHistory: Sendable, Hashable {
    /// The messages, in ascending order of their conversation seqs.
    package let messages: [Message]
    /// The number of messages that were skipped, because they are too old or damaged.
    package let passed: Int
    /// The conversation seq below which the next read continues, if this read ended because it had skipped
    /// ``HistoryQuery/maxPassed`` messages; otherwise nil.
    package let next: UInt64?

    package init(messages: [Message], passed: Int, next: UInt64?) {
        self.messages = messages
        self.passed = passed
        self.next = next
    }
}

/// An entry and its recipient.
package struct InboxDelivery: Sendable {
    package let user: UserID
    package let entry: InboxEntry
    /// The nodes to which a device of the user was connected when the entry was committed (``PlaceStore``); empty if
    /// only one process uses the store.
    package let nodes: NodeSet

    package init(user: UserID, entry: InboxEntry, nodes: NodeSet = NodeSet()) {
        self.user = user
        self.entry = entry
        self.nodes = nodes
    }
}
