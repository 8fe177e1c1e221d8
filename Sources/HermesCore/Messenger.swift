// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The core as the gateways and the HTTP API see it: one object that holds all services.
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
    /// The membership of this process in a cluster; nil: the process runs alone.
    package let cluster: ClusterMember?
    /// The wills of this process, kept in the store that all nodes share; nil: there are no other nodes.
    package let wills: WillLedger?
    /// The topics of the other nodes; nil: there are no other nodes.
    package let topicLinks: TopicLinks?
    let deletions: AccountDeletions
    package let messageStore: any MessageStore
    private let sessionStore: any SessionStore
    /// Whether nodes have joined or left, so that this process must look for jobs to continue.
    private let mustTakeOver = Atomic(false)

    /// Assembles the services over their stores.
    ///
    /// - Parameters:
    ///   - accountStore: stores accounts, devices and tokens.
    ///   - messageStore: stores inboxes and conversations; usually the same object.
    ///   - socialStore: stores contacts and groups; must be the same object as `messageStore`, or read from it.
    ///   - sessionStore: stores durable sessions and retained publications.
    ///   - pushTokenStore: stores push tokens; must be the same object as `accountStore`, or read from it.
    ///   - accountSettings: the rules for accounts and logins.
    ///   - messageSettings: the limits and times of messages.
    ///   - durableSettings: the limits of durable sessions.
    ///   - time: the source of the time.
    ///   - bus: carries messages to the other nodes; by default there are no other nodes.
    ///   - placeStore: records where devices are connected, if there are other nodes; must be the same object as
    ///     `messageStore`, or be changed by its commits.
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
        /// The server begins to read the named items. This may take long.
        case began(String)
        /// The server has read all items that it began to read; `count` is their number.
        case ended(count: Int)
    }

    /// Reads the state that a server needs before the first connection; called once.
    ///
    /// - Parameter progress: called at the beginning and the end of each step that may take long.
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
    ///   - isClockConfirmed: whether the clock may be trusted with the entries and sessions of an earlier process; if
    ///     not, only delivered entries are deleted, and only sessions of this process end.
    ///   - batch: the most deletions in one step; writers get their turn between two steps.
    ///   - maxSteps: the most steps in each store per call.
    /// - Returns: the number of deletions.
    /// - Throws: `.storageUnavailable`, after the steps that do not need what has failed; the next call continues.
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
            // Housekeeping continues, because on a full disk the purge makes room. The clock's jump is not believed
            // before it is recorded.
            failure = error
        }
        if isOnDuty, mustTakeOver.exchange(false, ordering: .relaxed) {
            do throws(HermesError) {
                // Another node may work at the same jobs. Each step is a transaction, so the nodes share the work.
                try await deletions.load()
                try await pushes.load()
                // Names of deleted accounts must still be freed if the node that has gone had not freed them.
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

    /// Purges both stores and maintains the files. A failure in one of the three must not keep the others from running,
    /// because it may return with each call.
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

    /// Commits waiting operations and refuses further ones. This is the last step of a shutdown, after the listeners
    /// have closed.
    package func shutdown() async {
        guard let cluster else { return await commitRest() }
        // The other nodes must hear of the last commits before they look for the work that this node has left.
        await cluster.leave { await commitRest() }
    }

    private func commitRest() async {
        await accounts.writeTraces(isLast: true)
        await durable.shutdown()
        await messages.shutdown()
    }
}
