// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Stores inboxes, conversations and cursors. Batch-shaped: the core groups what many connections ask for into one
/// commit (``GroupCommitter``), so that a commit's cost is shared.
///
/// Implementations: `Memory/MemoryStore` (the executable specification) and HermesSQLite. Both pass
/// `MessageStoreConformance` of HermesTestKit.
package protocol MessageStore: Sendable {
    /// Applies all operations in order in one transaction; when it returns, all are durable.
    ///
    /// Called by one thread at a time, off the event loops; may block. An operation that is refused (outcome
    /// `.refused`) changes nothing and does not disturb the others.
    /// - Throws: ``HermesError`` with `.storageUnavailable`; then nothing of the batch was applied.
    func commit(_ operations: [WriteOperation], now: Timestamp) throws(HermesError) -> [WriteOutcome]

    /// Reads up to `limit` entries behind `seq`. Sees everything committed before the call.
    ///
    /// A page may be shorter than `limit` (``StoreSettings/maxPageEntries``, ``StoreSettings/maxPageBytes``): the inbox
    /// ends where its last entry reaches ``InboxPosition/head``. The store has no clock: what has expired is given
    /// until ``purge(now:limit:)`` removes it. Names of senders are today's.
    func entries(of user: UserID, after seq: UInt64, limit: Int) async throws(HermesError) -> InboxPage

    /// Where the inbox stands.
    func position(of user: UserID) async throws(HermesError) -> InboxPosition

    /// Reads stored messages of a conversation with a conversation seq below `before` (nil: the newest), ascending.
    /// Only what history keeps (``StoreSettings/historyPeriod``): nothing while it is off, what waits for a device comes
    /// through the inbox. Recalled messages are among them, empty.
    func history(
        of conversation: ConversationID,
        before seq: UInt64?,
        limit: Int
    ) async throws(HermesError) -> [Message]

    /// The pushes for many that are accepted and not with all of them yet, in the order they came.
    func pushJobs() async throws(HermesError) -> [MessageID]

    /// The accounts whose deletion has begun and is not done (``WriteOperation/deleteAccount(_:)``).
    func deletions() async throws(HermesError) -> [UserID]

    /// Deletes entries that every registered device has acknowledged or that have expired, the content of messages
    /// that no inbox refers to and history does not keep, and in the end the records of such messages
    /// (``StoreSettings/recordPeriod``), and claims of pushes whose time is over; a bounded amount per call. An account without devices keeps its entries until
    /// they expire.
    /// - Returns: how many rows were dealt with; 0 when there is nothing left to do.
    func purge(now: Timestamp, limit: Int) async throws(HermesError) -> Int

    /// Has deleted content leave the files, and gives free space back: a bounded amount per call. To be called about once a
    /// second.
    /// - Parameter uptime: of a clock that never jumps.
    func maintain(uptime: Duration) async throws(HermesError)

    /// Writes a consistent copy of the whole store to a new file at `path` while work goes on.
    /// - Throws: `.invalidArgument` if there is a file already, `.unsupported` if the store has no files,
    ///   `.storageUnavailable`.
    func backup(to path: String) async throws(HermesError)
}

extension MessageStore {
    /// For stores that delete at once.
    package func deletions() async throws(HermesError) -> [UserID] { [] }

    /// For stores without files.
    package func maintain(uptime: Duration) async throws(HermesError) {}
}

/// One change in a commit.
package enum WriteOperation: Sendable {
    /// Appends a message to its conversation and an entry to the inbox of each recipient (the sender among them).
    /// Refused (`.forbidden`) where the 1:1 receiver blocks the sender, or the sender may not talk in the group.
    case append(MessageAppend)
    /// Notes how far somebody has read a conversation, and appends ``InboxEvent/readMark(_:by:upTo:)`` (`.eventAppended`) to
    /// its own inbox and, in a 1:1 conversation, to the other's, unless one of the two blocks the other.
    ///
    /// A mark beyond the conversation's last message is one at that; one that is not ahead of the reader's last appends
    /// nothing (`.eventAppended([])`): there are never more marks than messages. Refused (`.forbidden`) if the reader takes
    /// no part.
    case markRead(ConversationID, by: UserID, upTo: UInt64)
    /// Moves a device's cursor forward; a seq that is not ahead of it, or beyond the head, is clamped.
    case acknowledge(UserID, DeviceID, upTo: UInt64)
    /// Empties a message that `by` sent not before `notBefore`, and appends ``InboxEvent/recalled(_:_:conversationSeq:by:)``
    /// to all its recipients. Of a message that is recalled already, it changes nothing (`.eventAppended([])`).
    /// In a group, `by` must be a member still.
    case recall(MessageID, ConversationID, by: UserID, notBefore: Timestamp)
    /// Applies ``ContactPair`` and appends the event to the peer's inbox where there is one (`.eventAppended`).
    case contact(ContactCommand, by: Principal, peer: UserID, message: String)
    /// Applies the rules of ``Group`` and appends its notices (`.groupChanged`). Somebody who blocks `by` cannot be added.
    case group(GroupCommand, by: UserID)
    /// Appends pushes (`.pushed`).
    case push(PushOperation)
    /// Deletes an account and all that is its own: devices, tokens, push tokens, inbox, contacts, memberships, MQTT sessions
    /// under its name. Groups and contacts are told. Its name is free then, its number never is; what others have of its
    /// messages stays. Refused (`.notFound`) where there is none.
    ///
    /// One commit does a bounded amount (`.deleted`); the same operation again goes on. From the first on nobody finds the
    /// account, and it gets nothing more; its name is not free before the last. See ``MessageStore/deletions()``.
    case deleteAccount(UserID)
    /// Registers the device if it is new (its cursor starts before the account's oldest stored entry), else renews its
    /// description and `lastSeenAt`; and stores a token for it if one is given (`.deviceOpened`). Of a device's tokens only the
    /// newest are kept (``StoreSettings/maxTokensPerDevice``). Refused as ``DeviceOpening/check(known:count:)`` says.
    case openDevice(DeviceOpening)
}

/// A message that is to be appended: a draft, completed by the core.
package struct MessageAppend: Sendable {
    package let id: MessageID
    package let draft: MessageDraft
    package let sender: Principal
    package let sentAt: Timestamp
    package let expiresAt: Timestamp
    /// Whose inboxes get an entry: each once, the sender first. Empty for a group: those who are members at the commit.
    package let recipients: [UserID]
    /// Refused unless the 1:1 receiver is a contact.
    package let requiresContact: Bool

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

/// What became of one operation.
package enum WriteOutcome: Sendable {
    /// Appended. Deliveries: the entry as it stands in each recipient's inbox.
    case appended(SendReceipt, deliveries: [InboxDelivery])
    /// The sender had sent this client id with this content before: the first receipt, marked as duplicate.
    case duplicate(SendReceipt)
    /// An event was appended.
    case eventAppended([InboxDelivery])
    /// A group after a change, without members if it was dissolved.
    case groupChanged(Group, deliveries: [InboxDelivery])
    /// Pushes were appended, or had been before.
    case pushed(PushOutcome)
    /// An account is deleted, or (not done) a part of what is its own.
    case deleted([InboxDelivery], isDone: Bool)
    /// The cursor after an acknowledgement.
    case acknowledged(UInt64)
    /// A device after it was opened.
    case deviceOpened(Device)
    /// Nothing was changed: `.notFound` (no such recipient, device, message), `.clientIDConflict`, `.forbidden`,
    /// `.invalidArgument`.
    case refused(HermesError)
}

/// An entry and whose it is.
package struct InboxDelivery: Sendable {
    package let user: UserID
    package let entry: InboxEntry

    package init(user: UserID, entry: InboxEntry) {
        self.user = user
        self.entry = entry
    }
}
