// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// What ``MemoryStore`` guards: accounts with their inboxes, conversations, and the messages both refer to.
struct MemoryState {
    /// An account and everything that belongs to it alone.
    struct Record {
        var stored: StoredAccount
        var devices: [Device] = []
        var networks: [NetworkMark: Timestamp] = [:]
        var inbox = Inbox()
        /// The entry of the newest push with each collapse key.
        var collapsible: [String: UInt64] = [:]
    }

    /// An inbox: what is left of seqs 1 … head, ascending.
    struct Inbox {
        var head: UInt64 = 0
        var entries = Deque<Entry>()
        /// What ``entries`` hold, in all and by where they come from.
        private(set) var use = InboxUse()
        private(set) var shares: [EntrySource: InboxUse] = [:]

        mutating func count(_ entry: Entry) {
            use.add(entry.bytes)
            shares[entry.source, default: InboxUse()].add(entry.bytes)
        }

        mutating func uncount(_ entry: Entry) {
            use.subtract(entry.bytes)
            shares[entry.source]?.subtract(entry.bytes)
            if shares[entry.source]?.entries == 0 { shares[entry.source] = nil }
        }

        var oldest: UInt64 { entries.first?.seq ?? head + 1 }

        /// Without holes an entry stands where its seq says; holes only bring it nearer to the front.
        func firstIndex(after seq: UInt64) -> Int {
            guard seq >= oldest else { return 0 }
            var index = Int(min(seq - oldest + 1, UInt64(entries.count)))
            while index > 0, entries[index - 1].seq > seq { index -= 1 }
            return index
        }
    }

    struct Entry {
        let seq: UInt64
        let committedAt: Timestamp
        let item: Item
        var source = EntrySource.server
        /// What it counts for (``InboxBudget``).
        var bytes = 0
    }

    enum Item {
        case message(MessageID)
        case event(InboxEvent, expiresAt: Timestamp)
    }

    /// A message, what still refers to it, and how long what is left of it must stay.
    struct StoredMessage {
        var message: Message
        /// Remains when the content goes, to recognise a repetition.
        let contentHash: Int
        var hasContent = true
        /// Which entry it is in whose inbox; entries that were purged are still named.
        let deliveries: [(user: UserID, seq: UInt64)]
        /// How many inboxes still hold their entry.
        var references: Int
        /// Content stays until then although no inbox refers to it.
        let contentKeptUntil: Timestamp
        /// The record stays until then at least.
        let recordKeptUntil: Timestamp
    }

    struct Token {
        let owner: TokenOwner
        /// The newer, the higher.
        let number: UInt64
    }

    struct ClientKey: Hashable {
        let sender: UserID
        let clientID: String
    }

    let epoch: UInt64
    let settings: StoreSettings
    var capacityBytes: Int?
    var usedBytes = 0
    var records: [UserID: Record] = [:]
    var names: [String: UserID] = [:]
    var lastUser: Int32 = 0
    var tokens: [TokenHash: Token] = [:]
    var lastToken: UInt64 = 0
    var messages: [MessageID: StoredMessage] = [:]
    /// The ids of a conversation's messages that are still known, by conversation seq; and the newest seq ever.
    var conversations: [ConversationID: (lastSeq: UInt64, messages: [UInt64: MessageID])] = [:]
    var clientIDs: [ClientKey: MessageID] = [:]
    /// How far each account has read which conversation.
    var readMarks: [UserID: [ConversationID: UInt64]] = [:]
    /// What each account wants of others.
    var contacts: [UserID: [UserID: ContactRow]] = [:]
    var groups: [GroupID: Group] = [:]
    var lastGroup: Int32 = 0
    /// Pushes for many, in the order they came.
    var pushJobs: [StoredPushJob] = []
    var apiKeys: [(hash: TokenHash, key: APIKey)] = []
    var lastAPIKey: Int64 = 0
    var invitations: [(hash: TokenHash, invitation: Invitation)] = []
    var lastInvitation: Int64 = 0
    var pushClaims: [PushClaimKey: StoredPushClaim] = [:]
    var durable: [DurableSessionID: Session] = [:]
    var durableKeys: [SessionKey: DurableSessionID] = [:]
    var lastDurable: Int64 = 0
    var retained: [TopicName: StoredPublication] = [:]
    var pushRows: [UserID: [DeviceID: PushRow]] = [:]
    var webhooks = WebhookQueue()
    /// What waits of each account's 1:1 messages in the inboxes of others, in bytes.
    var unread: [UserID: Int] = [:]

    init(epoch: UInt64, settings: StoreSettings) {
        self.epoch = epoch
        self.settings = settings
    }

    func checkRoom(for bytes: Int) throws(HermesError) {
        guard let capacityBytes, usedBytes + bytes >= capacityBytes else { return }
        throw HermesError(.storageUnavailable, "The memory store is full. Raise its capacity.", retryAfter: .seconds(1))
    }

    static let noSuchAccount = HermesError(.notFound, "There is no such account.")
}
