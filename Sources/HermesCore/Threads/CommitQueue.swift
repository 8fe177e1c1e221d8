// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Records that can wait for the next commit, and whose loss only causes a repetition.
protocol CommitRiders: Sendable {
    /// Creates an empty set.
    init()
    var isEmpty: Bool { get }
    /// Adds back records that could not be committed; later ones are newer.
    mutating func takeBack(_ older: Self)
}

/// The waiting items of ``InboxCommitter`` and ``SessionCommitter``, and the thread that commits them.
///
/// The thread takes a batch of waiting items and commits it. A single item is committed at once: a batch grows only
/// while the commit before it runs, and only to what the store commits in one transaction (``BatchPace``). Sources take
/// turns in a batch, so that the waiting items of one do not delay another's. Riders go with the next batch, or alone
/// after a short while.
///
/// State: a ``Monitor``; the thread owns what it has taken.
final class CommitQueue<Item: Sendable, Riders: CommitRiders>: Sendable {
    /// An item, and its approximate memory in bytes.
    struct Entry: Sendable {
        let item: Item
        let bytes: Int
        /// What a transaction does for it, in bytes.
        let cost: Int
        let source: CommitSource
    }

    private struct State {
        var waiting = FairQueue<Entry>()
        var pace: BatchPace
        /// The number of items taken by the thread and not completed.
        var inProgress = 0
        /// The bytes of all waiting and running items.
        var bytes = 0
        var riders = Riders()
        /// The riders taken by the thread and not stored yet.
        var ridersInProgress = Riders()
        /// When to commit riders without a batch; set while there are any.
        var flushAt: Date?
        var isThreadIdle = false
        var isStopping = false
        var hasStopped = false
        var stopped: [@Sendable () -> Void] = []
        var statistics = CommitStatistics()
    }

    /// The items and riders that the thread took together.
    private struct Taken {
        var entries: [Entry]
        var riders: Riders
    }

    private let limits: CommitLimits
    private let monitor: Monitor<State>

    init(limits: CommitLimits) {
        self.limits = limits
        monitor = Monitor(State(pace: BatchPace(most: limits.maxBatch)))
    }

    /// Starts the thread, which ends with ``shutdown()``; called once.
    ///
    /// - Parameter commit: commits a batch with riders, calls ``finished(_:continuing:takingBack:)``, then completes
    ///   the items. Called on the thread.
    func start(named name: String, _ commit: @escaping @Sendable (ArraySlice<Entry>, Riders) -> Void) {
        let thread = Thread { [self] in run(commit) }
        thread.name = name
        thread.start()
    }

    /// Counts since the start.
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
    ///   - bytes: its approximate memory.
    ///   - partCost: of an item that is committed in several parts (``finished(_:continuing:takingBack:)``): what a
    ///     transaction does for one of them, in bytes. Nothing of its source overtakes it.
    ///   - source: the client that causes it. Each source except the server may use an eighth of the queue, and has
    ///     some room even when others have used it all.
    ///   - isUrgent: accepted even if too much waits, because it ends something and so makes room.
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
            let entry = Entry(item: item, bytes: bytes, cost: cost, source: source)
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
        // A source with few waiting operations is not refused because of others.
        return source != .server && own.count < 16 && own.bytes < 65_536 && state.bytes < limits.maxWaitingBytes * 2
    }

    /// Adds a rider for the next commit.
    ///
    /// - Parameter note: returns false if there is nothing to add, or no room.
    func note(_ note: (inout Riders) -> Bool) {
        let mustSignal = monitor.withLock { state in
            guard !state.isStopping, note(&state.riders), state.flushAt == nil else { return false }
            state.flushAt = Date(timeIntervalSinceNow: limits.acknowledgementDelay / .seconds(1))
            return state.isThreadIdle
        }
        // Tell the thread until when it may wait.
        if mustSignal { monitor.signal() }
    }

    /// Reads the riders that are not stored yet: the waiting ones, and those being committed.
    func withRiders<T>(_ body: (_ waiting: Riders, _ inProgress: Riders) -> T) -> T {
        monitor.withLock { body($0.riders, $0.ridersInProgress) }
    }

    /// A batch, or its first part, was committed or failed. This makes room.
    ///
    /// - Parameters:
    ///   - continuing: the entries of it that have parts left. They are in the next batch with room for them, before
    ///     everything of their sources.
    ///   - riders: those of a failed batch, to be committed later.
    func finished(_ batch: ArraySlice<Entry>, continuing: [Entry] = [], takingBack riders: Riders? = nil) {
        let bytes = batch.reduce(0) { $0 + $1.bytes } - continuing.reduce(0) { $0 + $1.bytes }
        monitor.withLock { state in
            for entry in continuing {
                state.waiting.putBack(entry, bytes: entry.bytes, cost: entry.cost, of: entry.source)
            }
            if riders == nil { state.pace.committed(batch.count, of: state.inProgress) }
            state.inProgress -= batch.count
            state.bytes -= bytes
            state.statistics.batches += 1
            state.statistics.operations += UInt64(batch.count)
            guard let riders else { return }
            state.statistics.failedBatches += 1
            guard !riders.isEmpty, !state.isStopping else { return }
            state.riders.takeBack(riders)
            state.flushAt = Date(timeIntervalSinceNow: 1)
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

    /// Commits operations in as many parts as the store makes of them.
    ///
    /// - Parameters:
    ///   - commit: commits the first of these operations, at least one if there are any; returns their outcomes.
    ///   - committed: called after each part.
    /// - Throws: what `commit` throws, or `.internalError` if it breaks its promise.
    static func commitInParts<Operation, Outcome>(
        _ operations: [Operation],
        _ commit: (ArraySlice<Operation>) throws(HermesError) -> [Outcome],
        committed: (ArraySlice<Operation>, [Outcome]) -> Void
    ) throws(HermesError) {
        var rest = operations[...]
        repeat {
            let outcomes = try commit(rest)
            guard outcomes.count <= rest.count, !outcomes.isEmpty || rest.isEmpty else {
                throw HermesError(.internalError, "the store answered \(outcomes.count) of \(rest.count) operations")
            }
            let part = rest.prefix(outcomes.count)
            rest = rest.dropFirst(outcomes.count)
            committed(part, outcomes)
        } while !rest.isEmpty
    }

    private func run(_ commit: (ArraySlice<Entry>, Riders) -> Void) {
        while let taken = take() {
            let duration = ContinuousClock().measure { commit(taken.entries[...], taken.riders) }
            monitor.withLock { state in
                state.statistics.committing += duration
                if !taken.riders.isEmpty { state.ridersInProgress = Riders() }
            }
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
            if state.waiting.isEmpty && state.riders.isEmpty {
                state.flushAt = nil
                if state.isStopping { return .some(nil) }
                state.isThreadIdle = true
                return nil
            }
            state.isThreadIdle = false
            let entries = state.waiting.take(maxCount: state.pace.count, maxBytes: limits.maxBatchBytes)
            let taken = Taken(entries: entries, riders: state.riders)
            state.inProgress = entries.count
            state.ridersInProgress = state.riders
            state.riders = Riders()
            state.flushAt = nil
            return .some(taken)
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
