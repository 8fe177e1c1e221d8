// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Messages of a shared subscription that the connected client of their session cannot get. They go to other members.
extension DurableSessions {
    private enum Outcome: Sendable {
        /// Another member has the message, or the message is no longer in the queue.
        case done
        /// No other member can get the message.
        case nobody
        /// The store has failed, and the message is still in the queue.
        case failed
    }

    /// Moves a message to another member of its shared subscription, because the session's client is no longer
    /// permitted to read the message, or because the message is too large for the client.
    ///
    /// - Parameters:
    ///   - isTooLarge: whether the message is too large. In that case, a connected member can get the message only if
    ///     the member is known to accept this size. So the message does not go back and forth between clients with
    ///     small limits.
    ///   - completion: called with false if no other member can get the message, otherwise with true. If the store has
    ///     failed, the message stays in the session's queue, and `completion` is called with true. The move is tried
    ///     again later, until the session's connection ends.
    package func passOn(
        _ queued: QueuedPublication,
        of id: DurableSessionID,
        isTooLarge: Bool,
        completion: @escaping @Sendable (Bool) -> Void
    ) {
        let connection = shared.state.withLock { $0.records[id]?.attachment?.order }
        passOn(queued, of: id, isTooLarge: isTooLarge, tried: []) { [shared, time] outcome in
            if case .failed = outcome, let connection {
                let messages = [queued.seq: isTooLarge]
                shared.state.withLock { $0.delayMoves(of: messages, id, connection, now: time.now()) }
            }
            if case .nobody = outcome { completion(false) } else { completion(true) }
        }
    }

    /// - Parameter tried: the members that could not accept the message.
    private func passOn(
        _ queued: QueuedPublication,
        of id: DurableSessionID,
        isTooLarge: Bool,
        tried: Set<DurableSessionID>,
        completion: @escaping @Sendable (Outcome) -> Void
    ) {
        guard tried.count < Self.maxTries else { return completion(.nobody) }
        var chosen = Chosen()
        let move = item(queued, of: id, tried, isEnding: true, isTooLarge: isTooLarge, &chosen)
        guard let item = move else { return completion(.nobody) }
        committer.submit(.move(QueueMove(from: id, [item]))) { [self, chosen] result in
            guard case .success(.moved(let outcomes, _)) = result, let outcome = outcomes.first else {
                chosen.giveBack()
                return completion(.failed)
            }
            if outcome == .stays, let target = item.target {
                let refused = tried.union([target.session])
                return passOn(queued, of: id, isTooLarge: isTooLarge, tried: refused, completion: completion)
            }
            if outcome == .takenOut { hand(queued.publication, to: chosen.live) }
            completion(outcome == .stays ? .nobody : .done)
        }
    }

    // MARK: Trying again

    /// Tries again to pass on the messages that had to wait because the store failed. A message whose session has
    /// another connection by now is left to this connection.
    func passOnAgain(now: Timestamp) {
        for due in shared.state.withLock({ $0.takeDueMoves(now: now) }) {
            // The sources take turns, as in a redistribution.
            let isAccepted = handOvers.run(for: due.payer) { [self] in await passOnAgain(due) }
            if !isAccepted { delay(due.moves.messages, of: due) }
        }
    }

    private func passOnAgain(_ due: DurableState.DueMoves) async {
        var left = due.moves.messages
        guard let first = left.keys.min() else { return }
        var after = max(first, 1) - 1
        while !left.isEmpty {
            guard shared.state.withLock({ $0.isConnected(due.id, due.moves.connection) }) else { return }
            let page: QueuePage
            do throws(HermesError) {
                page = try await store.shared(of: due.id, after: after, limit: 256, maxBytes: settings.maxPageBytes)
            } catch {
                return delay(left, of: due)
            }
            for queued in page {
                guard let isTooLarge = left[queued.seq] else { continue }
                switch await passOnAgain(queued, of: due.id, isTooLarge: isTooLarge) {
                case .done: break
                case .nobody: acknowledged(due.id, [queued.seq])
                case .failed: return delay(left, of: due)
                }
                left[queued.seq] = nil
            }
            // Messages that are left after the last page are no longer in the queue.
            guard !page.isAtEnd, page.upTo > after else { return }
            after = page.upTo
        }
    }

    private func passOnAgain(_ queued: QueuedPublication, of id: DurableSessionID, isTooLarge: Bool) async -> Outcome {
        // What has expired goes to nobody else [MQTT-3.3.2-5].
        if queued.publication.hasExpired(at: time.now()) { return .nobody }
        return await withCheckedContinuation { continuation in
            passOn(queued, of: id, isTooLarge: isTooLarge, tried: []) { continuation.resume(returning: $0) }
        }
    }

    private func delay(_ messages: [UInt64: Bool], of due: DurableState.DueMoves) {
        let (connection, pause) = (due.moves.connection, due.moves.pause)
        shared.state.withLock {
            $0.delayMoves(of: messages, due.id, connection, after: pause, now: time.now())
        }
    }
}

extension DurableState {
    /// The messages of one session that could not be passed on, because the store failed. A session's queue is bounded,
    /// so their number is bounded, too.
    struct DelayedMoves: Sendable {
        /// The connection whose client cannot get the messages.
        let connection: AttachmentOrder
        /// For each message, by its seq, whether it is too large for the client.
        var messages: [UInt64: Bool] = [:]
        /// The time between the last try and the next one.
        var pause: Duration
        var triesAt: Timestamp
    }

    /// Messages that must be passed on now.
    struct DueMoves: Sendable {
        let id: DurableSessionID
        /// The source that pays for the session.
        let payer: CommitSource
        let moves: DelayedMoves
    }

    /// Whether a session has this connection.
    func isConnected(_ id: DurableSessionID, _ connection: AttachmentOrder) -> Bool {
        records[id]?.attachment?.order == connection
    }

    /// Takes note that messages could not be passed on. The next try follows after a pause that is twice as long as the
    /// last one, as in a redistribution.
    ///
    /// - Parameter pause: the last pause; nil if this was the first try.
    mutating func delayMoves(
        of messages: [UInt64: Bool],
        _ id: DurableSessionID,
        _ connection: AttachmentOrder,
        after pause: Duration? = nil,
        now: Timestamp
    ) {
        guard isConnected(id, connection) else { return }
        let next = min((pause ?? Self.redistributionInterval) * 2, Self.maxRedistributionPause)
        var moves = DelayedMoves(connection: connection, pause: next, triesAt: now.advanced(by: next))
        if let waiting = delayedMoves[id], waiting.connection == connection {
            moves.messages = waiting.messages
            moves.pause = max(moves.pause, waiting.pause)
            moves.triesAt = max(moves.triesAt, waiting.triesAt)
        }
        moves.messages.merge(messages) { $1 }
        delayedMoves[id] = moves
    }

    /// Returns the messages that must be passed on now, and forgets those whose sessions have other connections by now.
    mutating func takeDueMoves(now: Timestamp) -> [DueMoves] {
        guard !delayedMoves.isEmpty else { return [] }
        // If a time is later than this, the clock was set back.
        let latest = now.advanced(by: Self.maxRedistributionPause)
        var due: [DueMoves] = []
        for (id, moves) in delayedMoves {
            guard isConnected(id, moves.connection), let record = records[id] else {
                delayedMoves[id] = nil
                continue
            }
            guard moves.triesAt <= now || moves.triesAt > latest else { continue }
            delayedMoves[id] = nil
            due.append(DueMoves(id: id, payer: record.payer, moves: moves))
        }
        return due
    }
}
