// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The retention times and limits of stores. They are the same for every store.
package struct StoreSettings: Sendable, Hashable {
    /// The values that are settings of the store itself and of the inboxes in it. The other values follow from other
    /// groups of settings.
    package struct Own: Sendable, Hashable {
        /// The time for which the content of a message is kept for ``MessageStore/history(of:before:limit:)`` after the
        /// message was sent, whether it was delivered or not. If the time is zero, history is off: content is deleted
        /// when no inbox refers to it any more. The period that is set when a message is sent applies to this message.
        /// A message with its own expiry is deleted when it expires.
        package var historyPeriod = Duration.zero
        /// The limits of one inbox.
        package var inbox = InboxBudget()
        /// The largest number of bytes that the unread 1:1 messages from one account may have in all inboxes together.
        package var maxUnreadBytes = 128 << 20
        /// The largest number of groups that one account may be in.
        package var maxGroups = 1_000

        package init() {}
    }

    /// The values that are settings of the store itself.
    package var own: Own
    /// The minimum time for which the record of a message stays after the message was sent, even if its content is
    /// deleted. During this time, a repetition is recognized, and the message can be recalled.
    package var recordPeriod: Duration
    /// The time for which an entry that is not a message waits for devices that do not fetch it.
    package var eventPeriod: Duration
    /// The largest number of publications that may wait for one durable session. Unacknowledged publications count,
    /// too. Further publications are dropped.
    package var maxQueuedMessages: Int
    /// The largest number of bytes that may wait for one durable session (``StoredPublication/weight``).
    package var maxQueuedBytes: Int
    /// The largest number of publications that may wait in the queues of all durable sessions together.
    package var queuedMessages: SharedLimit
    /// The largest total size of the publications that may wait in the queues of all durable sessions together, in
    /// bytes.
    package var queuedBytes: SharedLimit

    /// Creates the settings from all their values, so that the caller forgets none.
    package init(
        _ own: Own,
        recordPeriod: Duration,
        eventPeriod: Duration,
        maxQueuedMessages: Int,
        maxQueuedBytes: Int,
        queuedMessages: SharedLimit,
        queuedBytes: SharedLimit
    ) {
        self.own = own
        self.own.maxUnreadBytes = max(1, own.maxUnreadBytes)
        self.own.maxGroups = max(1, own.maxGroups)
        self.recordPeriod = recordPeriod
        self.eventPeriod = eventPeriod
        self.maxQueuedMessages = max(1, maxQueuedMessages)
        self.maxQueuedBytes = max(1, maxQueuedBytes)
        self.queuedMessages = queuedMessages
        self.queuedBytes = queuedBytes
    }

    /// Creates the settings of a store without a configuration, for tests and measurements.
    package init(
        historyPeriod: Duration = Own().historyPeriod,
        recordPeriod: Duration = MessageSettings.storedPeriod,
        eventPeriod: Duration = .seconds(30 * 24 * 3600),
        maxQueuedMessages: Int = 100_000,
        maxQueuedBytes: Int = 64 << 20,
        queuedMessages: SharedLimit = SharedLimit(100_000_000),
        queuedBytes: SharedLimit = SharedLimit(16 << 30),
        inbox: InboxBudget = Own().inbox,
        maxUnreadBytes: Int = Own().maxUnreadBytes,
        maxGroups: Int = Own().maxGroups
    ) {
        var own = Own()
        own.historyPeriod = historyPeriod
        own.inbox = inbox
        own.maxUnreadBytes = maxUnreadBytes
        own.maxGroups = maxGroups
        self.init(
            own,
            recordPeriod: recordPeriod,
            eventPeriod: eventPeriod,
            maxQueuedMessages: maxQueuedMessages,
            maxQueuedBytes: maxQueuedBytes,
            queuedMessages: queuedMessages,
            queuedBytes: queuedBytes
        )
    }

    /// The values of ``own``, for short.
    package var historyPeriod: Duration { own.historyPeriod }
    package var maxGroups: Int { own.maxGroups }

    package var inbox: InboxBudget {
        get { own.inbox }
        set { own.inbox = newValue }
    }

    package var maxUnreadBytes: Int {
        get { own.maxUnreadBytes }
        set { own.maxUnreadBytes = newValue }
    }

    /// The largest number of tokens that one device may have. A further token revokes the oldest token.
    package static let maxTokensPerDevice = 5
    /// The largest number of networks that are remembered for one account.
    package static let maxNetworksPerAccount = 32
    /// The time for which a network is remembered after the last login from it.
    package static let networkPeriod = Duration.seconds(90 * 86_400)

    /// The largest number of entries or messages that one page may have, whatever limit the caller asks for.
    package static let maxPageEntries = 1000

    /// Returns the number of entries or messages that one page may have if the caller asks for `limit`.
    package static func pageLimit(_ limit: Int) -> Int { min(max(limit, 0), maxPageEntries) }

    /// The largest number of accounts, devices, groups or sessions that one search by name looks at.
    package static let maxSearched = 200_000
    /// The size limit of a page's content, in bytes. The entry with which a page reaches this size is the page's last
    /// entry.
    package static let maxPageBytes = 4 * 1024 * 1024
}

extension StoreSettings.Own: SettingFields {
    private static let day = Duration.seconds(86_400)

    private var historyDays: Int {
        get { Int(historyPeriod / Self.day) }
        set { historyPeriod = Self.day * newValue }
    }

    package static let fields: [SettingField<Self>] = [
        .number(
            \.historyDays,
            "store.historyDays",
            in: 0...3650,
            "The number of days for which a message stays readable after it was sent, even if every device has "
                + "acknowledged it. With 0, a message is deleted when every device has acknowledged it."
        ),
        .byteCount(
            \.maxUnreadBytes,
            "limits.unreadPerAccount",
            in: (8 << 20)...(1 << 40),
            "The largest total size of one account's unread messages in the inboxes of others. Messages to groups do "
                + "not count. When half is used, a further message is accepted only in two cases: it is the account's "
                + "only unread message in the recipient's inbox, or the account's unread messages in that inbox take "
                + "at most a 64th of the limit."
        ),
        .number(
            \.maxGroups,
            "accounts.groups",
            in: 1...100_000,
            "The largest number of groups that an account may be in. Accounts that are not its contacts can add it to "
                + "a group only while it is in fewer groups than half of this number."
        ),
        .group(\.inbox),
    ]
}

extension StoreSettings {
    /// Throws an error if an account may not be added to a group because the account is already in `count` groups.
    ///
    /// - Parameter caller: the relation between this account and the account that adds it to the group. For a stranger,
    ///   the limit is half as high. The other half is kept for contacts and for the account itself.
    package func checkGroups(_ count: Int, addedBy caller: GroupCaller) throws(HermesError) {
        let limit = caller == .stranger ? maxGroups / 2 : maxGroups
        guard count >= limit else { return }
        throw HermesError(
            .tooLarge,
            caller == .itself
                ? "You are in \(limit) groups, which is the limit. Leave one first."
                : "One of these people is in \(limit) groups"
                    + (caller == .stranger ? "; strangers cannot add this person to more." : ", which is the limit.")
        )
    }
}

/// The relation between an account that is added to a group and the account that adds it.
package enum GroupCaller: Sendable, Hashable {
    case itself
    case contact
    case stranger
}

extension MessageAppend {
    /// Returns the time until which the content must stay even if no inbox refers to it.
    package func contentKept(by settings: StoreSettings) -> Timestamp {
        guard settings.historyPeriod > .zero else { return Timestamp(rawValue: 0) }
        let end = sentAt.advanced(by: settings.historyPeriod)
        return draft.expiresAfter == nil ? end : min(end, expiresAt)
    }
}
