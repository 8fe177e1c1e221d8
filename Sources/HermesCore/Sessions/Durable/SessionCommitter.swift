// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Groups what sessions want to have stored into one commit of the ``SessionStore``: what ``GroupCommitter`` is for
/// inboxes.
///
/// State: a ``Monitor``; one thread of its own commits, completes in order, and has delivered what was published.
final class SessionCommitter: Sendable {
    typealias Completion = @Sendable (Result<SessionOutcome, HermesError>) -> Void

    private struct Pending: Sendable {
        let operation: SessionOperation
        let completion: Completion?

        /// What the operation holds in memory, about.
        var bytes: Int {
            switch operation {
            case .publish(let publication, let targets, _, _): 512 + publication.weight + 64 * targets.count
            case .retain(let publication): 512 + publication.weight
            case .subscribe(_, let subscriptions): 512 + subscriptions.reduce(0) { $0 + $1.filter.utf8.count + 64 }
            case .unsubscribe(_, let filters): 512 + filters.reduce(0) { $0 + $1.utf8.count + 32 }
            case .open, .close, .remove, .completed, .released, .receivedReleased: 512
            }
        }
    }

    private struct State {
        var waiting: [Pending] = []
        var inProgress = 0
        /// Of all that waits or is in progress.
        var bytes = 0
        /// What clients have acknowledged: committed with what comes next, or after a short while.
        var completed: [DurableSessionID: [UInt64]] = [:]
        var completedCount = 0
        /// When to commit that if nothing else comes.
        var flushAt: Date?
        var isThreadIdle = false
        var isStopping = false
        var hasStopped = false
        var stopped: [@Sendable () -> Void] = []
        var statistics = GroupCommitter.Statistics()
    }

    private struct Taken {
        var pending: [Pending]
        var completed: [DurableSessionID: [UInt64]]
    }

    private let store: any SessionStore
    private let time: any TimeSource
    private let limits: GroupCommitter.Limits
    private let committed: @Sendable ([SessionOperation], [SessionOutcome]) -> Void
    private let monitor = Monitor(State())

    /// Creates the committer and starts its thread, which ends with ``shutdown()``.
    ///
    /// - Parameter committed: called after the completions of each commit, with all of it.
    init(
        store: any SessionStore,
        time: any TimeSource,
        limits: GroupCommitter.Limits,
        committed: @escaping @Sendable ([SessionOperation], [SessionOutcome]) -> Void
    ) {
        self.store = store
        self.time = time
        self.limits = limits
        self.committed = committed
        let thread = Thread { [self] in run() }
        thread.name = "hermes-sessions"
        thread.start()
    }

    var statistics: GroupCommitter.Statistics {
        monitor.withLock { state in
            var statistics = state.statistics
            statistics.waiting = state.waiting.count + state.inProgress
            return statistics
        }
    }

    /// Has an operation committed; operations are committed and completed in the order of the calls.
    ///
    /// - Parameters:
    ///   - isUrgent: taken even if too much waits: what ends something and so makes room.
    ///   - completion: called on the committer's thread, or on the caller's if refused at once.
    func submit(_ operation: SessionOperation, isUrgent: Bool = false, _ completion: Completion? = nil) {
        enum Decision {
            case accepted(mustSignal: Bool)
            case refused(HermesError)
        }
        let decision: Decision = monitor.withLock { state in
            if state.isStopping { return .refused(.committerStopping) }
            let hasRoom =
                state.waiting.count + state.inProgress < limits.maxWaiting && state.bytes < limits.maxWaitingBytes
            guard hasRoom || isUrgent else { return .refused(.committerOverloaded) }
            let pending = Pending(operation: operation, completion: completion)
            state.bytes += pending.bytes
            state.waiting.append(pending)
            defer { state.isThreadIdle = false }
            return .accepted(mustSignal: state.isThreadIdle)
        }
        switch decision {
        case .accepted(let mustSignal): if mustSignal { monitor.signal() }
        case .refused(let error): completion?(.failure(error))
        }
    }

    /// Notes what a client has acknowledged.
    func complete(_ id: DurableSessionID, _ seqs: some Sequence<UInt64>) {
        let mustSignal = monitor.withLock { state in
            // Losing some costs a repetition; memory without bound costs more.
            guard !state.isStopping, state.completedCount < limits.maxWaiting * 16 else { return false }
            let before = state.completed[id]?.count ?? 0
            state.completed[id, default: []].append(contentsOf: seqs)
            state.completedCount += (state.completed[id]?.count ?? 0) - before
            guard state.flushAt == nil else { return false }
            state.flushAt = Date(timeIntervalSinceNow: limits.acknowledgementDelay / .seconds(1))
            return state.isThreadIdle
        }
        // The thread has to learn until when it may wait.
        if mustSignal { monitor.signal() }
    }

    /// Commits everything that waits, then refuses what comes with `.shuttingDown`. Returns when the thread has ended.
    func shutdown() async {
        await withCheckedContinuation { continuation in
            let hasStopped = monitor.withLock { state in
                state.isStopping = true
                if !state.hasStopped { state.stopped.append { continuation.resume() } }
                return state.hasStopped
            }
            monitor.signal()
            if hasStopped { continuation.resume() }
        }
    }

    // MARK: The thread

    private func run() {
        while let taken = take() {
            var completed = taken.completed
            var start = 0
            repeat {
                let end = min(start + limits.maxBatch, taken.pending.count)
                commit(taken.pending[start..<end], completed)
                completed = [:]
                start = end
            } while start < taken.pending.count
        }
        let stopped = monitor.withLock { state in
            state.hasStopped = true
            defer { state.stopped = [] }
            return state.stopped
        }
        for notify in stopped { notify() }
    }

    /// Waits for something to commit; nil: the end.
    private func take() -> Taken? {
        monitor.wait(until: \.flushAt) { state -> Taken?? in
            let isFlushDue = state.flushAt.map { $0.timeIntervalSinceNow <= 0 } ?? false
            guard !state.waiting.isEmpty || isFlushDue || state.isStopping else {
                state.isThreadIdle = true
                return nil
            }
            if state.waiting.isEmpty && state.completed.isEmpty {
                state.flushAt = nil
                if state.isStopping { return .some(nil) }
                state.isThreadIdle = true
                return nil
            }
            state.isThreadIdle = false
            let taken = Taken(pending: state.waiting, completed: state.completed)
            state.inProgress = state.waiting.count
            state.waiting = []
            state.waiting.reserveCapacity(min(taken.pending.count, limits.maxBatch))
            state.completed = [:]
            state.completedCount = 0
            state.flushAt = nil
            return .some(taken)
        }
    }

    private func commit(_ batch: ArraySlice<Pending>, _ completed: [DurableSessionID: [UInt64]]) {
        var operations: [SessionOperation] = []
        operations.reserveCapacity(batch.count + completed.count)
        // First: they make room, and a session that is opened again finds them done.
        for (id, seqs) in completed { operations.append(.completed(id, seqs)) }
        for pending in batch { operations.append(pending.operation) }
        do throws(HermesError) {
            let outcomes = try store.commit(operations, now: time.now())
            guard outcomes.count == operations.count else {
                throw HermesError(
                    .internalError,
                    "the store answered \(outcomes.count) of \(operations.count) operations"
                )
            }
            count(batch, hasFailed: false)
            for (pending, outcome) in zip(batch, outcomes.dropFirst(completed.count)) {
                guard let completion = pending.completion else { continue }
                if case .refused(let error) = outcome {
                    completion(.failure(error))
                } else {
                    completion(.success(outcome))
                }
            }
            self.committed(operations, outcomes)
        } catch {
            count(batch, hasFailed: true)
            // Before anybody hears of it, and stops the server: then they are committed, too.
            takeBack(completed)
            for pending in batch { pending.completion?(.failure(error)) }
        }
    }

    private func takeBack(_ completed: [DurableSessionID: [UInt64]]) {
        guard !completed.isEmpty else { return }
        monitor.withLock { state in
            guard !state.isStopping else { return }
            state.completed.merge(completed, uniquingKeysWith: +)
            state.completedCount += completed.values.reduce(0) { $0 + $1.count }
            state.flushAt = Date(timeIntervalSinceNow: 1)
        }
    }

    private func count(_ batch: ArraySlice<Pending>, hasFailed: Bool) {
        let bytes = batch.reduce(0) { $0 + $1.bytes }
        monitor.withLock { state in
            state.inProgress -= batch.count
            state.bytes -= bytes
            state.statistics.batches += 1
            state.statistics.operations += UInt64(batch.count)
            state.statistics.failedBatches += hasFailed ? 1 : 0
        }
    }
}

extension HermesError {
    fileprivate static let committerOverloaded = HermesError(
        .overloaded,
        "the server has more to store than it can; try again shortly",
        retryAfter: .seconds(1)
    )
    fileprivate static let committerStopping = HermesError(
        .shuttingDown,
        "the server is stopping; connect again shortly",
        retryAfter: .seconds(2)
    )
}
