// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The core as the gateways and the HTTP API see it: one object that holds the services.
package final class Messenger: Sendable {
    package let accounts: AccountService
    package let messages: MessageService
    package let pushes: PushService
    package let contacts: ContactService
    package let groups: GroupService
    package let sessions: SessionRegistry
    /// Where devices can be pushed to when they are not connected.
    package let pushTokens: PushTokenService
    /// Where somebody may stand who has to know what is committed and acknowledged.
    package var watch: DeliveryWatch { messages.committer.watch }
    /// Sessions that outlive their connections, and what is retained.
    package let durable: DurableSessions
    /// What is retained; the same as `durable.retained`.
    package var retained: RetainedMessages { durable.retained }
    package var time: any TimeSource { steadyTime }
    /// Nothing expires because the wall clock is ahead for a moment.
    package let steadyTime: SteadyTime
    /// Holds back signs of typing that nobody needs.
    package let typing = TypingGate()
    /// What clients report about their connections and deliveries.
    package let clientStatistics = ClientStatistics()
    let deletions: AccountDeletions
    private let messageStore: any MessageStore
    private let sessionStore: any SessionStore

    /// Assembles the services over their stores.
    ///
    /// - Parameters:
    ///   - accountStore: keeps accounts, devices and tokens.
    ///   - messageStore: keeps inboxes and conversations; usually the same object.
    ///   - socialStore: tells about contacts and groups; must be the same object as `messageStore`, or look into it.
    ///   - sessionStore: keeps durable sessions and retained publications.
    ///   - pushTokenStore: keeps push tokens; must be the same object as `accountStore`, or look into it.
    ///   - accountSettings: the rules for accounts and logins.
    ///   - messageSettings: the limits and times of messages.
    ///   - durableSettings: the limits of durable sessions.
    ///   - time: tells the time.
    package init(
        accountStore: any AccountStore,
        messageStore: any MessageStore,
        socialStore: any SocialStore,
        sessionStore: any SessionStore,
        pushTokenStore: any PushTokenStore,
        accountSettings: AccountSettings = AccountSettings(),
        messageSettings: MessageSettings = MessageSettings(),
        durableSettings: DurableSettings = DurableSettings(),
        time: any TimeSource = SystemTime()
    ) {
        let time = SteadyTime(time)
        steadyTime = time
        self.messageStore = messageStore
        self.sessionStore = sessionStore
        sessions = SessionRegistry(time: time)
        pushTokens = PushTokenService(store: pushTokenStore, time: time)
        messages = MessageService(
            store: messageStore,
            social: socialStore,
            sessions: sessions,
            time: time,
            settings: messageSettings
        )
        pushes = PushService(
            store: messageStore,
            social: socialStore,
            committer: messages.committer,
            time: time,
            retention: messageSettings.retention
        )
        deletions = AccountDeletions(store: messageStore, committer: messages.committer)
        contacts = ContactService(
            store: socialStore,
            committer: messages.committer,
            sessions: sessions,
            time: time,
            requestsPerHour: messageSettings.contactRequestsPerHour
        )
        groups = GroupService(
            store: socialStore,
            committer: messages.committer,
            time: time,
            entriesPerHour: messageSettings.groupEntriesPerHour
        )
        durable = DurableSessions(store: sessionStore, time: time, settings: durableSettings)
        accounts = AccountService(
            store: accountStore,
            messages: messageStore,
            sessions: sessions,
            time: time,
            settings: accountSettings,
            committer: messages.committer,
            acknowledged: { [messages] in messages.acknowledged($0, $1) },
            endTopicClients: { [durable] owner, reason, devices in
                durable.end(owner, reason, devices)
                guard reason.endsKeptSessions else { return }
                durable.endVacant(of: owner)
                durable.forgetRetained(of: owner)
            }
        )
    }

    /// Reads what a server must know before anybody connects; to be called once.
    package func load() async throws(HermesError) {
        try await durable.load()
        try await deletions.load()
        try await pushes.load()
        try await pushTokens.load()
    }

    /// Ends sessions whose time is over and deletes what is delivered or expired; to be called about once a second.
    ///
    /// - Parameters:
    ///   - now: the wall clock.
    ///   - isClockConfirmed: whether it may be believed in what an earlier process has stored; if not, only what is
    ///     delivered is deleted.
    ///   - batch: how much one step deletes, so that writers get their turn between steps.
    ///   - maxSteps: how many steps one call takes in each store.
    /// - Returns: how much was deleted.
    /// - Throws: `.storageUnavailable`; the next call goes on.
    @discardableResult
    package func housekeeping(
        now: Timestamp,
        isClockConfirmed: Bool = true,
        batch: Int = 1000,
        maxSteps: Int = 100
    ) async throws(HermesError) -> Int {
        steadyTime.look()
        let purgeTime = isClockConfirmed ? now : Timestamp(rawValue: 0)
        durable.expire(now: now)
        deletions.resume()
        pushes.resume()
        retained.expire(now: now)
        sessions.tellLate()
        await accounts.writeTraces()
        var sum = 0
        for _ in 0..<max(1, maxSteps) where !Task.isCancelled {
            let count = try await messageStore.purge(now: purgeTime, limit: batch)
            sum += count
            if count == 0 { break }
        }
        for _ in 0..<max(1, maxSteps) where !Task.isCancelled {
            let count = try await sessionStore.purgeSessions(now: purgeTime, limit: batch)
            sum += count
            if count == 0 { break }
        }
        try await messageStore.maintain(uptime: time.uptime())
        return sum
    }

    /// Commits what waits and refuses what comes; the last step, after the listeners have closed.
    package func shutdown() async {
        await accounts.writeTraces(isLast: true)
        await durable.shutdown()
        await messages.shutdown()
    }
}
