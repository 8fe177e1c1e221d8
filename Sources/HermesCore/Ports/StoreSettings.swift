// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The retention times and limits of stores, which are the same for every store.
package struct StoreSettings: Sendable, Hashable {
    /// How long the content of a message is kept for ``MessageStore/history(of:before:limit:)`` after it was sent,
    /// whether delivered or not. Zero: history is off, and content is deleted when no inbox refers to it any more. For
    /// each message, the period that is set when the message is sent applies. A message with its own expiry is deleted
    /// when it expires.
    package var historyPeriod: Duration
    /// The minimum time, counted from the sending of a message, for which its record stays even if its content is
    /// deleted. Until then a repetition is recognized, and the message can be recalled.
    package var recordPeriod: Duration
    /// The time that entries other than messages wait for devices that do not fetch them.
    package var eventPeriod: Duration
    /// The most publications that wait for one durable session, unacknowledged ones included. Further ones are dropped.
    package var maxQueuedMessages: Int
    /// The most bytes that wait for one durable session (``StoredPublication/weight``).
    package var maxQueuedBytes: Int
    /// The most publications that wait for all durable sessions together.
    package var queuedMessages: SharedLimit
    /// The most bytes that wait for all durable sessions together.
    package var queuedBytes: SharedLimit
    /// The limits of one inbox.
    package var inbox: InboxBudget
    /// The most bytes of one account's unread 1:1 messages in all inboxes together.
    package var maxUnreadBytes: Int

    /// The most groups that one account may be in.
    package var maxGroups: Int

    package init(
        historyPeriod: Duration = .zero,
        recordPeriod: Duration = .seconds(24 * 3600),
        eventPeriod: Duration = .seconds(30 * 24 * 3600),
        maxQueuedMessages: Int = 100_000,
        maxQueuedBytes: Int = 64 << 20,
        queuedMessages: SharedLimit = SharedLimit(100_000_000),
        queuedBytes: SharedLimit = SharedLimit(16 << 30),
        inbox: InboxBudget = InboxBudget(),
        maxUnreadBytes: Int = 128 << 20,
        maxGroups: Int = 1_000
    ) {
        self.inbox = inbox
        self.maxUnreadBytes = max(1, maxUnreadBytes)
        self.historyPeriod = historyPeriod
        self.recordPeriod = recordPeriod
        self.eventPeriod = eventPeriod
        self.maxQueuedMessages = max(1, maxQueuedMessages)
        self.maxQueuedBytes = max(1, maxQueuedBytes)
        self.queuedMessages = queuedMessages
        self.queuedBytes = queuedBytes
        self.maxGroups = max(1, maxGroups)
    }

    /// The most tokens of one device; a new one revokes the oldest.
    package static let maxTokensPerDevice = 5
    /// The number of an account's networks that are remembered.
    package static let maxNetworksPerAccount = 32
    /// The time that a network is remembered after the last login from it.
    package static let networkPeriod = Duration.seconds(90 * 86_400)

    /// The most entries or messages of one page, whatever the caller asks for.
    package static let maxPageEntries = 1000

    /// Returns the number of entries or messages that one page may have if the caller asks for `limit`.
    package static func pageLimit(_ limit: Int) -> Int { min(max(limit, 0), maxPageEntries) }

    /// The most accounts, groups or sessions that one search by a part of their names looks at.
    package static let maxSearched = 200_000
    /// The size of a page's content, in bytes. The entry with which a page reaches this size is the last of the page.
    package static let maxPageBytes = 4 * 1024 * 1024
}

extension StoreSettings {
    /// Throws an error if an account may not be added to a group because it is already in `count` groups.
    ///
    /// - Parameter caller: the account that adds this account to a group. For strangers the limit is half as high: the
    ///   other half is kept for contacts and for the account itself.
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

/// How the account that adds another account to a group is related to that account.
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
