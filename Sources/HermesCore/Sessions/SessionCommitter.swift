// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An operation that is too long for one transaction. It is committed in parts, and other sources' operations come
/// between them.
///
/// Called by one thread at a time, in turn: ``next()`` within the store's transaction, where it must not call the
/// store; then ``committed(_:)`` if that part was stored.
protocol SessionParts: AnyObject, Sendable {
    /// The next part.
    func next() -> SessionOperation
    /// The last part of ``next()`` is stored.
    ///
    /// - Returns: whether there are more.
    func committed(_ outcome: SessionOutcome) -> Bool
}

/// Groups the operations of sessions into one commit of the ``SessionStore``, as ``InboxCommitter`` does for inboxes.
///
/// State: a ``CommitQueue``; its thread commits, completes in order, and delivers publications.
final class SessionCommitter: Sendable {
    typealias Completion = @Sendable (Result<SessionOutcome, HermesError>) -> Void

    private enum Work: Sendable {
        case whole(SessionOperation)
        case parts(any SessionParts)
    }

    private struct Pending: CommitItem {
        let work: Work
        let completion: Completion?

        func operation() -> SessionOperation {
            switch work {
            case .whole(let operation): operation
            case .parts(let parts): parts.next()
            }
        }

        /// - Returns: whether there is more to do for it.
        func committed(_ outcome: SessionOutcome) -> Bool {
            switch (work, outcome) {
            case (.whole, _), (.parts, .refused): false
            case (.parts(let parts), _): parts.committed(outcome)
            }
        }
    }

    /// The acknowledgements of clients.
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
        queue = Queue(limits: limits, ordersRiders: true)
        queue.start(named: "hermes-sessions") { [self] completed in commit(completed) }
    }

    var statistics: CommitStatistics { queue.statistics }

    /// Submits an operation; operations of one source are committed and completed in the order of the calls.
    ///
    /// - Parameters:
    ///   - source: the client that causes it.
    ///   - isUrgent: accepted even if too much waits, because it ends something and so makes room.
    ///   - completion: called on the committer's thread, or on the caller's if refused at once.
    func submit(
        _ operation: SessionOperation,
        of source: CommitSource = .server,
        isUrgent: Bool = false,
        _ completion: Completion? = nil
    ) {
        let pending = Pending(work: .whole(operation), completion: completion)
        do throws(HermesError) {
            try queue.submit(pending, bytes: Self.bytes(operation), source: source, isUrgent: isUrgent)
        } catch {
            completion?(.failure(error))
        }
    }

    /// Submits an operation of many parts. What its source submits later is committed after the last part. Only the
    /// first part is refused if too much waits.
    ///
    /// - Parameters:
    ///   - bytes: the approximate memory of all parts.
    ///   - rows: the number of rows that one part writes.
    ///   - completion: called once, with the outcome of the last part, or with the error that ended it before.
    func submit(
        _ parts: any SessionParts,
        bytes: Int,
        rows: Int,
        of source: CommitSource,
        _ completion: @escaping Completion
    ) {
        let pending = Pending(work: .parts(parts), completion: completion)
        do throws(HermesError) {
            try queue.submit(pending, bytes: bytes, partCost: rows * Self.rowCost, source: source)
        } catch {
            completion(.failure(error))
        }
    }

    /// A row takes as much of a transaction's time as so many bytes of a publication.
    private static let rowCost = 256

    /// The approximate memory of an operation, in bytes.
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

    /// Notes a client's acknowledgements; committed with the next operation, or after a short while.
    func complete(_ id: DurableSessionID, _ seqs: some Sequence<UInt64>) {
        queue.note { noted in
            // A loss costs a repetition; unbounded memory costs more.
            guard noted.count < limits.maxWaiting * 16 else { return false }
            noted.add(seqs, of: id)
            return true
        }
    }

    /// Commits everything that waits, then refuses further operations with `.shuttingDown`. Returns when the thread has
    /// ended.
    func shutdown() async { await queue.shutdown() }

    // MARK: The thread

    private func commit(_ completed: Completed) {
        // Before the rest: they free memory, and must be done before a session is opened again.
        let lazy = completed.seqs.map { id, seqs in SessionOperation.completed(id, seqs) }
        do throws(Queue.Failure) {
            try queue.commit(after: lazy) { next throws(HermesError) in
                try store.commit(taking: next, now: time.now())
            } committed: { transaction in
                committed(transaction.batch, transaction.batchOutcomes)
                committed(transaction.operations, transaction.outcomes)
            }
        } catch {
            // Before the failure is reported and stops the server: then these are committed, too.
            queue.finished(error.batch, takingBack: completed)
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
