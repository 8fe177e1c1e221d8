// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// This process as a member of the cluster. It renews its lease, records the places of its devices, learns of the other
/// nodes, and repairs the effects of lost messages. "The record" is the content of the stores that all nodes share.
///
/// After a gap in the messages of another node, this process asks that node for its ``AccountEnd``s. From the record,
/// it reads the places and inbox heads of its own users, and which accounts are online. Repetitions that this causes
/// are recognized: entries by their seqs (``InboxFeed``), presence by its versions, and ``AccountEnd``s by their
/// numbers.
///
/// State: a `Mutex` around a struct. While it is locked, only the atomic of the ``ClusterRoster`` is used. One task at
/// a time renews the lease, and one task at a time does all other work.
package final class ClusterMember: BusReceiver {
    /// The interval at which the lease is renewed.
    package static let renewal = Duration.seconds(1)
    /// The time after which a node that could not renew its lease ends its connections.
    package static let patience = Duration.seconds(5)
    /// The time after which the other nodes remove a node that has not renewed its lease. It is longer than
    /// ``patience``, so that no device has two connections.
    package static let expulsion = Duration.seconds(8)
    /// The largest number of rows in one transaction.
    static let batch = 256

    let roster: ClusterRoster
    let devices: DeviceRegistry
    let topics: TopicLinks
    let retained: ReplicaLinks<RetainedReplica>
    let sessions: ReplicaLinks<SessionReplica>
    let wills: WillLedger
    let tokens: PushTokenService
    let stores: Stores
    let time: any TimeSource
    let topicClients: TopicClients
    let state = Mutex(State())
    let figures = PeerFigures()
    /// Called when a client of another node has sent a report.
    let reported = Hook<ClientStatistics.Received>()
    /// The function that publishes for other nodes; nil before the first connection.
    let numbered = Mutex<NumberedPublisher?>(nil)
    /// Called when nodes have joined or left, or when messages were lost. ``owner(of:)`` may be another node now, and
    /// that node may not have heard of work that it must do.
    package let repaired = Hook<Void>()
    /// After ``repaired`` is called on one node, every other node also calls ``repaired`` within this time, or is
    /// expelled.
    static let agreement = expulsion + renewal + renewal
    /// Called when another node has stored webhooks that this node must post.
    let webhooksStored = Hook<Void>()
    /// Called when another node has committed entries that this node hands off to push services.
    let handOffArrived = Hook<[HandOffDue]>()
    /// Called when a failed login or a registration on another node counts against the limits.
    let attemptCounted = Hook<AccountService.CountedAttempt>()
    /// Called when another node has changed an administrator. The administrator's sessions on this node end.
    let administratorChanged = Hook<AdministratorName>()
    /// Called when a login to the console of another node has failed.
    let administratorFailed = Hook<LoginThrottle.Charge>()

    init(
        _ roster: ClusterRoster,
        devices: DeviceRegistry,
        topics: TopicLinks,
        retained: ReplicaLinks<RetainedReplica>,
        sessions: ReplicaLinks<SessionReplica>,
        wills: WillLedger,
        tokens: PushTokenService,
        stores: Stores,
        time: any TimeSource,
        topicClients: TopicClients
    ) {
        self.roster = roster
        self.devices = devices
        self.topics = topics
        self.retained = retained
        self.sessions = sessions
        self.wills = wills
        self.tokens = tokens
        self.stores = stores
        self.time = time
        self.topicClients = topicClients
    }

    var bus: any ClusterBus { roster.bus }

    private var durable: DurableSessions { sessions.copy.sessions }

    /// Whether this process is a member according to the record. A process that was removed is not added again. Its
    /// node joins again with another process.
    package var isMember: Bool { state.withLock { !$0.isOut } }

    /// Returns the node that does a user's shared work: work that any node could do, and that exactly one node must do.
    /// While nodes join or leave, the nodes may disagree about the owner. So each node looks for its own work after
    /// ``repaired``, and again after ``agreement``.
    func owner(of user: UserID) -> NodeID {
        let members = members
        return members[Int(user.rawValue) % members.count]
    }

    /// This node and the other nodes, in ascending order.
    var members: [NodeID] { roster.peers.union(NodeSet(roster.node.id)).nodes }

    /// Whether this node is the ``owner(of:)`` of a user. A process that is not a member owns no user.
    func owns(_ user: UserID) -> Bool { isMember && isThis(owner(of: user)) }

    /// The node that does the work that one node must do for all nodes. While nodes join or leave, two nodes or no node
    /// may do this work. So each node looks for its own work after ``repaired``.
    private var nodeOnDuty: NodeID { members[0] }

    /// Whether this node does the work that one node must do for all nodes.
    package var isOnDuty: Bool { isMember && isThis(nodeOnDuty) }

    /// Tells the node on duty that there are webhooks to post.
    func tellWebhooks() { bus.hint(.webhooksStored, to: NodeSet(nodeOnDuty)) }

    func isThis(_ node: NodeID) -> Bool { node == roster.node.id }

    /// Tells another node which entries it must hand off to push services.
    func tell(_ dues: [HandOffDue], to node: NodeID) { bus.publish(.handOff(dues), to: NodeSet(node)) }

    /// Claims keys in the record (``PlaceStore/claim(_:number:on:)``). While nodes join or leave, two nodes may own the
    /// same user.
    ///
    /// - Returns: the claimed keys; no keys if this process has been removed.
    func claim(_ keys: [HandOffKey], number: UInt64) async throws(HermesError) -> Set<HandOffKey> {
        try await stores.places.claim(keys, number: number, on: roster.node) ?? []
    }

    func release(_ claims: [HandOffKey: UInt64]) async throws(HermesError) {
        try await stores.places.release(claims, on: roster.node)
    }

    func tell(changed administrator: AdministratorName) { bus.publish(.administrator(administrator), to: roster.peers) }

    /// Tells the other nodes that a login to the console has failed.
    func tell(failed charge: LoginThrottle.Charge) { bus.hint(.administratorFailed(charge), to: roster.peers) }

    // MARK: Working

    /// Begins to receive messages, and learns of the other nodes. This is called once, before the first connection.
    package func start() async {
        let now = time.uptime()
        state.withLock { $0.renewedAt = now }
        bus.start(self)
        await renew()
        await renewing {
            await workOnce()
            // Sessions that cannot be read now are read the next time.
            try? await sessions.finishReadingAll()
        }
        state.withLock { $0.isStarting = false }
    }

    /// Renews the lease and does the work that is due, again and again, until the task is cancelled.
    package func run() async {
        await renewing {
            while !Task.isCancelled {
                await workOnce()
                await roster.wakeUp.wait(atMost: Self.renewal)
            }
        }
    }

    /// Renews the lease while `work` runs, however long that takes. Ends the connections if the renewal takes too long.
    private func renewing(_ work: () async -> Void) async {
        await withDiscardingTaskGroup { group in
            group.addTask { [self] in
                let pause = WakeUp()
                while !Task.isCancelled {
                    await renew()
                    await pause.wait(atMost: Self.renewal)
                }
            }
            group.addTask { [self] in await watchRenewal() }
            await work()
            group.cancelAll()
        }
    }

    /// Ends the connections if the last renewal of the lease is longer ago than ``patience``, even if the record gives
    /// no answer at all. Checks this until the task is cancelled. Ends the connections only after two such checks in a
    /// row, with ``renewal`` in between, so that a process that was frozen for a moment can renew its lease first.
    private func watchRenewal() async {
        let pause = WakeUp()
        var wasLate = false
        while !Task.isCancelled {
            await pause.wait(atMost: Self.renewal)
            let uptime = time.uptime()
            let isLate = state.withLock { !$0.isOut && uptime - $0.renewedAt > Self.patience }
            if isLate, wasLate { endAll() }
            wasLate = isLate
        }
    }

    /// Does the work that is due now.
    package func work() async {
        await renew()
        await workOnce()
    }

    private func workOnce() async {
        await recordPlaces()
        await recordWills()
        await repair()
        tellChanges()
        // Items that cannot be read now are read the next time.
        try? await sessions.read()
        try? await retained.read()
    }

    private func tellChanges() {
        sessions.tell()
        retained.tell()
    }

    /// Leaves the cluster. This is called after ``run()`` has returned and the last connection has ended.
    ///
    /// - Parameter work: commits the operations that wait. This node remains a member while `work` runs.
    package func leave(after work: () async -> Void = {}) async {
        await renewing {
            await recordLastWills()
            await work()
            await recordPlaces()
            await recordWills()
            tellChanges()
        }
        wills.leave()
        state.withLock { $0.isOut = true }
        while !(await clear(roster.node, .yes, until: time.uptime() + Self.renewal)) {}
        bus.stop()
    }

    // MARK: The lease

    private func renew() async {
        let uptime = time.uptime()
        guard state.withLock({ !$0.isOut && uptime >= $0.nextRenewal }) else { return }
        do throws(HermesError) {
            guard let leases = try await stores.places.renew(roster.node) else { return expelled() }
            state.withLock { state in
                state.renewedAt = uptime
                state.nextRenewal = uptime + Self.renewal
            }
            let seenAt = time.uptime()
            view(leases)
            var silent: [(node: NodeIdentity, removal: LeaseRemoval)] = []
            var unclear: [(node: NodeIdentity, removal: LeaseRemoval)] = []
            for lease in leases {
                let silence = state.withLock { $0.silence(of: lease, from: uptime, to: seenAt) }
                if lease.isIn, silence >= Self.expulsion {
                    silent.append((lease.node, .ifNotRenewed(since: lease.renewals)))
                } else if lease.mustClear {
                    unclear.append((lease.node, .no))
                }
            }
            // All these nodes share one time limit, so that this node's own lease is renewed soon, however many nodes
            // there are.
            let end = seenAt + Self.renewal
            for (node, removal) in silent + unclear where time.uptime() < end {
                _ = await clear(node, removal, until: end)
            }
        } catch {
            if state.withLock({ uptime - $0.renewedAt > Self.patience }) { endAll() }
        }
        bus.beat(to: roster.peers)
        roster.forget()
    }

    /// Clears the places of `node`, a process that is gone or is leaving. If `kind` is `.no`, the process stays, and
    /// only the places that remain from earlier processes of its node are cleared.
    ///
    /// - Parameter end: the uptime at which the lease must be renewed.
    /// - Returns: false if some places remain, because it is time to renew this node's lease. A later call, by this
    ///   node or by another node, clears the remaining places.
    private func clear(_ node: NodeIdentity, _ kind: LeaseRemoval, until end: Duration) async -> Bool {
        // A step that fails is repeated at the next renewal.
        while let removal = try? await stores.places.remove(
            node,
            kind,
            now: time.now(),
            limit: Self.batch
        ) {
            tell(removal.presence)
            for id in removal.sessions { sessions.changed(id) }
            sessions.told(.some(removal.sessions))
            if removal.isDone {
                await inheritWills(of: node.id, until: end)
                return true
            }
            if time.uptime() >= end { return false }
        }
        return true
    }

    func expelled() {
        let peers = state.withLock { state in
            state.isOut = true
            defer { state.peers = [:] }
            // This process sends nothing more to other nodes.
            roster.setPeers(NodeSet())
            return state.peers.values.map(\.node)
        }
        for peer in peers { left(peer) }
        wills.leave()
        endAll()
    }

    /// Ends all connections. The clients log in again, on another node or on this node.
    func endAll() {
        for held in roster.held.values.joined() { devices.end(held.attachment, .shuttingDown) }
        topicClients.endAll()
    }

    /// Updates the members that this process knows, according to the leases in the record.
    private func view(_ leases: [NodeLease]) {
        for lease in leases where lease.isIn { _ = know(lease.node) }
        let gone = state.withLock { state in
            var gone: [NodeIdentity] = []
            for lease in leases where !lease.isIn {
                let id = lease.node.id
                guard let peer = state.peers[id], peer.node.epoch <= lease.node.epoch else {
                    state.gone[id] = max(state.gone[id] ?? 0, lease.node.epoch)
                    continue
                }
                state.peers[id] = nil
                state.lost(lease.node)
                gone.append(lease.node)
            }
            roster.setPeers(state.nodes)
            return gone
        }
        for node in gone { left(node) }
        if !gone.isEmpty { roster.wakeUp.signal() }
    }

    /// - Returns: false if the process has gone, so that its messages arrive too late.
    private func know(_ node: NodeIdentity) -> Bool {
        guard node.id != roster.node.id else { return false }
        let (isKnown, isNew) = state.withLock { state -> (Bool, Bool) in
            if state.isOut { return (false, false) }
            if let gone = state.gone[node.id], node.epoch <= gone { return (false, false) }
            if let peer = state.peers[node.id] {
                if peer.node.epoch >= node.epoch { return (peer.node == node, false) }
                state.lost(peer.node)
            }
            // While this process starts, other processes have already published messages that this process does not
            // count: the effects of these messages are in the record. The messages of a process that joins later are
            // counted from the first message.
            let first: UInt64? = state.isStarting ? nil : 0
            state.peers[node.id] = Peer(node: node, ends: first, tokens: first)
            roster.setPeers(state.nodes)
            return (true, true)
        }
        if isNew {
            topics.joined(node)
            // The process may have gone meanwhile.
            if !isPresent(node) { left(node) }
            roster.wakeUp.signal()
        }
        return isKnown
    }

    /// Forgets the topics and figures of a process that has gone.
    private func left(_ node: NodeIdentity) {
        topics.left(node)
        figures.left(node.id)
    }

    private func isPresent(_ node: NodeIdentity) -> Bool { state.withLock { $0.peers[node.id]?.node == node } }

    // MARK: Places

    private func recordPlaces() async {
        while true {
            let changes = roster.takeChanges(Self.batch)
            guard !changes.isEmpty else { return }
            do throws(HermesError) {
                guard let outcomes = try await stores.places.change(changes, on: roster.node) else { return expelled() }
                await recorded(changes, outcomes)
            } catch {
                return roster.putBack(changes)
            }
        }
    }

    private func recorded(_ changes: [PlaceChange], _ outcomes: [PlaceOutcome]) async {
        var taken: [NodeID: [DevicePlace]] = [:]
        for place in outcomes.compactMap(\.taken) { taken[place.node.id, default: []].append(place) }
        for (node, places) in taken { bus.publish(.taken(places), to: NodeSet(node)) }
        tell(outcomes.compactMap(\.presence))
        for (change, outcome) in zip(changes, outcomes) {
            guard case .claim(let key, let connection) = change,
                let attachment = roster.claimed(key, connection: connection)
            else { continue }
            // Entries that other nodes committed before the claim were not sent to this node.
            do throws(HermesError) {
                try await show(upTo: outcome.head, of: key.user, to: [attachment])
            } catch {
                state.withLock { $0.mustReload = true }
            }
        }
    }

    /// Passes the newest entry to attachments. The attachments load the missing entries before this entry.
    func show(upTo head: UInt64, of user: UserID, to attachments: [any Attachment]) async throws(HermesError) {
        guard head > 0, !attachments.isEmpty else { return }
        let page = try await stores.messages.entries(of: user, after: head - 1, limit: 1)
        guard !page.entries.isEmpty else { return }
        for attachment in attachments { attachment.inboxAdvanced(page.entries) }
    }

    // MARK: Presence

    /// Tells the other nodes, and the watchers on this node, about the presence transitions that this node has made.
    /// Reports the transitions to observers; each transition is reported on only one node.
    private func tell(_ changes: [PresenceChange]) {
        guard !changes.isEmpty else { return }
        bus.publish(.presence(changes), to: roster.peers)
        let turned = roster.note(changes)
        // Two transitions of an account in a row cancel each other out.
        let reported = changes.reduce(into: Set<UserID>()) { $0.formSymmetricDifference([$1.user]) }
        for user in turned.union(reported) {
            devices.presenceTurned(of: user, isTold: turned.contains(user), isReported: reported.contains(user))
        }
    }

    // MARK: Receiving

    package func received(_ message: ClusterMessage, from node: NodeIdentity) {
        guard know(node) else { return }
        switch message {
        case .entries(let entries):
            for (user, entries) in entries { received(entries, of: user) }
        case .taken(let places):
            for attachment in places.compactMap(roster.attachment(at:)) { devices.end(attachment, .replaced) }
        case .presence(let changes):
            for user in roster.note(changes) { devices.presenceTurned(of: user) }
        case .ended(let end, let number):
            if isNext(number, in: \.ends, of: node) { carryOut(end) }
        case .token(let key, let number):
            if isNext(number, in: \.tokens, of: node) { _ = tokens.heard(of: key) }
        case .handOff(let dues): handOffArrived(dues)
        case .topics(let interest, let number):
            if !topics.told(interest, number: number, by: node) { missed(from: node) }
        case .retained(let topics): retained.told(topics)
        case .sessions(let ids): sessions.told(ids)
        case .queued(let heads): durable.queuedElsewhere(heads)
        case .administrator(let name): administratorChanged(name)
        }
    }

    /// Whether a message's number is the next number in a node's count of ``AccountEnd``s or of push tokens. If
    /// messages are missing, the node is asked for them.
    private func isNext(
        _ number: UInt64,
        in count: WritableKeyPath<Peer, UInt64?>,
        of node: NodeIdentity
    ) -> Bool {
        let isNext = state.withLock { state in
            guard let last = state.peers[node.id]?[keyPath: count], number == last + 1 else {
                if state.peers[node.id]?[keyPath: count].map({ number > $0 }) ?? true {
                    state.peers[node.id]?.mustAsk = true
                }
                return false
            }
            state.peers[node.id]?[keyPath: count] = number
            return true
        }
        if !isNext { roster.wakeUp.signal() }
        return isNext
    }

    private func received(_ entries: [InboxEntry], of user: UserID) {
        let attachments = devices.takers(of: user)
        guard let last = entries.last?.lastSeq, !attachments.isEmpty else { return }
        for attachment in attachments { attachment.inboxAdvanced(entries) }
        let isFull = state.withLock { state in
            state.heads[user] = max(state.heads[user] ?? 0, last)
            return state.heads.count >= state.maxHeads
        }
        if isFull { forgetHeads(but: roster.held) }
    }

    /// Forgets the heads of users without a connection.
    func forgetHeads(but held: [UserID: [ClusterRoster.Held]]) {
        state.withLock { state in
            state.heads = state.heads.filter { held[$0.key] != nil }
            state.maxHeads = max(1_024, 2 * state.heads.count)
        }
    }

    func carryOut(_ end: AccountEnd) {
        switch end {
        case .devices(let user, let reason, let devices):
            if reason == .accountDeleted { tokens.forget(user) }
            self.devices.endHere(user, reason, devices)
        case .topicClients(let user, let name, let reason, let devices): topicClients.end(user, name, reason, devices)
        case .renamed(let user, let name): devices.renameHere(user, to: name)
        case .hidden(let user, let viewer): devices.hideHere(user, from: viewer)
        }
    }

    package func missed(from node: NodeIdentity) {
        guard know(node) else { return }
        state.withLock { $0.peers[node.id]?.mustAsk = true }
        roster.wakeUp.signal()
    }

    package func hinted(_ hint: ClusterHint, from node: NodeIdentity) {
        guard know(node) else { return }
        switch hint {
        // The number of receivers is not needed, because the other node has already answered its caller.
        case .ephemeral(let user, let event): _ = devices.notifyHere(user, event)
        case .publications(let publications, let loop, let number):
            topics.received(publications, loop: loop, number: number, from: node)
        case .webhooksStored: webhooksStored()
        case .attempt(let attempt): attemptCounted(attempt)
        case .administratorFailed(let charge): administratorFailed(charge)
        case .figures(let figures):
            self.figures.told(figures, by: node.id)
            // The node may have gone meanwhile.
            if !isPresent(node) { self.figures.left(node.id) }
        case .report(let report): reported(report)
        case .attached(let client): durable.attachedElsewhere(client)
        }
    }

    package func answer(to question: ClusterQuestion, from node: NodeIdentity) async -> ClusterAnswer {
        // From now on, the asking node gets all messages of this node.
        _ = know(node)
        switch question {
        case .ends(let number): return roster.ends(after: number)
        case .tokens(let number): return roster.tokens(after: number)
        case .topics: return topics.answer
        case .subscriberCount(let topic): return .subscriberCount(await topics.subscriberCountHere(of: topic))
        case .subscriberCounts(let prefix):
            return .subscriberCounts(await topics.subscriberCountsHere(withPrefix: prefix))
        case .remove(let expulsion): return .removed(await topics.removeHere(expulsion))
        case .devices(let user): return .devices(devices.attachedDevices(of: user))
        case .session(let id):
            await sessions.readUntilKnown(id)
            return .session
        case .publish(let publication): return .published(await publishHere(publication))
        }
    }
}
