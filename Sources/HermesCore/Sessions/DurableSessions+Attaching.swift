// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension DurableSessions {
    /// Gives a connection exclusive use of the session of its key. A connection that has it is told
    /// ``DurableAttachment/replaced()`` and detaches first.
    ///
    /// Also for sessions that end with their connection (`expiry` zero): they are not stored, but take the key over
    /// and, if `clean`, end an existing durable session.
    ///
    /// - Parameters:
    ///   - key: the session's key.
    ///   - clean: discards an existing session.
    ///   - expiry: how long the session stays after the connection; zero: it ends with it; nil: forever.
    ///   - attachment: the connection.
    ///   - completion: called exactly once. After success (and only then) the attachment must detach once, whatever
    ///     happens meanwhile. Errors: `.forbidden` (a third connection took over while this one waited, and this one
    ///     was told ``DurableAttachment/replaced()``), `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
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

    /// Leaves the session; does not affect another attachment.
    ///
    /// - Parameters:
    ///   - id: from the opening.
    ///   - attachment: the one that had the session.
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

    /// Ends expired sessions, and redistributes the shared messages of absent ones; called about once a second.
    ///
    /// - Parameters:
    ///   - isClockConfirmed: whether the clock may be trusted with the sessions of an earlier process; if not,
    ///     these stay.
    ///   - isOnDuty: whether this node does it for all.
    func expire(now: Timestamp, isClockConfirmed: Bool = true, isOnDuty: Bool = true, limit: Int = 1000) {
        let actions = shared.change {
            $0.expire(now: now, isClockConfirmed: isClockConfirmed, isOnDuty: isOnDuty, limit: limit)
        }
        perform(actions)
        // Others have their turn between two of them.
        while shared.change({ !$0.leaving.isEmpty }) {}
        redistribute(now: now, isOnDuty: isOnDuty)
    }

    /// A stamp for a login that begins now, see ``reason(toEnd:since:)``.
    package func loginBegins() -> UInt64 { ends.stamp() }

    /// The reason why a newly attached connection must end: its owner's connections were ended after its login began;
    /// nil: it may stay.
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
    /// - Parameter name: the name of the connections that end, in its compared form (``NickName/key``); nil: any.
    package func end(
        _ owner: SessionOwner,
        _ reason: AttachmentEnd,
        _ devices: EndedDevices,
        named name: String? = nil
    ) {
        // Recorded first, so that later attachments find it.
        ends.record(owner, reason, devices)
        let attachments = shared.state.withLock {
            $0.attachments(of: owner) {
                (name == nil || $1.userName == nil || $1.userName == name)
                    && devices.contains(clientID: $0, tokenOwner: $1.tokenOwner, login: $1.login)
            }
        }
        for attachment in attachments { attachment.ended(reason) }
    }

    /// Ends subscriptions to one topic, without wildcards, of an owner's sessions that have no connection.
    ///
    /// - Returns: the number of sessions that had one.
    /// - Throws: `.overloaded`, `.storageUnavailable`, `.shuttingDown`.
    package func endSubscriptions(of owner: SessionOwner, to topic: TopicName) async throws(HermesError) -> Int {
        let found = shared.state.withLock { $0.subscriptions(of: owner, to: topic) }
        for (id, filters) in found {
            let result = await withCheckedContinuation { continuation in
                unsubscribe(id, filters) { continuation.resume(returning: $0.result) }
            }
            // Its session may have ended meanwhile.
            if case .failure(let error) = result, error.code != .notFound { throw error }
        }
        return found.count
    }

    /// Reads all sessions and retained publications; called once, before the first attachment.
    ///
    /// For a session that was online when the process ended, all unacknowledged publications may have been sent, and
    /// its full expiry starts now. Among several nodes, another one may have the session open.
    package func load() async throws(HermesError) {
        retained.load(try await store.retained())
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
                // Behind the connection's own operations, so that the next one finds all of them.
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
