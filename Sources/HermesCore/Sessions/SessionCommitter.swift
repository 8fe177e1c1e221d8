// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An operation that is too long for one transaction. The operation is committed in parts, and operations of other
/// sources are committed between the parts.
///
/// One thread at a time calls ``next()`` within the store's transaction, and then ``committed(_:)`` if that part was
/// stored. ``next()`` must not call the store.
protocol SessionParts: AnyObject, Sendable {
    /// Returns the operation of the next part.
    func next() -> SessionOperation
    /// Takes note that the part that ``next()`` returned last is stored.
    ///
    /// - Returns: whether more parts follow.
    func committed(_ outcome: SessionOutcome) -> Bool
}

/// Groups operations on sessions into commits of the ``SessionStore``, as ``InboxCommitter`` does for inboxes.
///
/// State: a ``CommitQueue``; its thread commits the operations, calls their completions in order, and delivers
/// publications.
final class SessionCommitter: Sendable {
    typealias Completion = @Sendable (Result<SessionOutcome, HermesError>) -> Void

    private enum Work: Sendable {
        case whole(SessionOperation)
        /// A move. If it is no longer permitted when it is about to be committed, it moves nothing.
        case move(QueueMove, isPermitted: @Sendable () -> Bool)
        case parts(any SessionParts)
    }

    private struct Pending: CommitItem {
        let work: Work
        let completion: Completion?

        func operation() -> SessionOperation {
            switch work {
            case .whole(let operation): operation
            case .move(let move, let isPermitted): .move(isPermitted() ? move : QueueMove(from: move.session, []))
            case .parts(let parts): parts.next()
            }
        }

        /// - Returns: whether more parts follow.
        func committed(_ outcome: SessionOutcome) -> Bool {
            switch (work, outcome) {
            case (.whole, _), (.move, _), (.parts, .refused): false
            case (.parts(let parts), _): parts.committed(outcome)
            }
        }
    }

    /// The clients' acknowledgements that wait for the next commit.
    private struct Completed: CommitRiders {
        private(set) var seqs: [DurableSessionID: [UInt64]] = [:]
        private(set) var count = 0

        var isEmpty: Bool { seqs.isEmpty }

        mutating func add(_ new: some Sequence<UInt64>, of id: DurableSessionID) {
            let before = seqs[id]?.count ?? 0
            seqs[id, default: []].append(contentsOf: new)
            count += (seqs[id]?.count ?? 0) - before
        }

        mutating func takeBack(_ older: Completed) {
            seqs.merge(older.seqs, uniquingKeysWith: +)
            count += older.count
        }
    }

    private typealias Queue = CommitQueue<Pending, Completed>

    private let store: any SessionStore
    private let time: any TimeSource
    private let limits: CommitLimits
    private let committed: @Sendable ([SessionOperation], [SessionOutcome]) -> Void
    private let queue: Queue

    /// Creates the committer and starts its thread, which ends with ``shutdown()``.
    ///
    /// - Parameter committed: called after the completions of each commit, with all its operations.
    init(
        store: any SessionStore,
        time: any TimeSource,
        limits: CommitLimits,
        committed: @escaping @Sendable ([SessionOperation], [SessionOutcome]) -> Void
    ) {
        self.store = store
        self.time = time
        self.limits = limits
        self.committed = committed
        queue = Queue(limits: limits, ordersRiders: true, time: time)
        queue.start(named: "hermes-sessions") { [self] completed in commit(completed) }
    }

    var statistics: CommitStatistics { queue.statistics }

    /// Submits an operation; operations of one source are committed and completed in the order of the calls.
    ///
    /// - Parameters:
    ///   - source: the client that causes the operation.
    ///   - isUrgent: whether the operation is accepted even if too many operations wait, because it ends something and
    ///     so makes room.
    ///   - completion: called on the committer's thread, or on the caller's thread if the operation is refused at once.
    func submit(
        _ operation: SessionOperation,
        of source: CommitSource = .server,
        isUrgent: Bool = false,
        _ completion: Completion? = nil
    ) {
        submit(Pending(work: .whole(operation), completion: completion), operation, of: source, isUrgent: isUrgent)
    }

    /// Submits a move.
    ///
    /// - Parameters:
    ///   - source: the source that pays for the move.
    ///   - isPermitted: called on the committer's thread just before the commit, within the store's transaction. It
    ///     must not call the store. If it returns false, nothing is moved, and `completion` gets no outcomes.
    ///   - completion: as for ``submit(_:of:isUrgent:_:)``.
    func submit(
        _ move: QueueMove,
        of source: CommitSource,
        if isPermitted: @escaping @Sendable () -> Bool,
        _ completion: @escaping Completion
    ) {
        submit(Pending(work: .move(move, isPermitted: isPermitted), completion: completion), .move(move), of: source)
    }

    private func submit(
        _ pending: Pending,
        _ operation: SessionOperation,
        of source: CommitSource = .server,
        isUrgent: Bool = false
    ) {
        do throws(HermesError) {
            try queue.submit(pending, bytes: Self.bytes(operation), source: source, isUrgent: isUrgent)
        } catch {
            pending.completion?(.failure(error))
        }
    }

    /// Submits an operation of many parts. Operations that its source submits later are committed after the last part.
    /// If too many operations wait, the whole operation is refused at once. Later parts are not refused for this
    /// reason.
    ///
    /// - Parameters:
    ///   - bytes: the approximate memory of all parts.
    ///   - rows: the number of rows that one part writes.
    ///   - isUrgent: as for ``submit(_:of:isUrgent:_:)``.
    ///   - completion: called once, with the outcome of the last part, or with the error that ended the operation
    ///     earlier.
    func submit(
        _ parts: any SessionParts,
        bytes: Int,
        rows: Int,
        of source: CommitSource,
        isUrgent: Bool = false,
        _ completion: @escaping Completion
    ) {
        let pending = Pending(work: .parts(parts), completion: completion)
        do throws(HermesError) {
            let cost = rows * Self.rowCost
            try queue.submit(pending, bytes: bytes, partCost: cost, source: source, isUrgent: isUrgent)
        } catch {
            completion(.failure(error))
        }
    }

    /// The cost of a row. Writing a row takes as much time as writing this number of bytes of a publication.
    private static let rowCost = 256

    /// Returns the approximate memory of an operation, in bytes.
    private static func bytes(_ operation: SessionOperation) -> Int {
        switch operation {
        case .publish(let publication, let targets, _, _):
            targets.reduce(512 + publication.weight) { $0 + 64 + $1.weight(of: publication) - publication.weight }
        case .retain(let publication): 512 + publication.weight
        case .subscribe(_, let subscriptions): 512 + subscriptions.reduce(0) { $0 + $1.filter.utf8.count + 64 }
        case .unsubscribe(_, let filters): 512 + filters.reduce(0) { $0 + $1.utf8.count + 32 }
        case .move(let move): 512 + move.items.reduce(0) { $0 + $1.queued.publication.weight + 128 }
        case .open, .close, .remove, .completed, .released, .receivedReleased: 512
        }
    }

    /// Notes a client's acknowledgements. They are committed with the next operation, or after a short while.
    func complete(_ id: DurableSessionID, _ seqs: some Sequence<UInt64>) {
        queue.note { noted in
            // A lost acknowledgement causes a repeated delivery, which is better than an unbounded use of memory.
            guard noted.count < limits.maxWaiting * 16 else { return false }
            noted.add(seqs, of: id)
            return true
        }
    }

    /// Refuses further operations with `.shuttingDown`, and commits everything that waits. Returns when the thread has
    /// ended.
    func shutdown() async { await queue.shutdown() }

    // MARK: The thread

    private func commit(_ completed: Completed) {
        // Acknowledgements are committed before other operations, because they free memory. They must also be stored
        // before their session is opened again.
        let lazy = completed.seqs.map { id, seqs in SessionOperation.completed(id, seqs) }
        do throws(Queue.Failure) {
            try queue.commit(after: lazy) { next throws(HermesError) in
                try store.commit(taking: next, now: time.now())
            } committed: { transaction in
                committed(transaction.batch, transaction.batchOutcomes)
                committed(transaction.operations, transaction.outcomes)
            }
        } catch {
            // Reporting the failure stops the server. The acknowledgements are put back before that, so that they are
            // still committed.
            queue.finished(error.batch, failure: (riders: completed, error: error.error))
            for entry in error.batch { entry.item.completion?(.failure(error.error)) }
        }
    }

    private func committed(_ batch: [Queue.Entry], _ outcomes: [SessionOutcome]) {
        var continuing: [Queue.Entry] = []
        var ended: [(entry: Queue.Entry, outcome: SessionOutcome)] = []
        for (entry, outcome) in zip(batch, outcomes) {
            let isContinuing = entry.item.committed(outcome)
            if isContinuing { continuing.append(entry) } else { ended.append((entry, outcome)) }
        }
        queue.finished(batch, continuing: continuing)
        for (entry, outcome) in ended {
            guard let completion = entry.item.completion else { continue }
            if case .refused(let error) = outcome {
                completion(.failure(error))
            } else {
                completion(.success(outcome))
            }
        }
    }
}
