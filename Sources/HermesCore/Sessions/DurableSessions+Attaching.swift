// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension DurableSessions {
    /// Gives a connection exclusive use of the session of a key. If another connection has the session, that connection
    /// must detach first; ``DurableAttachment/replaced()`` is called for it. If the client of the other connection
    /// asked for the session later (``DurableAttachment/order``), this connection does not get the session.
    ///
    /// This function is also called for sessions that end with their connection (`expiry` is zero). If the key has a
    /// durable session and `clean` is false, the connection gets that durable session. Otherwise, the new session is
    /// not stored, and replaces an existing session of the key.
    ///
    /// - Parameters:
    ///   - key: the session's key.
    ///   - clean: whether an existing session is discarded.
    ///   - expiry: the time for which the session stays after the connection ends. Zero means that the session ends
    ///     with the connection. Nil means that the session stays forever.
    ///   - attachment: the connection.
    ///   - completion: called exactly once. After success, the attachment must detach exactly once, whatever happens
    ///     meanwhile. After an error, it need not detach. The errors are `.replaced` (the client of another connection
    ///     asked later), `.quotaExceeded`, `.overloaded`, `.storageUnavailable` and `.shuttingDown`.
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

    /// Detaches a connection from its session. This has no effect if another connection has the session.
    ///
    /// - Parameters:
    ///   - id: the session's id, from the ``DurableOpening``.
    ///   - attachment: the connection that had the session.
    ///   - sentUpTo: the newest seq that may have reached the client.
    ///   - expiry: the time for which the session stays from now on. Zero means that the session ends now. Nil means
    ///     that the session stays forever.
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

    /// Ends expired sessions, and stores again the ends of connections that the store could not record. Also gives the
    /// messages of sessions that have long been without a connection to other members of the shared subscriptions
    /// (``redistribute(now:isOnDuty:most:)``). This is called about once a second.
    ///
    /// - Parameters:
    ///   - isClockConfirmed: whether the clock can be trusted. If not, sessions from an earlier process or from another
    ///     node do not expire.
    ///   - isOnDuty: whether this node does this work for all nodes.
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

    /// Returns the reason why a newly attached connection must end; nil if it can stay. It must end if its owner's
    /// connections were ended after its login began.
    package func reason(
        toEnd key: SessionKey,
        of attachment: (any DurableAttachment)? = nil,
        since stamp: UInt64
    ) -> AttachmentEnd? {
        ends.reason(toEnd: key.owner, since: stamp) {
            $0.contains(clientID: key.clientID, tokenOwner: attachment?.tokenOwner, login: attachment?.login)
        }
    }

    /// Ends connections of an owner (``SessionKey/owner``), including connections whose login is still under way.
    ///
    /// - Parameter name: the user name of the connections that end, in the form of ``NickName/key``. Connections
    ///   without a user name end, too. If the parameter is nil, all connections end.
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

    /// Gives the account's new name to its connections, because they may act for the account later.
    func rename(_ user: UserID, to name: NickName) {
        for attachment in shared.state.withLock({ $0.attachments(of: .account(user)) }) { attachment.renamed(to: name) }
    }

    /// Ends the subscriptions whose filter equals the topic, in all sessions of the owner that have no connection.
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

    /// Returns the session of a key, and the session's subscriptions whose filter equals the topic. Returns nil if
    /// there are no such subscriptions, or if the session has a connection.
    private func absentSubscriptions(
        of key: SessionKey,
        to topic: TopicName
    ) -> (id: DurableSessionID, filters: [String])? {
        // The subscriptions are compared without the lock, because all event loops wait while the lock is held.
        guard let (id, subscriptions) = shared.state.withLock({ $0.absentSession(of: key) }) else { return nil }
        let filters = subscriptions.filter { $0.subscribes(exactlyTo: topic) }.map(\.rawValue)
        return filters.isEmpty ? nil : (id, filters)
    }

    /// Reads all sessions and retained publications; called once, before the first attachment.
    ///
    /// If a session was online when the process ended, all its unacknowledged publications count as sent, and its
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
                // The end is submitted after the connection's own operations, so that the next connection finds the
                // results of all these operations.
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
