// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An item of a ``CommitQueue``.
protocol CommitItem: Sendable {
    associatedtype Operation
    /// Returns what the next transaction does for the item.
    func operation() -> Operation
}

/// Riders are records that can wait for the next commit. If a rider (an acknowledgement) is lost, the only effect is
/// that something is delivered again.
protocol CommitRiders: Sendable {
    /// Creates an empty set.
    init()
    var isEmpty: Bool { get }
    /// Adds back records that could not be committed. The records that are already in the set are newer.
    mutating func takeBack(_ older: Self)
}

/// The waiting items of ``InboxCommitter`` and ``SessionCommitter``, and the thread that commits them.
///
/// A batch consists of the items that one transaction of the store commits. The transaction takes item after item while
/// it runs. The transaction ends when nothing waits, or when it is full. After it has run for a while, it also ends if
/// a source that has nothing else under way waits for the end of the transaction (``FairQueue/isBatchAwaited``).
/// Sources take turns in a batch, so that the waiting items of one source do not delay the items of another source.
/// Riders are committed with the next batch, or alone after a short while (``CommitLimits/acknowledgementDelay``).
///
/// State: a ``Monitor``; the thread owns the items and riders that it has taken.
final class CommitQueue<Item: CommitItem, Riders: CommitRiders>: Sendable {
    /// An item, and its approximate memory in bytes.
    struct Entry: Sendable {
        let item: Item
        let bytes: Int
        /// The work that the item causes in a transaction, in bytes.
        let cost: Int
        let source: CommitSource
        /// The number of the first batch that may contain the item; 0 if every batch may contain it. If items must
        /// follow riders, this is the batch that takes the riders that were noted before the item.
        let batch: UInt64
    }

    private struct State {
        var waiting = FairQueue<Entry>()
        /// The number of items that the thread has taken, but not completed yet.
        var inProgress = 0
        /// The approximate size of all waiting and running items, in bytes.
        var bytes = 0
        var riders = Riders()
        /// The riders that the thread has taken, but not stored yet.
        var ridersInProgress = Riders()
        /// The time at which riders are committed even without a batch. The time is set while riders wait.
        var flushAt: SuspendingClock.Instant?
        /// The number of batches that have begun.
        var batches: UInt64 = 0
        var isThreadIdle = false
        var isStopping = false
        var hasStopped = false
        var stopped: [@Sendable () -> Void] = []
        var statistics = CommitStatistics()
    }

    private let limits: CommitLimits
    private let ordersRiders: Bool
    private let time: any TimeSource
    private let monitor: Monitor<State>

    /// - Parameters:
    ///   - ordersRiders: whether an item is committed after all riders that were noted before it. Otherwise the item
    ///     may be committed before these riders, or join a transaction that has begun without them.
    ///   - time: the clock for the times of failures.
    init(limits: CommitLimits, ordersRiders: Bool, time: any TimeSource) {
        self.limits = limits
        self.ordersRiders = ordersRiders
        self.time = time
        monitor = Monitor(State())
    }

    /// Starts the thread, which ends with ``shutdown()``. Must be called once.
    ///
    /// - Parameter commit: called on the thread; commits riders and waiting items (``commit(after:in:committed:)``).
    func start(named name: String, _ commit: @escaping @Sendable (Riders) -> Void) {
        let thread = Thread { [self] in run(commit) }
        thread.name = name
        thread.start()
    }

    /// The counts since the start.
    var statistics: CommitStatistics {
        monitor.withLock { state in
            var statistics = state.statistics
            statistics.waiting = state.waiting.count + state.inProgress
            statistics.waitingBytes = state.bytes
            return statistics
        }
    }

    /// Adds an item; items of one source are committed in the order of the calls.
    ///
    /// - Parameters:
    ///   - bytes: the approximate memory of the item, in bytes.
    ///   - partCost: the work that one part of the item causes in a transaction, in bytes; nil if the item is not
    ///     committed in several parts (``finished(_:continuing:failure:)``). No later item of the same source overtakes
    ///     an item that has several parts.
    ///   - source: the source of the item. Each source except the server may use an eighth of the queue, and has some
    ///     room even when other sources have filled the queue.
    ///   - isUrgent: whether the item is accepted even if too many items wait. An urgent item ends something and so
    ///     makes room.
    /// - Throws: `.overloaded`, `.shuttingDown`.
    func submit(
        _ item: Item,
        bytes: Int,
        partCost: Int? = nil,
        source: CommitSource = .server,
        isUrgent: Bool = false
    ) throws(HermesError) {
        let decision: Result<Bool, HermesError> = monitor.withLock { state in
            if state.isStopping { return .failure(.committerStopping) }
            guard isUrgent || hasRoom(for: source, state) else { return .failure(.committerOverloaded) }
            state.bytes += bytes
            let cost = partCost ?? bytes
            let batch = ordersRiders && !state.riders.isEmpty ? state.batches + 1 : 0
            let entry = Entry(item: item, bytes: bytes, cost: cost, source: source, batch: batch)
            state.waiting.append(entry, bytes: bytes, cost: cost, endsTurn: partCost != nil, of: source)
            defer { state.isThreadIdle = false }
            return .success(state.isThreadIdle)
        }
        if try decision.get() { monitor.signal() }
    }

    private func hasRoom(for source: CommitSource, _ state: State) -> Bool {
        let count = state.waiting.count + state.inProgress
        let own = state.waiting.waiting(of: source)
        if source != .server, own.count >= max(1, limits.maxWaiting / 8) { return false }
        if source != .server, own.bytes >= max(1, limits.maxWaitingBytes / 8) { return false }
        if count < limits.maxWaiting, state.bytes < limits.maxWaitingBytes { return true }
        // A source with few waiting operations is not refused because of other sources.
        return source != .server && own.count < 16 && own.bytes < 65_536 && state.bytes < limits.maxWaitingBytes * 2
    }

    /// Adds a rider for the next commit.
    ///
    /// - Parameter note: adds the rider. The function returns false if there is nothing to add, or if there is no room.
    func note(_ note: (inout Riders) -> Bool) {
        let mustSignal = monitor.withLock { state in
            guard !state.isStopping, note(&state.riders), state.flushAt == nil else { return false }
            state.flushAt = .now + limits.acknowledgementDelay
            return state.isThreadIdle
        }
        // Tell the thread how long it may wait.
        if mustSignal { monitor.signal() }
    }

    /// Reads the riders that are not stored yet: the riders that wait, and the riders that are being committed.
    func withRiders<T>(_ body: (_ waiting: Riders, _ inProgress: Riders) -> T) -> T {
        monitor.withLock { body($0.riders, $0.ridersInProgress) }
    }

    /// Records that a batch was committed or has failed. This makes room for further items.
    ///
    /// - Parameters:
    ///   - continuing: the entries of the batch that have parts left. They go into the next batch that has room for
    ///     them, before all other items of their sources.
    ///   - failure: the error of a failed batch, and the batch's riders, which are committed later; nil if the batch
    ///     was committed.
    func finished(
        _ batch: [Entry],
        continuing: [Entry] = [],
        failure: (riders: Riders, error: HermesError)? = nil
    ) {
        let bytes = batch.reduce(0) { $0 + $1.bytes } - continuing.reduce(0) { $0 + $1.bytes }
        // The bytes that the transaction has written, or would have written.
        let written = batch.reduce(0) { $0 + $1.cost }
        let now = time.uptime()
        monitor.withLock { state in
            for entry in continuing {
                state.waiting.putBack(entry, bytes: entry.bytes, cost: entry.cost, of: entry.source)
            }
            state.waiting.endBatch()
            state.inProgress -= batch.count
            state.bytes -= bytes
            state.statistics.batches += 1
            state.statistics.operations += UInt64(batch.count)
            guard let failure else {
                if let earlier = state.statistics.failure, written >= earlier.bytes { state.statistics.failure = nil }
                return
            }
            state.statistics.failedBatches += 1
            // If a larger commit has failed recently, its size is kept: there may still be no room for such a commit.
            let earlier = state.statistics.failure.map { $0.isRecent(now: now) ? $0.bytes : 0 } ?? 0
            let most = max(earlier, written)
            state.statistics.failure = CommitFailure(reason: failure.error.message, at: now, bytes: most)
            guard !failure.riders.isEmpty, !state.isStopping else { return }
            state.riders.takeBack(failure.riders)
            state.flushAt = .now + .seconds(1)
        }
    }

    /// Commits everything that waits, and refuses further items. Returns when the thread has ended.
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

    /// Commits riders and waiting items, in as many transactions as the riders need. If items must not overtake riders
    /// (`ordersRiders`), the items follow the last rider. Otherwise items and riders take turns.
    ///
    /// - Parameters:
    ///   - riders: the operations of the riders.
    ///   - transaction: commits the operations that it takes from `next`, and returns their outcomes. The function
    ///     passes to `next` whether the transaction has already run for a long time.
    ///   - committed: called after each transaction. The function calls ``finished(_:continuing:failure:)`` and then
    ///     completes the items.
    /// - Throws: ``Failure``.
    func commit<Outcome>(
        after riders: [Item.Operation],
        in transaction: (_ next: (_ isLong: Bool) -> Item.Operation?) throws(HermesError) -> [Outcome],
        committed: (Committed<Outcome>) -> Void
    ) throws(Failure) {
        var riders = riders[...]
        repeat {
            var batch: [Entry] = []
            var operations: [Item.Operation] = []
            // The indices of the batch's operations in `operations`.
            var items: [Int] = []
            func takeItem(isLong: Bool) -> Bool {
                guard let entry = next(isLong: isLong) else { return false }
                batch.append(entry)
                items.append(operations.count)
                operations.append(entry.item.operation())
                return true
            }
            let before = riders.count
            do throws(HermesError) {
                var isItemsTurn = false
                let outcomes = try transaction { isLong in
                    if !riders.isEmpty && isLong { return nil }
                    defer { isItemsTurn.toggle() }
                    if isItemsTurn, !ordersRiders, !riders.isEmpty, takeItem(isLong: isLong) { return operations.last }
                    if let rider = riders.popFirst() {
                        operations.append(rider)
                        return rider
                    }
                    return takeItem(isLong: isLong) ? operations.last : nil
                }
                guard outcomes.count == operations.count, !outcomes.isEmpty || before == 0 else {
                    throw HermesError(
                        .internalError,
                        "the store answered \(outcomes.count) of \(operations.count) operations"
                    )
                }
                committed(Committed(batch: batch, operations: operations, outcomes: outcomes, items: items))
            } catch {
                // The items that would fill up the batch also fail, because the store would fail for them, too.
                while let entry = next(isLong: false) { batch.append(entry) }
                throw Failure(error: error, batch: batch)
            }
        } while !riders.isEmpty
    }

    /// The result of a transaction.
    struct Committed<Outcome> {
        let batch: [Entry]
        let operations: [Item.Operation]
        /// The outcome of each operation.
        let outcomes: [Outcome]
        /// For each entry of the batch, the index of its operation.
        fileprivate let items: [Int]

        /// The outcomes of the batch.
        var batchOutcomes: [Outcome] { items.map { outcomes[$0] } }
        var riderCount: Int { operations.count - batch.count }
    }

    /// The failure of a transaction.
    struct Failure: Error {
        let error: HermesError
        /// The items that fail with the transaction. The caller passes them to ``finished(_:continuing:failure:)``.
        let batch: [Entry]
    }

    /// Takes the next item of the batch. Returns nil if the batch ends.
    private func next(isLong: Bool) -> Entry? {
        monitor.withLock { state in
            if isLong, state.waiting.isBatchAwaited { return nil }
            let entry = state.waiting.next(maxCount: limits.maxBatch, maxBytes: limits.maxBatchBytes) {
                $0.batch <= state.batches
            }
            if entry != nil { state.inProgress += 1 }
            return entry
        }
    }

    private func run(_ commit: (Riders) -> Void) {
        while let riders = takeRiders() {
            let duration = ContinuousClock().measure { commit(riders) }
            monitor.withLock { state in
                state.statistics.committing += duration
                if !riders.isEmpty { state.ridersInProgress = Riders() }
            }
        }
        let stopped = monitor.withLock { state in
            state.hasStopped = true
            defer { state.stopped = [] }
            return state.stopped
        }
        for notify in stopped { notify() }
    }

    /// Waits until there is something to commit, and takes all riders. Returns nil if the queue has stopped.
    private func takeRiders() -> Riders? {
        monitor.wait(until: \.flushAt) { state -> Riders?? in
            let isFlushDue = state.flushAt.map { $0 <= .now } ?? false
            guard !state.waiting.isEmpty || isFlushDue || state.isStopping else {
                state.isThreadIdle = true
                return nil
            }
            if state.waiting.isEmpty && state.riders.isEmpty {
                state.flushAt = nil
                if state.isStopping { return .some(nil) }
                state.isThreadIdle = true
                return nil
            }
            state.isThreadIdle = false
            state.batches += 1
            let riders = state.riders
            state.ridersInProgress = riders
            state.riders = Riders()
            state.flushAt = nil
            return .some(riders)
        }
    }
}

extension HermesError {
    fileprivate static let committerOverloaded = HermesError(
        .overloaded,
        "the server is overloaded; try again shortly",
        retryAfter: .seconds(1)
    )
    fileprivate static let committerStopping = HermesError(
        .shuttingDown,
        "the server is stopping; connect again shortly",
        retryAfter: .seconds(2)
    )
}
