// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How long stores keep what nobody waits for any more. The same for every store.
package struct StoreSettings: Sendable, Hashable {
    /// How long the content of a message is kept for ``MessageStore/history(of:before:limit:)`` after it was sent,
    /// delivered or not. Zero: history is off, content goes once no inbox refers to it. Takes effect for messages
    /// sent from then on. A message that was sent with an expiry of its own goes at that, too.
    package var historyPeriod: Duration
    /// How long at least a message is remembered without its content, so that sending it again is recognised as a
    /// repetition, and so that it can be recalled. The time runs from when it was sent.
    package var recordPeriod: Duration
    /// How long entries that are not messages stay for devices that do not fetch them.
    package var eventPeriod: Duration
    /// How many publications wait for one durable session at most, those that are not acknowledged among them. Further
    /// ones are dropped.
    package var maxQueuedMessages: Int
    /// How many bytes wait for one durable session at most (``StoredPublication/weight``).
    package var maxQueuedBytes: Int
    /// How much waits in one inbox at most.
    package var inbox: InboxBudget
    /// How many bytes of one account's 1:1 messages wait at most, in the inboxes of others together.
    package var maxUnreadBytes: Int

    /// In how many groups one account may be; nobody can be added to more.
    package var maxGroups: Int

    package init(
        historyPeriod: Duration = .zero,
        recordPeriod: Duration = .seconds(24 * 3600),
        eventPeriod: Duration = .seconds(30 * 24 * 3600),
        maxQueuedMessages: Int = 100_000,
        maxQueuedBytes: Int = 64 << 20,
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
        self.maxGroups = max(1, maxGroups)
    }

    /// How many tokens one device has at most; a new one revokes the oldest.
    package static let maxTokensPerDevice = 5
    /// How many networks that an account logged in from are remembered.
    package static let maxNetworksPerAccount = 32
    /// For how long, since it last did.
    package static let networkPeriod = Duration.seconds(90 * 86_400)

    /// The most entries or messages of one page, whatever the caller asks for.
    package static let maxPageEntries = 1000
    /// A page ends behind the entry whose content takes it past this many bytes.
    package static let maxPageBytes = 4 * 1024 * 1024
}

extension StoreSettings {
    /// Refuses one more group for somebody who is in `count` already.
    package func checkGroups(_ count: Int, isOwn: Bool) throws(HermesError) {
        guard count >= maxGroups else { return }
        throw HermesError(
            .tooLarge,
            isOwn
                ? "You are in \(maxGroups) groups, and may be in no more. Leave one first."
                : "One of these people is in \(maxGroups) groups, and may be in no more."
        )
    }
}

extension MessageAppend {
    /// Until when the content must stay although no inbox refers to it.
    package func contentKept(by settings: StoreSettings) -> Timestamp {
        guard settings.historyPeriod > .zero else { return Timestamp(rawValue: 0) }
        let end = sentAt.advanced(by: settings.historyPeriod)
        return draft.expiresAfter == nil ? end : min(end, expiresAt)
    }
}
