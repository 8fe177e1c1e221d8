// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Kept sessions of several nodes (``DurableState/learn(_:_:now:redistributesAt:)``).
extension DurableSessions {
    /// The news that this process reports to the other nodes. "The record" is the content of the store that all nodes
    /// share.
    struct News: Sendable {
        /// Called when this process has changed a session in the record.
        let changed = Hook<DurableSessionID>()
        /// Called when this process may have an outdated state of a session. The session must be read again.
        let outdated = Hook<DurableSessionID>()
        /// Called when this process has queued publications for sessions that are open on other nodes. The value
        /// contains the newest seq of each of these queues.
        let queued = Hook<[NodeID: [DurableSessionID: UInt64]]>()
        /// Called when a client has connected and its session is not stored.
        let attached = Hook<AttachedClient>()
    }

    package struct AttachedClient: Sendable, Hashable {
        let key: SessionKey
        let at: Timestamp
    }

    var ids: Set<DurableSessionID> { shared.state.withLock { Set($0.records.keys) } }

    /// Begins a reading of the record. Only one task at a time may read the record. A call to ``endReading()`` must
    /// follow.
    func beginReading() { shared.state.withLock { $0.beginReading() } }

    func endReading() { shared.state.withLock { $0.endReading() } }

    /// Takes over the state of sessions, as it was read from the record.
    ///
    /// - Parameters:
    ///   - found: the sessions in the record.
    ///   - ids: the sessions that were looked for.
    /// - Returns: the sessions that must be read again, because this process has changed them since ``beginReading()``
    ///   or is changing them.
    func learn(_ found: [StoredSession], of ids: [DurableSessionID]) -> [DurableSessionID] {
        let found = Dictionary(found.lazy.map { ($0.id, $0) }) { first, _ in first }
        let now = time.now()
        let redistributesAt = settings.sharedRedistribution.map { now.advanced(by: $0) }
        return ids.filter { id in
            let session = found[id]
            let learned = shared.change { $0.learn(id, session, now: now, redistributesAt: redistributesAt) }
            perform(learned.actions)
            if let untold = learned.untold { news.queued([untold.node: [id: untold.head]]) }
            switch learned.subscriptions {
            case .none: return learned.isLater
            case .added:
                if let session { add(session.subscriptions, to: id) }
                return learned.isLater
            case .replaced: return session.map { !replaceSubscriptions(by: $0) } ?? learned.isLater
            }
        }
    }

    private func add(_ subscriptions: [DurableSubscription], to id: DurableSessionID) {
        for part in subscriptions.slices(of: DurableState.filtersAtOnce) {
            shared.change { $0.subscribe(id, Array(part)) }
        }
    }

    /// - Returns: false if this process has changed the session meanwhile.
    private func replaceSubscriptions(by session: StoredSession) -> Bool {
        let id = session.id
        let known = shared.state.withLock { $0.records[id]?.subscriptions ?? [] }
        let gone = known.subtracting(session.subscriptions.lazy.map { TopicText($0.filter) })
        func change(_ body: @Sendable (inout DurableState) -> Void) -> Bool {
            shared.change { state in
                let isLearning = state.isLearning(id)
                if isLearning { body(&state) }
                return isLearning
            }
        }
        for part in session.subscriptions.slices(of: DurableState.filtersAtOnce) {
            guard change({ $0.subscribe(id, Array(part)) }) else { return false }
        }
        for part in Array(gone).slices(of: DurableState.filtersAtOnce) {
            guard change({ $0.unsubscribe(id, part.lazy.map(\.rawValue)) }) else { return false }
        }
        return change { $0.records[id]?.subscriptionsVersion = session.subscriptionsVersion }
    }

    /// Whether this process stores publications for a session.
    func knows(_ id: DurableSessionID) -> Bool { shared.state.withLock { $0.records[id]?.hasEnded == false } }

    /// Takes note that other nodes have queued publications. The values are the newest seqs of the queues.
    func queuedElsewhere(_ heads: [DurableSessionID: UInt64]) {
        for (id, head) in heads { perform(shared.state.withLock { $0.advance(id, to: head) }) }
    }

    func attachedElsewhere(_ client: AttachedClient) {
        perform(shared.change { $0.attachedElsewhere(client.key, at: client.at) })
    }

    /// Ends all connections; their sessions stay.
    func endConnections(_ reason: AttachmentEnd) {
        for attachment in shared.state.withLock({ $0.attachments }) { attachment.ended(reason) }
    }
}

/// This node's copy of the kept sessions.
struct SessionReplica: Replica {
    static let pageSize = 256

    let sessions: DurableSessions
    let store: any PlaceStore

    var names: Set<DurableSessionID> { sessions.ids }

    func beginReading() { sessions.beginReading() }

    func endReading() { sessions.endReading() }

    func read(_ names: [DurableSessionID]) async throws(HermesError) -> [DurableSessionID] {
        sessions.learn(try await store.sessions(of: names), of: names)
    }

    func readPage(after name: DurableSessionID?) async throws(HermesError) -> ReplicaPage<DurableSessionID> {
        let page = try await store.sessions(after: name, limit: Self.pageSize)
        let names = page.map(\.id)
        let later = sessions.learn(page, of: names)
        return ReplicaPage(names: names, later: later, next: page.count < Self.pageSize ? nil : names.last)
    }

    func message(_ changes: ChangedNames<DurableSessionID>) -> ClusterMessage { .sessions(changes) }
}

extension ReplicaLinks<SessionReplica> {
    convenience init(_ roster: ClusterRoster, _ sessions: DurableSessions, store: any PlaceStore) {
        self.init(roster, SessionReplica(sessions: sessions, store: store))
        sessions.news.changed.observe { [weak self] in self?.changed($0) }
        sessions.news.outdated.observe { [weak self] in self?.later([$0]) }
        sessions.news.queued.observe { heads in
            for (node, heads) in heads { roster.bus.publish(.queued(heads), to: NodeSet(node)) }
        }
        sessions.news.attached.observe { roster.bus.hint(.attached($0), to: roster.peers) }
    }

    /// Reads a session from the record repeatedly, until this process has taken the session over. Stops after about a
    /// second.
    func readUntilKnown(_ id: DurableSessionID) async {
        for _ in 0..<50 {
            if await readNow(id), copy.sessions.knows(id) { return }
            // An earlier connection of the session's client is still ending on this node, or the record cannot be read.
            try? await Task.sleep(for: .milliseconds(20))
        }
    }
}
