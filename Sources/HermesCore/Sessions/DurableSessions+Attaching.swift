// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension DurableSessions {
    /// Gives a connection exclusive use of the session of a key. If another connection has the session,
    /// ``DurableAttachment/replaced()`` is called for it, and it detaches first. If the client of that other connection
    /// asked later (``DurableAttachment/order``), this connection does not get the session.
    ///
    /// It is also called for sessions that end with their connection (`expiry` zero). Such a session is not stored, but
    /// it takes the key over and, if `clean` is true, ends an existing durable session.
    ///
    /// - Parameters:
    ///   - key: the session's key.
    ///   - clean: whether an existing session is discarded.
    ///   - expiry: how long the session stays after the connection ends; zero: it ends with the connection; nil: it
    ///     stays forever.
    ///   - attachment: the connection.
    ///   - completion: called exactly once. After success (and only then) the attachment must detach once, whatever
    ///     happens meanwhile. Errors: `.replaced` (the client of another connection asked later), `.quotaExceeded`,
    ///     `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
    package func attach(
        _ key: SessionKey,
        clean: Bool,
        expiry: Duration?,
        attachment: any DurableAttachment,
        completion: @escaping @Sendable (Result<DurableOpening, HermesError>) -> Void
    ) {
        let applicant = DurableState.Applicant(
            attachment: attachment,
            clean: clean,
            expiry: expiry.map { max($0, .zero) },
            at: time.now(),
            completion: completion
        )
        perform(shared.change { $0.attach(key, applicant) })
    }

    /// Detaches a connection from its session. Has no effect if another connection has the session.
    ///
    /// - Parameters:
    ///   - id: the session's id, from the ``DurableOpening``.
    ///   - attachment: the connection that had the session.
    ///   - sentUpTo: the newest seq that may have reached the client.
    ///   - expiry: how long the session stays from now; zero: it ends now; nil: forever.
    package func detach(
        _ id: DurableSessionID,
        _ attachment: any DurableAttachment,
        sentUpTo: UInt64,
        expiry: Duration?
    ) {
        let expiresAt = expiry.map { time.now().advanced(by: max($0, .zero)) }
        let ends = expiry.map { $0 <= .zero } ?? false
        let redistributesAt = settings.sharedRedistribution.map { time.now().advanced(by: $0) }
        let actions = shared.change {
            $0.detach(
                id,
                attachment,
                sentUpTo: sentUpTo,
                expiresAt: expiresAt,
                redistributesAt: redistributesAt,
                ends: ends
            )
        }
        perform(actions)
    }

    /// Ends expired sessions. If a session has no connection, its messages from shared subscriptions go to other
    /// members. Called about once a second.
    ///
    /// - Parameters:
    ///   - isClockConfirmed: whether the clock can be trusted; if not, a session does not expire if it comes from an
    ///     earlier process or from another node.
    ///   - isOnDuty: whether this node does this for all nodes.
    func expire(now: Timestamp, isClockConfirmed: Bool = true, isOnDuty: Bool = true, limit: Int = 1000) {
        let actions = shared.change {
            $0.expire(now: now, isClockConfirmed: isClockConfirmed, isOnDuty: isOnDuty, limit: limit)
        }
        perform(actions)
        // Each call removes some filters of ended sessions. Other threads can take the lock between two calls.
        while shared.change({ !$0.leaving.isEmpty }) {}
        redistribute(now: now, isOnDuty: isOnDuty)
    }

    /// Returns a stamp for a login that begins now (``reason(toEnd:of:since:)``).
    package func loginBegins() -> UInt64 { ends.stamp() }

    /// Returns the reason why a newly attached connection must end, because its owner's connections were ended after
    /// its login began; nil: the connection can stay.
    package func reason(
        toEnd key: SessionKey,
        of attachment: (any DurableAttachment)? = nil,
        since stamp: UInt64
    ) -> AttachmentEnd? {
        ends.reason(toEnd: key.owner, since: stamp) {
            $0.contains(clientID: key.clientID, tokenOwner: attachment?.tokenOwner, login: attachment?.login)
        }
    }

    /// Ends connections of an owner (``SessionKey/owner``), including logins under way.
    ///
    /// - Parameter name: the user name of the connections that end, in its compared form (``NickName/key``).
    ///   Connections without a user name end, too. Nil: all connections end, whatever their names.
    package func end(
        _ owner: SessionOwner,
        _ reason: AttachmentEnd,
        _ devices: EndedDevices,
        named name: String? = nil
    ) {
        // The end is recorded first, so that connections that attach later find it.
        ends.record(owner, reason, devices)
        let attachments = shared.state.withLock {
            $0.attachments(of: owner) {
                (name == nil || $1.userName == nil || $1.userName == name)
                    && devices.contains(clientID: $0, tokenOwner: $1.tokenOwner, login: $1.login)
            }
        }
        for attachment in attachments { attachment.ended(reason) }
    }

    /// Gives the connections of an account its new name, because they may act for the account later.
    func rename(_ user: UserID, to name: NickName) {
        for attachment in shared.state.withLock({ $0.attachments(of: .account(user)) }) { attachment.renamed(to: name) }
    }

    /// In the owner's sessions that have no connection, ends the subscriptions whose filter equals the topic.
    ///
    /// - Returns: the number of sessions that had such a subscription.
    /// - Throws: `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
    package func endSubscriptions(of owner: SessionOwner, to topic: TopicName) async throws(HermesError) -> Int {
        var count = 0
        for key in shared.state.withLock({ $0.seats.keys(of: owner) }) {
            guard let (id, filters) = absentSubscriptions(of: key, to: topic) else { continue }
            count += 1
            let result = await withCheckedContinuation { continuation in
                unsubscribe(id, filters) { continuation.resume(returning: $0.result) }
            }
            // The session may have ended meanwhile.
            if case .failure(let error) = result, error.code != .notFound { throw error }
        }
        return count
    }

    /// Returns the stored session of a key; nil if there is none, or if it has ended.
    package func session(of key: SessionKey) -> DurableSessionID? {
        shared.state.withLock { $0.session(of: key) }
    }

    /// Returns the session of a key, and its subscriptions whose filter equals the topic; nil if there are none, or if
    /// the session has a connection.
    private func absentSubscriptions(
        of key: SessionKey,
        to topic: TopicName
    ) -> (id: DurableSessionID, filters: [String])? {
        // The subscriptions are compared without the lock, because all event loops wait for it.
        guard let (id, subscriptions) = shared.state.withLock({ $0.absentSession(of: key) }) else { return nil }
        let filters = subscriptions.filter { $0.subscribes(exactlyTo: topic) }.map(\.rawValue)
        return filters.isEmpty ? nil : (id, filters)
    }

    /// Reads all sessions and retained publications; called once, before the first attachment.
    ///
    /// If a session was online when the process ended, all its unacknowledged publications may have been sent, and its
    /// expiry period begins again now. If there are several nodes, a session that was online is left as it is, because
    /// another node may have it open.
    package func load() async throws(HermesError) {
        try await loadRetained()
        try await loadSessions()
    }

    /// The first part of ``load()``.
    func loadRetained() async throws(HermesError) { retained.load(try await store.retained()) }

    /// The second part of ``load()``.
    func loadSessions() async throws(HermesError) {
        let now = time.now()
        let sessions = try await store.sessions()
        let redistributesAt = settings.sharedRedistribution.map { now.advanced(by: $0) }
        var closing: [SessionOperation] = []
        shared.change { state in
            for session in sessions {
                let isLeft = session.isOnline && session.place == nil
                let expiresAt = isLeft ? session.expiry.map { now.advanced(by: $0) } : session.expiresAt
                state.load(session, expiresAt: expiresAt, redistributesAt: redistributesAt)
                guard isLeft else { continue }
                closing.append(.close(session.id, sentUpTo: session.head, expiresAt: expiresAt))
            }
        }
        for part in closing.slices(of: 1000) { _ = try store.commit(Array(part), now: now) }
    }

    func perform(_ actions: [DurableState.Action]) {
        for action in actions {
            switch action {
            case .replace(let attachment):
                attachment.replaced()
            case .close(let id, let operation, let source):
                // Submitted after the connection's own operations, so that the next connection finds the results of all
                // of them.
                committer.submit(operation, of: source, isUrgent: true) { [self] result in
                    perform(shared.change { $0.closed(id, result.error) })
                }
            case .remove(let id, let sentUpTo, let mayHoldShared, let opening):
                remove(id, sentUpTo: sentUpTo, mayHoldShared: mayHoldShared, opening: opening)
            case .open(let key, let operation, let source):
                committer.submit(operation, of: source) { [self] result in
                    perform(shared.change { $0.opened(key, result) })
                }
            case .succeed(let applicant, let opening):
                applicant.completion(.success(opening))
            case .fail(let applicant, let error):
                applicant.completion(.failure(error))
            case .ended(let key):
                ended(key)
            case .advance(let attachment, let head):
                attachment.advanced(to: head)
            case .changed(let id):
                news.changed(id)
            case .outdated(let id):
                news.outdated(id)
            case .attached(let key, let time):
                news.attached(AttachedClient(key: key, at: time))
            }
        }
    }
}
