// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Messages of a shared subscription that the connected client of their session cannot get. They go to other members.
///
/// A message moves only while the session has the connection that has passed the message on. The next connection may
/// have sent the message already, or its client may accept larger packets.
extension DurableSessions {
    private enum Outcome: Sendable {
        /// Another member has the message, or the message is no longer in the queue.
        case done
        /// No other member can get the message.
        case nobody
        /// The store has failed, and the message is still in the queue.
        case failed
        /// The connection has ended. The session's next connection gets the message.
        case ended
    }

    /// Moves a message to another member of its shared subscription, because the session's client is no longer
    /// permitted to read the message, or because the message is too large for the client. If the store fails, the
    /// message stays in the session's queue, and the move is tried again later, until the session's connection ends.
    ///
    /// Each message is remembered until `completion` is called. The caller limits the number of these messages.
    ///
    /// - Parameters:
    ///   - isTooLarge: whether the message is too large. In that case, a connected member can get the message only if
    ///     the member is known to accept this size. So the message does not go back and forth between clients with
    ///     small limits.
    ///   - completion: called with true when the message has left the queue, or with false if no other member can get
    ///     the message. It is called at most once, and not if the session's connection ends before that.
    package func passOn(
        _ queued: QueuedPublication,
        of id: DurableSessionID,
        isTooLarge: Bool,
        completion: @escaping @Sendable (Bool) -> Void
    ) {
        guard let connection = shared.state.withLock({ $0.records[id]?.attachment?.order }) else { return }
        passOn(queued, of: id, connection, isTooLarge: isTooLarge, tried: []) { [shared, time] outcome in
            switch outcome {
            case .done: completion(true)
            case .nobody: completion(false)
            case .failed:
                let moves = [queued.seq: DurableState.DelayedMove(isTooLarge: isTooLarge, completion: completion)]
                shared.state.withLock { $0.delay(moves, of: id, connection, now: time.now()) }
            case .ended: break
            }
        }
    }

    /// - Parameter tried: the members that could not accept the message.
    private func passOn(
        _ queued: QueuedPublication,
        of id: DurableSessionID,
        _ connection: AttachmentOrder,
        isTooLarge: Bool,
        tried: Set<DurableSessionID>,
        completion: @escaping @Sendable (Outcome) -> Void
    ) {
        guard tried.count < Self.maxTries else { return completion(.nobody) }
        var chosen = Chosen()
        let found = self.item(queued, of: id, tried, isEnding: true, isTooLarge: isTooLarge, &chosen)
        guard let item = found else { return completion(.nobody) }
        let move = self.move([item], of: id)
        submit(move, of: connection) { [self, chosen] result in
            do throws(HermesError) {
                switch try moved(move, chosen, result).outcomes.first {
                case nil: completion(.ended)
                case .stays:
                    guard let target = item.target else { return completion(.nobody) }
                    let refused = tried.union([target.session])
                    passOn(queued, of: id, connection, isTooLarge: isTooLarge, tried: refused, completion: completion)
                case .queued, .takenOut, .gone: completion(.done)
                }
            } catch {
                completion(.failed)
            }
        }
    }

    /// Returns a move that moves nothing if another node has opened the session meanwhile.
    private func move(_ items: [QueueMove.Item], of id: DurableSessionID) -> QueueMove {
        let opening = shared.state.withLock { $0.records[id]?.place?.opening }
        let condition = opening.map { QueueMove.Condition.opened($0) } ?? QueueMove.Condition.none
        return QueueMove(from: id, items, condition: condition)
    }

    /// Commits a move if the session still has this connection at the time of the commit. Otherwise, there are no
    /// outcomes. The source that pays for the session also pays for the move.
    private func submit(
        _ move: QueueMove,
        of connection: AttachmentOrder,
        _ completion: @escaping @Sendable (Result<SessionOutcome, HermesError>) -> Void
    ) {
        let id = move.session
        let payer = shared.state.withLock { $0.records[id]?.payer } ?? .server
        // The end of a connection is noted first, and committed after that. The session's next connection reads the
        // queue after that commit. So it finds no message that moves here.
        committer.submit(
            move,
            of: payer,
            if: { [shared] in shared.state.withLock { $0.isConnected(id, connection) } },
            completion
        )
    }

    // MARK: Trying again

    /// Tries again to pass on the messages that had to wait because the store failed. A message whose session has
    /// another connection by now is left to this connection.
    func passOnAgain(now: Timestamp) {
        for due in shared.state.withLock({ $0.takeDueMoves(now: now) }) { passOnPage(of: due) }
    }

    /// Passes on the messages of the next page of a queue, and then lets other sources have their turn, as in a
    /// redistribution.
    private func passOnPage(of due: DurableState.DueMoves) {
        let isAccepted = handOvers.run(for: due.payer) { [self] in await passOnNow(due) }
        if !isAccepted { delay(due) }
    }

    private func passOnNow(_ due: DurableState.DueMoves) async {
        var due = due
        guard let first = due.messages.keys.min() else { return }
        let after = max(first, 1) - 1
        let page: QueuePage
        do throws(HermesError) {
            page = try await store.shared(of: due.id, after: after, limit: 256, maxBytes: settings.maxPageBytes)
        } catch {
            return delay(due)
        }
        let now = time.now()
        var waiting: [QueuedPublication] = []
        for queued in page where due.messages[queued.seq] != nil {
            // What has expired goes to nobody else [MQTT-3.3.2-5].
            if queued.publication.hasExpired(at: now) {
                due.settle(queued.seq, isTaken: false)
            } else {
                waiting.append(queued)
            }
        }
        // The members that could not accept a message, by the message's seq.
        var tried: [UInt64: Set<DurableSessionID>] = [:]
        while !waiting.isEmpty {
            do throws(HermesError) {
                guard let left = try await passOn(waiting, of: &due, &tried) else { return }
                waiting = left
            } catch {
                return delay(due)
            }
        }
        // Messages up to here that the page does not contain are no longer in the queue.
        let end = page.isAtEnd || page.upTo <= after ? UInt64.max : page.upTo
        for seq in due.messages.keys.filter({ $0 <= end }) { due.settle(seq, isTaken: true) }
        if !due.messages.isEmpty { passOnPage(of: due) }
    }

    /// Passes on messages in one commit.
    ///
    /// - Parameter tried: the members that could not accept a message, by the message's seq.
    /// - Returns: the messages whose chosen members could not accept them; nil if the connection has ended.
    private func passOn(
        _ waiting: [QueuedPublication],
        of due: inout DurableState.DueMoves,
        _ tried: inout [UInt64: Set<DurableSessionID>]
    ) async throws(HermesError) -> [QueuedPublication]? {
        var chosen = Chosen()
        var items: [QueueMove.Item] = []
        for queued in waiting {
            let refused = tried[queued.seq] ?? []
            let isTooLarge = due.messages[queued.seq]?.isTooLarge ?? false
            if refused.count < Self.maxTries,
                let item = self.item(queued, of: due.id, refused, isEnding: true, isTooLarge: isTooLarge, &chosen)
            {
                items.append(item)
            } else {
                due.settle(queued.seq, isTaken: false)
            }
        }
        guard !items.isEmpty else { return [] }
        let move = self.move(items, of: due.id)
        let connection = due.connection
        let result: Result<SessionOutcome, HermesError> = await withCheckedContinuation { continuation in
            submit(move, of: connection) { continuation.resume(returning: $0) }
        }
        let outcomes = try moved(move, chosen, result).outcomes
        guard outcomes.count == items.count else { return nil }
        var left: [QueuedPublication] = []
        for (item, outcome) in zip(items, outcomes) {
            if outcome == .stays, let target = item.target {
                tried[item.queued.seq, default: []].insert(target.session)
                left.append(item.queued)
            } else {
                due.settle(item.queued.seq, isTaken: true)
            }
        }
        return left
    }

    private func delay(_ due: DurableState.DueMoves) {
        shared.state.withLock {
            $0.delay(due.messages, of: due.id, due.connection, after: due.pause, now: time.now())
        }
    }
}

extension DurableState {
    /// A message that could not be passed on, because the store failed.
    struct DelayedMove: Sendable {
        /// Whether the message is too large for the client.
        let isTooLarge: Bool
        /// As for ``DurableSessions/passOn(_:of:isTooLarge:completion:)``.
        let completion: @Sendable (Bool) -> Void
    }

    /// The messages of one session that could not be passed on, because the store failed. The connection limits their
    /// number.
    struct DelayedMoves: Sendable {
        /// The connection whose client cannot get the messages.
        let connection: AttachmentOrder
        /// The messages, by seq.
        var messages: [UInt64: DelayedMove] = [:]
        /// The time between the last try and the next one.
        var pause: Duration
        var triesAt: Timestamp
    }

    /// Messages that must be passed on now.
    struct DueMoves: Sendable {
        let id: DurableSessionID
        let connection: AttachmentOrder
        /// The source that pays for the session.
        let payer: CommitSource
        let pause: Duration
        fileprivate(set) var messages: [UInt64: DelayedMove]

        /// Tells the connection what has become of a message.
        fileprivate mutating func settle(_ seq: UInt64, isTaken: Bool) {
            messages.removeValue(forKey: seq)?.completion(isTaken)
        }
    }

    /// Whether a session has this connection.
    func isConnected(_ id: DurableSessionID, _ connection: AttachmentOrder) -> Bool {
        records[id]?.attachment?.order == connection
    }

    /// Takes note that messages could not be passed on. The next try follows after a pause that is twice as long as the
    /// last pause, as in a redistribution.
    ///
    /// - Parameter pause: the last pause; nil if this was the first try.
    mutating func delay(
        _ messages: [UInt64: DelayedMove],
        of id: DurableSessionID,
        _ connection: AttachmentOrder,
        after pause: Duration? = nil,
        now: Timestamp
    ) {
        guard isConnected(id, connection) else { return }
        let next = min((pause ?? Self.redistributionInterval) * 2, Self.maxRedistributionPause)
        let triesAt = now.advanced(by: next)
        if delayedMoves[id]?.connection != connection {
            delayedMoves[id] = DelayedMoves(connection: connection, pause: next, triesAt: triesAt)
        }
        guard let index = delayedMoves.index(forKey: id) else { return }
        // The messages are changed in place. A copy for each failed message would make the cost quadratic.
        delayedMoves.values[index].messages.merge(messages) { $1 }
        delayedMoves.values[index].pause = max(delayedMoves.values[index].pause, next)
        delayedMoves.values[index].triesAt = max(delayedMoves.values[index].triesAt, triesAt)
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
            due.append(
                DueMoves(
                    id: id,
                    connection: moves.connection,
                    payer: record.payer,
                    pause: moves.pause,
                    messages: moves.messages
                )
            )
        }
        return due
    }
}
