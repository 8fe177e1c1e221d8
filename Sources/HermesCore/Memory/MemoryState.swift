// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The state of ``MemoryStore``: accounts with their inboxes, conversations with their messages, and everything else
/// that is stored.
struct MemoryState {
    /// An account, and everything that belongs only to this account.
    struct Record {
        var stored: StoredAccount
        var devices: [Device] = []
        var networks: [NetworkMark: Timestamp] = [:]
        var inbox = Inbox()
        /// The seq of the newest push with each collapse name (``Push/collapseName``).
        var collapsible: [String: UInt64] = [:]
    }

    /// An inbox. It contains the remaining entries with seqs from 1 to `head`, in ascending order.
    struct Inbox {
        var head: UInt64 = 0
        /// The last seq that no device waits for any more.
        var acknowledged: UInt64 = 0
        var entries = Deque<Entry>()
        /// The number of all ``entries``, and their size in bytes.
        private(set) var use = Holding()
        /// The number of the ``entries`` and their size in bytes, by source.
        private(set) var shares: [EntrySource: Holding] = [:]

        mutating func count(_ entry: Entry) {
            use.add(entry.bytes)
            for source in Set([entry.source, entry.source.whole]) {
                shares[source, default: Holding()].add(entry.bytes)
            }
        }

        mutating func uncount(_ entry: Entry) {
            use.subtract(entry.bytes)
            for source in Set([entry.source, entry.source.whole]) {
                shares[source]?.subtract(entry.bytes)
                if shares[source]?.entries == 0 { shares[source] = nil }
            }
        }

        var oldest: UInt64 { entries.first?.seq ?? head + 1 }

        /// Returns the index of the first entry after a seq. If there are no holes, the index follows from the seq. If
        /// there are holes, the index may be smaller.
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
        /// The number of bytes that are counted for the entry (``InboxBudget``).
        var bytes = 0
    }

    enum Item {
        case message(MessageID)
        case event(InboxEvent, expiresAt: Timestamp)
    }

    /// A message, its references, and the times until which its parts must stay.
    struct StoredMessage {
        var message: Message
        /// A hash of the content. The hash outlives the content, so that a repetition is recognized.
        let contentHash: Int
        var hasContent = true
        /// The inbox entries of the message, including those that were purged.
        let deliveries: [(user: UserID, seq: UInt64)]
        /// The number of inboxes that still have their entry of the message.
        var references: Int
        /// The content stays until this time even without references.
        var contentKeptUntil: Timestamp
        /// The record stays at least until this time.
        var recordKeptUntil: Timestamp
    }

    struct Conversation {
        /// The newest conversation seq so far, and the time at which its message was sent.
        var lastSeq: UInt64 = 0
        var lastAt: Timestamp?
        /// The known message ids by conversation seq.
        var messages: [UInt64: MessageID] = [:]
        var recalled = RecentSeqs()
        /// The conversation seqs of each sender's messages.
        var own: [UserID: RecentSeqs] = [:]
    }

    struct Token {
        let owner: TokenOwner
        let issuedAt: Timestamp
        /// The number of the token. A newer token has a larger number.
        let number: UInt64
    }

    /// The sender of a message and the message's client id. Client ids are compared byte by byte.
    struct ClientKey: Hashable {
        let sender: UserID
        let clientID: String

        static func == (left: Self, right: Self) -> Bool {
            left.sender == right.sender && left.clientID.hasBytes(of: right.clientID)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(sender)
            clientID.hashBytes(into: &hasher)
        }
    }

    let epoch: UInt64
    let settings: StoreSettings
    var capacityBytes: Int?
    var usedBytes = 0
    var records: [UserID: Record] = [:]
    var names: [String: UserID] = [:]
    /// The former names that are not free yet. The value is the account that had the name.
    var keptNames: [String: UserID] = [:]
    var lastUser: Int32 = 0
    var tokens: [TokenHash: Token] = [:]
    var lastToken: UInt64 = 0
    var messages: [MessageID: StoredMessage] = [:]
    var conversations: [ConversationID: Conversation] = [:]
    var clientIDs: [ClientKey: MessageID] = [:]
    /// The conversation seq up to which each account has read each conversation.
    var readMarks: [UserID: [ConversationID: UInt64]] = [:]
    /// The contact rows of each account.
    var contacts: [UserID: [UserID: ContactRow]] = [:]
    var groups: [GroupID: Group] = [:]
    var lastGroup: Int32 = 0
    /// Pushes to many accounts, in order of arrival.
    var pushJobs: [StoredPushJob] = []
    var apiKeys = NamedSecrets<APIKey>()
    var invitations = NamedSecrets<Invitation>()
    var administrators = MemoryAdministrators()
    var pushClaims: [PushClaimKey: StoredPushClaim] = [:]
    var durable: [DurableSessionID: Session] = [:]
    var durableKeys: [SessionKey: DurableSessionID] = [:]
    var lastDurable: Int64 = 0
    var retained: [TopicName: StoredPublication] = [:]
    var pushRows: [UserID: [DeviceID: PushRow]] = [:]
    var webhooks = WebhookQueue()
    /// The nodes on which devices are connected, if several nodes share the store.
    var places = MemoryPlaces()
    /// The wills of the clients of several nodes.
    var wills: [WillID: HeldWill] = [:]
    /// The bytes of each account's unread 1:1 messages in the inboxes of other accounts.
    var unread: [UserID: Int] = [:]
    let queues: QueueBudget
    let inboxes = InboxLedger()
    var clockJumps = ClockJumps()

    init(epoch: UInt64, settings: StoreSettings) {
        self.epoch = epoch
        self.settings = settings
        queues = QueueBudget(settings)
    }

    func checkRoom(for bytes: Int) throws(HermesError) {
        guard let capacityBytes, usedBytes + bytes >= capacityBytes else { return }
        throw HermesError(.storageUnavailable, "The memory store is full. Raise its capacity.", retryAfter: .seconds(1))
    }
}
