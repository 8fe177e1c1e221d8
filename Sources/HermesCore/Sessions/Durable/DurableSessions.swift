// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Durable sessions: their owners, their queues, and the guarantee that changes are stored before they are
/// acknowledged. Thread-safe.
///
/// Completions run on the committer's thread, or at once on the caller's if nothing is stored or the call is refused.
/// They must not block. Operations of one ``CommitSource`` are committed and completed in the order of the calls;
/// sources take turns. State: a ``Locked`` ``DurableState``; nothing is called under it.
package final class DurableSessions: Sendable {
    /// Counts since the start, and present numbers.
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

    /// State that loops may read without the lock.
    final class Shared: Sendable {
        let state: Locked<DurableState>
        let generation = Atomic<UInt64>(1)
        let hasSubscriptions = Atomic(false)
        /// The connected members of shared subscriptions, kept or not.
        let live = Mutex<SharedGroups?>(nil)

        init(_ settings: DurableSettings) { state = Locked(DurableState(settings)) }

        /// Changes the state, and tells the loops if subscriptions have changed.
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

        func committed(_ operations: [SessionOperation], _ outcomes: [SessionOutcome]) {
            for (attachment, publications) in state.withLock({ $0.committed(operations, outcomes) }) {
                attachment.committed(publications)
            }
        }
    }

    /// Retained publications; they change through ``publish(_:targets:from:packetID:retains:completion:)`` and
    /// ``retain(_:)``.
    package let retained: RetainedMessages
    let store: any SessionStore
    let time: any TimeSource
    package let settings: DurableSettings
    let shared: Shared
    let committer: SessionCommitter
    let reads: ReadGate
    /// Limits the concurrent moves of queues.
    let handOvers = ReadGate(maxRunning: 2, maxWaiting: .max)
    /// By owner.
    let ends = RecentEnds<SessionOwner>()

    /// Creates the service and starts its committer, which ends with ``shutdown()``.
    package init(store: any SessionStore, time: any TimeSource, settings: DurableSettings = DurableSettings()) {
        let shared = Shared(settings)
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

    /// The queues of all sessions in the store.
    package var queueStatistics: QueueBudget.Statistics { store.queues.statistics }

    /// A session ended without a connection: by expiry, because another connection started clean, because an operator
    /// ended it, or because its owner is gone. Told on any thread.
    package let ended = Hook<SessionKey>()

    /// The owner of a session has its name no more. Told on any thread, before ``ended``.
    package let nameFreed = Hook<SessionKey>()

    /// Commits the waiting operations and refuses further ones.
    package func shutdown() async {
        await committer.shutdown()
        shared.change { $0.farewells.failAll(HermesError(.shuttingDown, "the server is shutting down")) }
    }

    // MARK: Publishing

    /// Whether any durable session has a subscription.
    package var hasSubscriptions: Bool { shared.hasSubscriptions.load(ordering: .acquiring) }

    /// Changes when the result of ``targets(of:)`` may have changed; never 0.
    package var generation: UInt64 { shared.generation.load(ordering: .acquiring) }

    /// The durable subscribers of a topic; valid until ``generation`` changes.
    package func targets(of topic: TopicName) -> [DurableTarget] { hasSubscriptions ? search(topic).route.targets : [] }

    /// The durable subscribers of a topic, and the steps and matches of the search for their filters; 0 if somebody
    /// else has searched since the last change.
    package func search(_ topic: TopicName) -> (route: DurableRoute, work: Int) {
        shared.state.withLock { state in
            let generation = state.index.version
            if let known = state.routes.route(to: topic, generation: generation) { return (known, 0) }
            let found = state.index.targets(of: topic) { state.load(of: $0) }
            let route = DurableRoute(found.targets, generation: generation)
            state.routes.keep(route, to: topic)
            return (route, found.work)
        }
    }

    /// Allows clean members in shared subscriptions from now on.
    func share(_ groups: SharedGroups) { shared.live.withLock { $0 = groups } }

    /// Stores a publication for all that get it at least once, and retains it if asked to.
    ///
    /// - Parameters:
    ///   - publication: the publication, with the publisher's QoS.
    ///   - targets: those of its topic; targets that get it at most once are served by the live path alone. In each
    ///     group it goes to one member, clean or kept: the live path must not choose another one (``DecidedShares``).
    ///   - publisher: the publisher's own durable session, for "no local" and for `packetID`.
    ///   - receivedID: with QoS 2, the publisher's identifier to remember until ``receivedReleased(_:_:)``.
    ///   - retains: whether it is retained; an empty payload removes the retained one.
    ///   - mustRetain: refuses a publication with `.quotaExceeded` if there is no room to retain it; otherwise it is
    ///     only delivered.
    ///   - source: the publisher, who pays for the retained publication.
    ///   - completion: called exactly once. Success means committed; then attachments get it. Errors: `.overloaded`,
    ///     `.quotaExceeded`, `.storageUnavailable`, `.shuttingDown`: nothing was stored.
    package func publish(
        _ publication: StoredPublication,
        targets: [DurableTarget],
        from publisher: DurableSessionID? = nil,
        receivedID: UInt16? = nil,
        retains: Bool = false,
        mustRetain: Bool = false,
        source: CommitSource = .server,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        var publication = publication
        publication.source = source
        // Without room it is delivered and not retained.
        let isRoom = !retains || retained.begin(publication)
        guard isRoom || !mustRetain else { return completion(.failure(Self.retainedFull)) }
        let retains = retains && isRoom
        let chosen = choose(targets, for: publication, from: publisher)
        let received = publisher.flatMap { publisher in
            receivedID.flatMap { publisher.isStored ? ReceivedMark(session: publisher, id: $0) : nil }
        }
        guard !chosen.targets.isEmpty || received != nil || retains else {
            hand(publication, to: chosen.live)
            return completion(.success(()))
        }
        let operation = SessionOperation.publish(
            publication,
            targets: chosen.targets,
            received: received,
            retains: retains
        )
        committer.submit(operation, of: source) { [self, publication] result in
            if retains { retained.finish(publication, isStored: result.isSuccess) }
            if result.isSuccess {
                hand(publication, to: chosen.live)
            } else {
                for load in chosen.loads { load.chosen.subtract(1, ordering: .relaxed) }
            }
            guard case .success(.published(let seqs)) = result, !chosen.loads.isEmpty else {
                return completion(result.map { _ in })
            }
            // The chosen member is gone or full: another member gets it.
            let left = zip(chosen.targets, seqs).filter { $0.share != nil && $1 == 0 }.map(\.0)
            publish(publication, insteadOf: left[...], completion: completion)
        }
    }

    /// Retains a publication for its topic; an empty payload removes the retained one.
    ///
    /// - Parameter completion: success means committed.
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

    /// Adds subscriptions, replacing those with the same filter. They are in force when `completion` is called with
    /// success.
    /// `.quotaExceeded`: there are too many, and none was added.
    package func subscribe(
        _ id: DurableSessionID,
        _ subscriptions: [DurableSubscription],
        source: CommitSource = .server,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        guard id.isStored, !subscriptions.isEmpty else { return completion(.success(())) }
        let shared = shared
        let (reserved, payer) = shared.state.withLock { ($0.reserve(id, subscriptions), $0.records[id]?.payer) }
        guard case .success(let count) = reserved else { return completion(reserved.map { _ in }) }
        committer.submit(.subscribe(id, subscriptions), of: source) { result in
            shared.change { state in
                state.giveBack(count, of: id, payer: payer)
                if result.isSuccess { state.subscribe(id, subscriptions) }
            }
            completion(result.map { _ in })
        }
    }

    /// Removes subscriptions, by their filters. Nothing more is queued for them when `completion` is called.
    package func unsubscribe(
        _ id: DurableSessionID,
        _ filters: [String],
        source: CommitSource = .server,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        guard id.isStored, !filters.isEmpty else { return completion(.success(())) }
        let shared = shared
        committer.submit(.unsubscribe(id, filters), of: source) { result in
            if result.isSuccess { shared.change { $0.unsubscribe(id, filters) } }
            completion(result.map { _ in })
        }
    }

    /// The client has acknowledged these for good (PUBACK, PUBCOMP, or PUBREC with a refusal). Lazy: a lost one causes
    /// a repetition.
    package func acknowledged(_ id: DurableSessionID, _ seqs: [UInt64]) {
        guard id.isStored, !seqs.isEmpty else { return }
        committer.complete(id, seqs)
    }

    /// The client has received a publication (PUBREC). PUBREL may be sent when `completion` is called with success.
    package func released(
        _ id: DurableSessionID,
        _ seq: UInt64,
        source: CommitSource = .server,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        guard id.isStored else { return completion(.success(())) }
        committer.submit(.released(id, seq), of: source) { completion($0.map { _ in }) }
    }

    /// The client has released an identifier. It may be told so when `completion` is called with success: it may then
    /// reuse the identifier, which the store must not take for the old one after a restart.
    package func receivedReleased(
        _ id: DurableSessionID,
        _ released: UInt16,
        source: CommitSource = .server,
        completion: @escaping @Sendable (Result<Void, HermesError>) -> Void
    ) {
        guard id.isStored else { return completion(.success(())) }
        committer.submit(.receivedReleased(id, released), of: source) { completion($0.map { _ in }) }
    }

    /// Reads a session's queue behind `seq`, without expired publications. `completion` runs off the event loops.
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
        // All clients without a name are one here: each connection has one such read at a time.
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
            let found = try await store.queued(of: id, after: after, limit: limit, maxBytes: settings.maxPageBytes)
            let now = time.now()
            func hasExpired(_ queued: QueuedPublication) -> Bool {
                queued.seq > sentUpTo && queued.publication.hasExpired(at: now)
            }
            let expired = found.filter(hasExpired)
            if !expired.isEmpty { acknowledged(id, expired.map(\.seq)) }
            let alive = expired.isEmpty ? found : found.filter { !hasExpired($0) }
            let last = found.last?.seq ?? after
            let bytes = found.reduce(0) { $0 + $1.weight }
            let isAtEnd = found.count < limit && bytes < settings.maxPageBytes
            guard alive.isEmpty && !isAtEnd else {
                return DurablePage(publications: alive, upTo: isAtEnd ? max(head, last) : last, isAtEnd: isAtEnd)
            }
            after = last
        }
    }

    private static let retainedFull = HermesError(
        .quotaExceeded,
        "As much is retained of your account or address, or in all, as may be (mqtt.retained.max…). Remove some."
    )
}

extension Result {
    fileprivate var isSuccess: Bool {
        switch self {
        case .success: true
        case .failure: false
        }
    }
}
