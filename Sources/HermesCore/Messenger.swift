// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The interface of the core for the gateways and the HTTP API. This object holds all services.
package final class Messenger: Sendable {
    package let accounts: AccountService
    package let messages: MessageService
    /// The service that answers the requests of accounts about their inboxes and conversations.
    package let inbox: InboxRequests
    package let pushes: PushService
    package let contacts: ContactService
    package let groups: GroupService
    package let devices: DeviceRegistry
    /// The service for the push tokens of devices.
    package let pushTokens: PushTokenService
    /// The hooks for observers of commits and acknowledgements.
    package var watch: DeliveryWatch { messages.committer.watch }
    /// The traces of the last messages, for the operator.
    package var traces: MessageTraces { messages.committer.traces }
    /// The distribution of the server's events to their observers.
    package var events: EventWatch { watch.events }
    /// The service for kept sessions and retained messages.
    package let durable: DurableSessions
    /// The retained messages; a shorthand for `durable.retained`.
    package var retained: RetainedMessages { durable.retained }
    package var time: any TimeSource { steadyTime }
    /// A clock that keeps entries from expiring when the wall clock is briefly ahead.
    package let steadyTime: SteadyTime
    /// The gate that holds back redundant typing signals.
    package let typing = TypingGate()
    /// The statistics that clients report.
    package let clientStatistics = ClientStatistics()
    /// The membership of this process in a cluster; nil if the process runs alone.
    package let cluster: ClusterMember?
    /// The wills of this process, kept in the store that all nodes share; nil if there are no other nodes.
    package let wills: WillLedger?
    /// The topics of the other nodes; nil if there are no other nodes.
    package let topicLinks: TopicLinks?
    let deletions: AccountDeletions
    package let messageStore: any MessageStore
    private let sessionStore: any SessionStore
    /// Whether this process must look for jobs to continue. This is necessary after nodes have joined or left.
    private let mustTakeOver = Atomic(false)

    /// Creates the services, which use the given stores.
    ///
    /// - Parameters:
    ///   - accountStore: stores accounts, devices and tokens.
    ///   - messageStore: stores inboxes and conversations; usually the same object as `accountStore`.
    ///   - socialStore: stores contacts and groups; must be the same object as `messageStore`, or must read from that
    ///     object.
    ///   - sessionStore: stores durable sessions and retained publications.
    ///   - pushTokenStore: stores push tokens; must be the same object as `accountStore`, or must read from that
    ///     object.
    ///   - accountSettings: the rules for accounts and logins.
    ///   - messageSettings: the limits and times of messages.
    ///   - durableSettings: the limits of durable sessions.
    ///   - time: the source of the time.
    ///   - bus: carries messages to the other nodes; by default there are no other nodes.
    ///   - placeStore: records where devices are connected; nil if there are no other nodes. The store must be the same
    ///     object as `messageStore`, or the commits of `messageStore` must change it.
    package init(
        accountStore: any AccountStore,
        messageStore: any MessageStore,
        socialStore: any SocialStore,
        sessionStore: any SessionStore,
        pushTokenStore: any PushTokenStore,
        accountSettings: AccountSettings = AccountSettings(),
        messageSettings: MessageSettings = MessageSettings(),
        durableSettings: DurableSettings = DurableSettings(),
        time: any TimeSource = SystemTime(),
        bus: any ClusterBus = LoneNode(),
        placeStore: (any PlaceStore)? = nil
    ) {
        let time = SteadyTime(time)
        steadyTime = time
        self.messageStore = messageStore
        self.sessionStore = sessionStore
        let roster = placeStore == nil ? nil : bus.node.map { ClusterRoster($0, bus: bus, time: time) }
        devices = DeviceRegistry(time: time, roster: roster)
        pushTokens = PushTokenService(
            store: pushTokenStore,
            time: time,
            roster: roster,
            maxDevices: accountSettings.maxDevices
        )
        messages = MessageService(
            store: messageStore,
            devices: devices,
            time: time,
            settings: messageSettings
        )
        inbox = InboxRequests(
            store: messageStore,
            social: socialStore,
            time: time,
            committer: messages.committer,
            reads: messages.reads,
            maxWaitingHeads: messageSettings.maxWaitingReads,
            recallWindow: messageSettings.recallWindow
        )
        devices.presenceChanged.observe { [events = messages.committer.watch.events] user, isOnline in
            if isOnline {
                events.note(.notice(.online(user)), .online)
            } else {
                events.note(.notice(.offline(user)), .offline)
            }
        }
        pushes = PushService(
            store: messageStore,
            social: socialStore,
            reads: messages.reads,
            committer: messages.committer,
            time: time,
            retention: messageSettings.retention
        )
        deletions = AccountDeletions(store: messageStore, committer: messages.committer)
        contacts = ContactService(
            store: socialStore,
            reads: messages.reads,
            committer: messages.committer,
            devices: devices,
            time: time,
            requestsPerHour: messageSettings.contactRequestsPerHour,
            acceptedFrom: messageSettings.acceptedFrom
        )
        groups = GroupService(
            store: socialStore,
            reads: messages.reads,
            committer: messages.committer,
            time: time,
            entriesPerHour: messageSettings.groupEntriesPerHour,
            acceptedFrom: messageSettings.acceptedFrom
        )
        durable = DurableSessions(store: sessionStore, time: time, settings: durableSettings, roster: roster)
        accounts = AccountService(
            store: accountStore,
            messages: messageStore,
            devices: devices,
            time: time,
            settings: accountSettings,
            reads: messages.reads,
            committer: messages.committer,
            pushTokens: pushTokens,
            acknowledged: { [messages] in messages.acknowledged($0, $1, by: $2) },
            endTopicClients: { [durable] user, name, reason, devices in
                durable.end(user, name, reason, devices)
                roster?.tell(.topicClients(user, name: name, reason, devices))
            },
            clearTopics: { [durable] in await durable.clear($0, isLate: $1) }
        )
        devices.nameChanged.observe { [durable] in durable.rename($0.user, to: $0.name) }
        deletions.finished.observe { [pushTokens, accounts] user in
            pushTokens.forget(user)
            accounts.deleted(user)
        }
        topicLinks = roster.map { TopicLinks($0) }
        wills = roster.map { WillLedger($0) }
        if let roster, let topicLinks, let wills, let placeStore {
            accounts.counted.observe { roster.bus.hint(.attempt($0), to: roster.peers) }
            clientStatistics.received.observe { roster.bus.hint(.report($0), to: roster.peers) }
            cluster = ClusterMember(
                roster,
                devices: devices,
                topics: topicLinks,
                retained: ReplicaLinks(roster, durable.retained, store: sessionStore),
                sessions: ReplicaLinks(roster, durable, store: placeStore),
                wills: wills,
                tokens: pushTokens,
                stores: .init(places: placeStore, messages: messageStore, accounts: accountStore),
                time: time,
                topicClients: .init(
                    end: { [durable] in durable.end($0, $1, $2, $3) },
                    endAll: { [durable] in durable.endConnections(.shuttingDown) },
                    endHaving: { [durable] in durable.end($0, having: $1) },
                    logins: { [durable] in durable.connectedAccounts }
                )
            )
        } else {
            cluster = nil
        }
        cluster?.attemptCounted.observe { [accounts] in accounts.add($0) }
        cluster?.reported.observe { [clientStatistics] in clientStatistics.add($0, now: time.now()) }
        cluster?.repaired.observe { [weak self] in self?.mustTakeOver.store(true, ordering: .relaxed) }
    }

    /// Whether this process does the work that one node must do for all nodes.
    private var isOnDuty: Bool { cluster?.isOnDuty ?? true }

    /// The progress of ``load(_:)``.
    package enum LoadProgress: Sendable {
        /// The server begins to read the named items. Reading may take a long time.
        case began(String)
        /// The server has read all items that it began to read; `count` is their number.
        case ended(count: Int)
    }

    /// Reads the state that a server needs before the first connection; called once.
    ///
    /// - Parameter progress: called at the beginning and the end of each step that may take a long time.
    package func load(_ progress: @Sendable (LoadProgress) -> Void = { _ in }) async throws(HermesError) {
        progress(.began("retained messages"))
        try await durable.loadRetained()
        progress(.ended(count: retained.statistics.count))
        progress(.began("kept sessions"))
        try await durable.loadSessions()
        progress(.ended(count: durable.statistics.sessions))
        try await accounts.load(isStart: true)
        progress(.began("accounts that are being deleted"))
        progress(.ended(count: try await deletions.load()))
        try await pushes.load()
        progress(.began("devices with push tokens"))
        progress(.ended(count: try await pushTokens.load().count))
        await cluster?.start()
    }

    /// Checks the clock, ends expired sessions and deletes delivered or expired entries; called about once a second.
    ///
    /// - Parameters:
    ///   - now: the wall clock.
    ///   - isClockConfirmed: whether the clock can be trusted for the entries and sessions of an earlier process. If
    ///     not, only delivered entries are deleted, and only sessions of this process end.
    ///   - batch: the maximum number of deletions in one step; writers get their turn between two steps.
    ///   - maxSteps: the maximum number of steps in each store per call.
    /// - Returns: the number of deletions.
    /// - Throws: `.storageUnavailable` if a step failed. The other steps run before the error is thrown. The next call
    ///   continues.
    @discardableResult
    package func housekeeping(
        now: Timestamp,
        isClockConfirmed: Bool = true,
        batch: Int = 1000,
        maxSteps: Int = 100
    ) async throws(HermesError) -> Int {
        var failure: HermesError?
        do throws(HermesError) {
            try await steadyTime.look { jump throws(HermesError) in try await messageStore.record(jump) }
            try await steadyTime.takeBack { setback throws(HermesError) in try await messageStore.takeBack(setback) }
        } catch {
            // Housekeeping continues, because the purge makes room on a full disk. If a jump of the clock could not be
            // recorded, it has no effect yet.
            failure = error
        }
        if isOnDuty, mustTakeOver.exchange(false, ordering: .relaxed) {
            do throws(HermesError) {
                // Another node may work on the same jobs. Each step is a transaction, so the nodes share the work.
                try await deletions.load()
                try await pushes.load()
                // If the node that left did not free the names of deleted accounts, this node must free them.
                deletions.noteFinished()
            } catch {
                mustTakeOver.store(true, ordering: .relaxed)
                failure = error
            }
        }
        let purgeTime = isClockConfirmed ? now : Timestamp(rawValue: 0)
        durable.expire(now: now, isClockConfirmed: isClockConfirmed, isOnDuty: isOnDuty)
        deletions.resume()
        if deletions.takeFinished() {
            do throws(HermesError) {
                try await accounts.load(isStart: false)
            } catch {
                deletions.noteFinished()
                failure = error
            }
        }
        pushes.resume()
        retained.expire(now: purgeTime)
        await accounts.writeTraces()
        await accounts.freeNames()
        accounts.forgetDeleted()
        await pushTokens.forgetSurplus()
        let purged = await purge(now: purgeTime, batch: batch, maxSteps: maxSteps)
        if let failure = purged.failure ?? failure { throw failure }
        return purged.count
    }

    /// Purges both stores and maintains the files. If one of these three steps fails, the others still run. Otherwise a
    /// step that fails in every call would block the other steps.
    ///
    /// - Returns: the number of deletions, and the first failure.
    private func purge(
        now: Timestamp,
        batch: Int,
        maxSteps: Int
    ) async -> (count: Int, failure: HermesError?) {
        var sum = 0
        var failures: [HermesError] = []
        do throws(HermesError) {
            for _ in 0..<max(1, maxSteps) where isOnDuty && !Task.isCancelled {
                let count = try await messageStore.purge(now: now, limit: batch)
                sum += count
                if count == 0 { break }
            }
        } catch {
            failures.append(error)
        }
        do throws(HermesError) {
            for _ in 0..<max(1, maxSteps) where isOnDuty && !Task.isCancelled {
                let count = try await durable.purge(now: now, limit: batch)
                sum += count
                if count == 0 { break }
            }
        } catch {
            failures.append(error)
        }
        do throws(HermesError) {
            if isOnDuty { try await messageStore.maintain(uptime: time.uptime()) }
        } catch {
            failures.append(error)
        }
        return (sum, failures.first)
    }

    /// Commits waiting operations and refuses further operations. This is the last step of a shutdown, after the
    /// listeners have closed.
    package func shutdown() async {
        guard let cluster else { return await commitRest() }
        // The other nodes must receive the last commits before they look for the unfinished work of this node.
        await cluster.leave { await commitRest() }
    }

    private func commitRest() async {
        await accounts.writeTraces(isLast: true)
        await durable.shutdown()
        await messages.shutdown()
    }
}
