// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Manages the durable sessions, their connections and their queues. It guarantees that changes are stored before they
/// are acknowledged. Thread-safe.
///
/// Completions run on the committer's thread, or at once on the caller's thread if nothing is stored or the call is
/// refused. They must not block. Operations of one ``CommitSource`` are committed and completed in the order of the
/// calls; sources take turns. State: a ``Locked`` ``DurableState``; no other code is called while it is locked.
package final class DurableSessions: Sendable {
    /// The error for a connection whose session another connection has taken over.
    package static let takenOver = HermesError(.replaced, "Another connection has taken the session over.")

    /// Current numbers, and counts since the start of the process.
    package struct Statistics: Sendable, Hashable {
        package let sessions: Int
        package let online: Int
        /// The filters of all sessions.
        package let filters: Int
        /// Sessions that were refused because there were too many.
        package let refusedSessions: UInt64
        /// Filters that were refused because there were too many.
        package let refusedFilters: UInt64
        /// Publications that were dropped because a queue was full.
        package let dropped: UInt64
        /// Publications that moved from a session to another member of a shared subscription.
        package let handedOver: UInt64
        package let commits: CommitStatistics
    }

    /// The state, and copies of some of its values that event loops can read without its lock.
    final class Shared: Sendable {
        let state: Locked<DurableState>
        let generation = Atomic<UInt64>(1)
        let hasSubscriptions = Atomic(false)
        /// The connected members of shared subscriptions, whether their sessions are kept or not.
        let live = Mutex<SharedGroups?>(nil)
        let news = News()

        init(_ settings: DurableSettings, _ shapes: ShapeBudget, _ node: NodeIdentity?) {
            state = Locked(DurableState(settings, shapes: shapes, node: node))
        }

        /// Changes the state, removes some filters of ended sessions, and shows the event loops whether subscriptions
        /// have changed.
        func change<Value: Sendable>(_ body: (inout DurableState) -> Value) -> Value {
            let (value, farewells) = state.withLock { state in
                let value = body(&state)
                state.trimIndex()
                hasSubscriptions.store(!state.index.isEmpty, ordering: .releasing)
                generation.store(state.index.version, ordering: .releasing)
                return (value, state.takeFarewells())
            }
            for farewell in farewells { farewell() }
            return value
        }

        /// Applies a commit to the state, some rows at a time, because all event loops wait while the lock is held.
        func committed(_ operations: [SessionOperation], _ outcomes: [SessionOutcome]) {
            var deliveries = DurableDeliveries()
            for slice in CommittedRows.slices(of: operations) {
                state.withLock { state in
                    for rows in slice {
                        state.committed(operations[rows.operation], outcomes[rows.operation], rows.range, &deliveries)
                    }
                }
            }
            for (attachment, publications) in deliveries.all { attachment.committed(publications) }
            if !deliveries.elsewhere.isEmpty { news.queued(deliveries.elsewhere) }
        }
    }

    /// The retained publications; they change through
    /// ``publish(_:targets:from:receivedID:retains:mustRetain:source:reach:completion:)`` and
    /// ``retain(_:source:completion:)``.
    package let retained: RetainedMessages
    let store: any SessionStore
    let time: any TimeSource
    package let settings: DurableSettings
    /// Limits the costly shapes of the filters of all clients and of all kept sessions together.
    package let shapes = ShapeBudget()
    let shared: Shared
    let committer: SessionCommitter
    let reads: ReadGate
    /// Limits the number of queues that are moved at the same time.
    let handOvers = ReadGate(maxRunning: 2, maxWaiting: .max)
    /// The recent ends of connections, by owner.
    let ends = RecentEnds<SessionOwner>()
    private let confirmations: Confirmations?

    /// Creates the service and starts its committer, which ends with ``shutdown()``.
    ///
    /// - Parameter roster: the knowledge about other nodes; nil if this process is alone.
    package init(
        store: any SessionStore,
        time: any TimeSource,
        settings: DurableSettings = DurableSettings(),
        roster: ClusterRoster? = nil
    ) {
        let shared = Shared(settings, shapes, roster?.node)
        confirmations = roster.map { Confirmations($0) }
        self.store = store
        self.time = time
        self.settings = settings
        self.shared = shared
        retained = RetainedMessages(
            messages: settings.retainedMessages,
            bytes: settings.retainedBytes,
            isAvailable: settings.isRetainAvailable
        )
        committer = SessionCommitter(store: store, time: time, limits: settings.commit) { operations, outcomes in
            shared.committed(operations, outcomes)
        }
        reads = ReadGate(maxRunning: settings.maxConcurrentReads, maxWaiting: settings.maxWaitingReads)
    }

    package var statistics: Statistics {
        let commits = committer.statistics
        return shared.state.withLock { state in
            Statistics(
                sessions: state.records.count,
                online: state.online,
                filters: state.quota.filters,
                refusedSessions: state.quota.refusedSessions,
                refusedFilters: state.quota.refusedFilters,
                dropped: state.dropped,
                handedOver: state.handedOver,
                commits: commits
            )
        }
    }

    /// Whether there may be other nodes.
    var isAmongSeveral: Bool { confirmations != nil }

    /// The changes that this process reports to the other nodes.
    var news: News { shared.news }

    /// The statistics of the queues of all sessions in the store.
    package var queueStatistics: QueueBudget.Statistics { store.queues.statistics }

    /// Called on any thread when a session without a connection has ended. The reason is that the session expired, that
    /// another connection requested a clean session, that an operator ended the session, or that its owner is gone.
    package let ended = Hook<SessionKey>()

    /// Called on any thread when an account that owns sessions no longer has its name; called before ``ended``.
    package let nameFreed = Hook<FreedName>()

    /// Commits the operations that wait, and refuses new ones.
    package func shutdown() async {
        await committer.shutdown()
        shared.change { $0.farewells.failAll(HermesError(.shuttingDown, "the server is shutting down")) }
    }

    // MARK: Publishing

    /// Whether any durable session has a subscription.
    package var hasSubscriptions: Bool { shared.hasSubscriptions.load(ordering: .acquiring) }

    /// A number that changes when the result of ``targets(of:)`` may have changed; never 0.
    package var generation: UInt64 { shared.generation.load(ordering: .acquiring) }

    /// Returns the durable subscribers of a topic; valid until ``generation`` changes.
    package func targets(of topic: TopicName) -> [DurableTarget] { hasSubscriptions ? search(topic).route.targets : [] }

    /// Returns the durable subscribers of a topic, and the work of the search for them (``DurableIndex/Matches/work``).
    /// The work is 0 if there was already a search for this topic since the last change of subscriptions.
    package func search(_ topic: TopicName) -> (route: DurableRoute, work: Int) {
        let found = shared.state.withLock { state -> Found in
            let generation = state.index.version
            if let known = state.routes.route(to: topic, generation: generation) { return .route(known, work: 0) }
            let matches = state.index.matches(of: topic)
            // An earlier result for the same filters may contain a session that has ended meanwhile. So it is used only
            // if the index has no filters of ended sessions.
            if state.leaving.isEmpty,
                let known = state.routes.route(to: topic, matches.key, generation: generation)
            {
                return .route(known, work: matches.searchWork)
            }
            guard matches.members <= Self.membersAtOnce else { return .many(matches, generation) }
            let route = DurableRoute(matches.targets { state.load(of: $0) }, generation: generation)
            state.routes.keep(route, to: topic, matches.key)
            return .route(route, work: matches.work)
        }
        switch found {
        case .route(let route, let work): return (route, work)
        case .many(let matches, let generation): return (route(to: topic, matches, generation), matches.work)
        }
    }

    private enum Found {
        case route(DurableRoute, work: Int)
        case many(DurableIndex.Matches, UInt64)
    }

    /// The number of members that are looked up at once. Looking them up takes a few tenths of a millisecond.
    private static let membersAtOnce = 1_024

    /// Returns the route to very many members. All event loops wait for the lock, so the lock is not held while the
    /// route is built.
    private func route(to topic: TopicName, _ matches: DurableIndex.Matches, _ generation: UInt64) -> DurableRoute {
        var loads: [DurableSessionID: DurableLoad] = [:]
        let ids = matches.ids
        for part in ids.slices(of: Self.membersAtOnce) {
            let found = shared.state.withLock { state in part.map { state.load(of: $0) } }
            for (id, load) in zip(part, found) { loads[id] = load }
        }
        let route = DurableRoute(matches.targets { loads[$0] }, generation: generation)
        // If subscriptions have changed meanwhile, the next search looks for the route again.
        shared.state.withLock { if $0.index.version == generation { $0.routes.keep(route, to: topic, matches.key) } }
        return route
    }

    /// Sets the connected members of shared subscriptions. From then on, a shared subscription can also have members
    /// whose sessions are not kept.
    func share(_ groups: SharedGroups) { shared.live.withLock { $0 = groups } }

    /// Stores a publication for all targets that get it with QoS 1 or 2, and retains it if `retains` is true.
    ///
    /// - Parameters:
    ///   - publication: the publication, with the publisher's QoS.
    ///   - targets: the durable subscribers of its topic. Targets that get the publication at most once are served only
    ///     by the live path, which delivers to connected clients. In each group, this function chooses the member that
    ///     gets the publication, whether the member's session is kept or not. The live path must not choose another
    ///     member (``DecidedShares``).
    ///   - publisher: the publisher's own durable session, for "no local" and for `receivedID`.
    ///   - receivedID: with QoS 2, the publisher's packet identifier, which is remembered until
    ///     ``receivedReleased(_:_:source:completion:)``.
    ///   - retains: whether the publication is retained; an empty payload removes the retained publication of the
    ///     topic.
    ///   - mustRetain: whether the publication is refused with `.quotaExceeded` if there is no room to retain it. If
    ///     this is false, the publication is delivered but not retained in that case.
    ///   - source: the publisher, who pays for the publication while it is retained.
    ///   - reach: notes whether some targets have the publication although storing it has failed.
    ///   - completion: called exactly once. Success means that the publication is committed; attachments get it
    ///     afterwards. After the errors `.overloaded` and `.quotaExceeded`, nothing is stored. After
    ///     `.storageUnavailable` and `.shuttingDown`, some targets may have the publication (``DurableFanOut``,
    ///     ``isPartlyStored(_:_:)``).
    package func publish(
        _ publication: StoredPublication,
        targets: [DurableTarget],
        from publisher: DurableSessionID? = nil,
        receivedID: UInt16? = nil,
        retains: Bool = false,
        mustRetain: Bool = false,
        source: CommitSource = .server,
        reach: PublicationReach? = nil,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        var publication = publication
        publication.source = source
        // If there is no room to retain the publication, it is delivered but not retained.
        let isRoom = !retains || retained.begin(publication)
        guard isRoom || !mustRetain else { return completion(.failure(Self.retainedFull)) }
        let received = publisher.flatMap { publisher in
            receivedID.flatMap { publisher.isStored ? ReceivedMark(session: publisher, id: $0) : nil }
        }
        let request = PublishRequest(
            publication: publication,
            targets: targets,
            publisher: publisher,
            received: received,
            retains: retains && isRoom,
            source: source,
            reach: reach,
            completion: completion
        )
        let known = received.flatMap { received in
            shared.state.withLock { $0.records[received.session]?.partial.removeValue(forKey: received.id) }
        }
        if known != nil || DurableFanOut.isNeeded(for: request) {
            fanOut(request, DurableFanOut(request, of: self, known: known))
        } else {
            publishWhole(request)
        }
    }

    /// Stores a publication for all its targets in one operation.
    private func publishWhole(_ request: PublishRequest) {
        let publication = request.publication
        var walk = Walk(request.targets)
        let chosen = choose(&walk, for: publication, from: request.publisher)
        guard !chosen.targets.isEmpty || request.received != nil || request.retains else {
            hand(publication, to: chosen.live)
            return request.completion(.success(()))
        }
        let operation = SessionOperation.publish(
            publication,
            targets: chosen.targets,
            received: request.mark(with: chosen),
            retains: request.retains
        )
        committer.submit(operation, of: request.source) { [self] result in
            if case .success(.published(let seqs)) = result, request.received != nil, !chosen.lost(seqs).isEmpty {
                return fanOut(request, DurableFanOut(request, of: self, after: chosen, seqs))
            }
            if request.retains { retained.finish(publication, isStored: result.isSuccess) }
            if result.isSuccess {
                hand(publication, to: chosen.live)
            } else {
                chosen.giveBack()
            }
            guard case .success(.published(let seqs)) = result else { return request.completion(result.map { _ in }) }
            request.reach?.note(if: request.retains || !chosen.live.isEmpty || seqs.contains { $0 != 0 })
            publish(
                publication,
                insteadOf: chosen.lost(seqs)[...],
                reach: request.reach,
                completion: request.completion
            )
        }
    }

    /// Retains a publication for its topic; an empty payload removes the topic's retained publication.
    ///
    /// - Parameter completion: success means that the change is committed.
    package func retain(
        _ publication: StoredPublication,
        source: CommitSource = .server,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void = { _ in }
    ) {
        var publication = publication
        publication.source = source
        guard retained.begin(publication) else { return completion(.failure(Self.retainedFull)) }
        let retained = retained
        committer.submit(.retain(publication), of: source) { [publication] result in
            retained.finish(publication, isStored: result.isSuccess)
            completion(result.map { _ in })
        }
    }

    // MARK: A session's connection

    /// Adds subscriptions; they replace existing subscriptions with the same filters. When `completion` is called with
    /// success, the subscriptions are in force, except those for which there is no room (``FilterChange/refused``). If
    /// there are many subscriptions, they are stored in parts. After an error, the first subscriptions may have been
    /// added, and `completion` gets their number.
    package func subscribe(
        _ id: DurableSessionID,
        _ subscriptions: [DurableSubscription],
        source: CommitSource = .server,
        completion: @escaping @Sendable (FilterChange) -> Void
    ) {
        guard id.isStored, !subscriptions.isEmpty else { return completion(FilterChange(done: subscriptions.count)) }
        let reservation = reserve(id, subscriptions)
        let (accepted, refused) = (reservation.accepted, reservation.refused)
        guard !accepted.isEmpty else { return completion(FilterChange(done: 0, refused: refused)) }
        let (units, payer) = (reservation.units, reservation.payer)
        let parts = DurableFilterParts(accepted) { part in
            .subscribe(id, part)
        } stored: { [self] number, part in
            let actions = shared.change { state in
                state.giveBack(units[number], of: id, payer: payer)
                state.subscribe(id, part)
                return state.changedSubscriptions(of: id)
            }
            perform(actions)
        }
        let bytes = accepted.reduce(512) { $0 + $1.filter.utf8.count + 64 }
        submit(parts, bytes: bytes, of: source) { [self] change in
            let left = units.dropFirst(parts.stored).reduce(0, +)
            if left > 0 { shared.change { $0.giveBack(left, of: id, payer: payer) } }
            let change = FilterChange(done: change.done, error: change.error, refused: refused)
            confirmed(id) { completion(change) }
        }
    }

    /// Removes subscriptions, by their filters. After `completion` is called with success, nothing more is queued for
    /// them. If there are many subscriptions, they are removed in parts. After an error, the first subscriptions may
    /// have been removed, and `completion` gets their number.
    ///
    /// - Parameter isUrgent: whether the removal is accepted even if too many operations wait.
    package func unsubscribe(
        _ id: DurableSessionID,
        _ filters: [String],
        source: CommitSource = .server,
        isUrgent: Bool = false,
        completion: @escaping @Sendable (FilterChange) -> Void
    ) {
        guard id.isStored, !filters.isEmpty else { return completion(FilterChange(done: filters.count)) }
        let parts = DurableFilterParts(filters) { part in
            .unsubscribe(id, part)
        } stored: { [self] _, part in
            let actions = shared.change { state in
                state.unsubscribe(id, part)
                return state.changedSubscriptions(of: id)
            }
            perform(actions)
        }
        let bytes = filters.reduce(512) { $0 + $1.utf8.count + 32 }
        submit(parts, bytes: bytes, of: source, isUrgent: isUrgent) { [self] change in
            confirmed(id) { completion(change) }
        }
    }

    /// Calls the completion after the other nodes have read the session's subscriptions, or if they do not answer in
    /// time.
    private func confirmed(_ id: DurableSessionID, _ completion: @escaping @Sendable () -> Void) {
        guard let confirmations else { return completion() }
        confirmations.wait(for: id, completion)
    }

    /// Takes note that the client has completely acknowledged these publications (PUBACK, PUBCOMP, or PUBREC with an
    /// error code). The acknowledgement is stored some time later. If it is lost before that, the publication is sent
    /// again.
    package func acknowledged(_ id: DurableSessionID, _ seqs: [UInt64]) {
        guard id.isStored, !seqs.isEmpty else { return }
        committer.complete(id, seqs)
    }

    /// Stores that the client has received a publication (PUBREC). PUBREL may be sent only after `completion` is called
    /// with success.
    package func released(
        _ id: DurableSessionID,
        _ seq: UInt64,
        source: CommitSource = .server,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        guard id.isStored else { return completion(.success(())) }
        committer.submit(.released(id, seq), of: source) { completion($0.map { _ in }) }
    }

    /// Stores that the client has released a packet identifier (PUBREL). PUBCOMP may be sent only after `completion` is
    /// called with success. After PUBCOMP, the client may reuse the identifier. After a restart, the store must not
    /// mistake the new publication for the old one.
    package func receivedReleased(
        _ id: DurableSessionID,
        _ released: UInt16,
        source: CommitSource = .server,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        guard id.isStored else { return completion(.success(())) }
        committer.submit(.receivedReleased(id, released), of: source) { completion($0.map { _ in }) }
    }

    /// Reads a session's queue after `seq`, without expired publications. `completion` runs in a task, or at once on
    /// the caller's thread if the read is refused.
    ///
    /// - Parameter sentUpTo: publications up to this seq were sent before and do not expire.
    package func queued(
        of id: DurableSessionID,
        after seq: UInt64,
        sentUpTo: UInt64 = 0,
        limit: Int,
        completion: @escaping @Sendable (Result<DurablePage, HermesError>) -> Void
    ) {
        let owner = shared.state.withLock { $0.records[id]?.key.owner }
        // All clients without a name count as one source here. Each connection has only one such read at a time.
        let isAccepted = reads.run(for: owner.flatMap { CommitSource($0) } ?? .server) { [self] in
            do throws(HermesError) {
                completion(.success(try await page(of: id, after: seq, sentUpTo, limit: max(1, limit))))
            } catch {
                completion(.failure(error))
            }
        }
        if !isAccepted { completion(.failure(ReadGate.tooManyReads)) }
    }

    private func page(
        of id: DurableSessionID,
        after seq: UInt64,
        _ sentUpTo: UInt64,
        limit: Int
    ) async throws(HermesError) -> DurablePage {
        var after = seq
        while true {
            let head = shared.state.withLock { $0.records[id]?.head ?? 0 }
            let page = try await store.queued(of: id, after: after, limit: limit, maxBytes: settings.maxPageBytes)
            let found = page.publications
            let now = time.now()
            var bytes = 0
            var expired: [UInt64] = []
            var expiredBytes = 0
            // The loop uses indices, because a loop over the elements would copy each element with all its references.
            for index in found.indices {
                let weight = found[index].weight
                bytes += weight
                guard found[index].seq > sentUpTo, found[index].publication.hasExpired(at: now) else { continue }
                expired.append(found[index].seq)
                expiredBytes += weight
            }
            var alive = found
            if !expired.isEmpty {
                acknowledged(id, expired)
                let expired = Set(expired)
                alive.removeAll { expired.contains($0.seq) }
            }
            guard alive.isEmpty && !page.isAtEnd else {
                return DurablePage(
                    publications: alive,
                    weight: bytes - expiredBytes,
                    upTo: page.isAtEnd ? max(head, page.upTo) : page.upTo,
                    isAtEnd: page.isAtEnd
                )
            }
            after = page.upTo
        }
    }

    private static let retainedFull = HermesError(
        .quotaExceeded,
        "Your account, your address or the server has reached its limit of retained messages (mqtt.retained.max…). "
            + "Remove some retained messages."
    )
}

extension Result {
    var isSuccess: Bool {
        switch self {
        case .success: true
        case .failure: false
        }
    }

    var error: Failure? {
        guard case .failure(let error) = self else { return nil }
        return error
    }
}
