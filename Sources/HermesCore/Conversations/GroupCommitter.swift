// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Groups what many connections want to have stored into one commit of the ``MessageStore``.
///
/// One thread of its own takes everything that waits, commits it, completes the operations in order and delivers to the
/// attachments, one call for each attachment and batch. One operation alone is committed at once: the batch grows only
/// while the commit before it runs.
///
/// State: a ``Monitor``; the thread owns the rest.
package final class GroupCommitter: Sendable {
    /// Who is told what became of an operation. Called on the committer's thread, or on the caller's if refused at once.
    enum Completion: Sendable {
        case receipt(@Sendable (Result<SendReceipt, HermesError>) -> Void)
        case done(@Sendable (Result<Void, HermesError>) -> Void)
        case group(@Sendable (Result<Group, HermesError>) -> Void)
        case push(@Sendable (Result<PushOutcome, HermesError>) -> Void)

        func fail(_ error: HermesError) {
            switch self {
            case .receipt(let completion): completion(.failure(error))
            case .done(let completion): completion(.failure(error))
            case .group(let completion): completion(.failure(error))
            case .push(let completion): completion(.failure(error))
            }
        }
    }

    package struct Limits: Sendable, Hashable {
        /// How many operations may wait before `.overloaded`.
        package var maxWaiting: Int
        /// How many bytes they may hold, all together.
        package var maxWaitingBytes: Int
        /// How many operations one commit holds at most.
        package var maxBatch: Int
        /// How long acknowledgements wait for operations to ride along with.
        package var acknowledgementDelay: Duration

        package init(
            maxWaiting: Int = 65_536,
            maxWaitingBytes: Int = 256 << 20,
            maxBatch: Int = 1024,
            acknowledgementDelay: Duration = .milliseconds(50)
        ) {
            self.maxWaiting = max(1, maxWaiting)
            self.maxWaitingBytes = max(1, maxWaitingBytes)
            self.maxBatch = max(1, maxBatch)
            self.acknowledgementDelay = acknowledgementDelay
        }
    }

    /// What was done so far.
    package struct Statistics: Sendable, Hashable {
        package internal(set) var batches: UInt64 = 0
        package internal(set) var operations: UInt64 = 0
        package internal(set) var failedBatches: UInt64 = 0
        /// How many operations wait or are being committed now.
        package internal(set) var waiting = 0
    }

    private struct Pending: Sendable {
        let operation: WriteOperation
        let completion: Completion

        /// What the operation holds in memory, about.
        var bytes: Int {
            switch operation {
            case .append(let message):
                512 + message.draft.content.bytes.count + 8 * message.recipients.count
            case .push(let push):
                512 + push.weight
            case .appendEvent, .acknowledge, .recall, .contact, .group:
                512
            }
        }
    }

    private struct DeviceKey: Sendable, Hashable {
        let user: UserID
        let device: DeviceID
    }

    private struct State {
        var waiting: [Pending] = []
        /// Taken by the thread and not completed yet.
        var inProgress = 0
        /// Of all that waits or is in progress.
        var bytes = 0
        /// The highest seq of each device.
        var acknowledgements: [DeviceKey: UInt64] = [:]
        /// Taken by the thread and not in the store yet.
        var acknowledgementsInProgress: [DeviceKey: UInt64] = [:]
        /// When to commit acknowledgements if nothing else comes.
        var flushAt: Date?
        var isThreadIdle = false
        var isStopping = false
        var hasStopped = false
        var stopped: [@Sendable () -> Void] = []
        var statistics = Statistics()
    }

    /// What the thread took from the queue in one go.
    private struct Taken {
        var pending: [Pending]
        var acknowledgements: [DeviceKey: UInt64]
    }

    private let store: any MessageStore
    private let sessions: SessionRegistry
    private let time: any TimeSource
    private let limits: Limits
    private let monitor = Monitor(State())
    /// Told of everything that is committed and acknowledged.
    let watch = DeliveryWatch()

    /// Creates the committer and starts its thread, which ends with ``shutdown()``.
    package init(
        store: any MessageStore,
        sessions: SessionRegistry,
        time: any TimeSource,
        limits: Limits = Limits()
    ) {
        self.store = store
        self.sessions = sessions
        self.time = time
        self.limits = limits
        let thread = Thread { [self] in run() }
        thread.name = "hermes-commit"
        thread.start()
    }

    /// What was done so far.
    package var statistics: Statistics {
        monitor.withLock { state in
            var statistics = state.statistics
            statistics.waiting = state.waiting.count + state.inProgress
            return statistics
        }
    }

    /// Has an operation committed; operations are committed and completed in the order of the calls.
    func submit(_ operation: WriteOperation, _ completion: Completion) {
        enum Decision {
            case accepted(mustSignal: Bool)
            case overloaded
            case stopping
        }
        let decision: Decision = monitor.withLock { state in
            if state.isStopping { return .stopping }
            guard state.waiting.count + state.inProgress < limits.maxWaiting, state.bytes < limits.maxWaitingBytes
            else { return .overloaded }
            let pending = Pending(operation: operation, completion: completion)
            state.bytes += pending.bytes
            state.waiting.append(pending)
            defer { state.isThreadIdle = false }
            return .accepted(mustSignal: state.isThreadIdle)
        }
        switch decision {
        case .accepted(let mustSignal): if mustSignal { monitor.signal() }
        case .overloaded: completion.fail(Self.overloaded)
        case .stopping: completion.fail(Self.stopping)
        }
    }

    /// Notes how far a device has come; committed with what comes next, or after a short while.
    func acknowledge(_ user: UserID, _ device: DeviceID, upTo seq: UInt64) {
        watch.acknowledged(user, device, upTo: seq)
        let key = DeviceKey(user: user, device: device)
        let mustSignal = monitor.withLock { state in
            guard !state.isStopping else { return false }
            if let known = state.acknowledgements[key] {
                if seq > known { state.acknowledgements[key] = seq }
                return false
            }
            // Losing one costs a repetition; memory without bound costs more.
            guard state.acknowledgements.count < limits.maxWaiting else { return false }
            state.acknowledgements[key] = seq
            guard state.flushAt == nil else { return false }
            state.flushAt = Date(timeIntervalSinceNow: limits.acknowledgementDelay / .seconds(1))
            return state.isThreadIdle
        }
        // The thread has to learn until when it may wait.
        if mustSignal { monitor.signal() }
    }

    /// How far a device has come by what is not in the store yet; nil if all of it is there.
    func acknowledged(_ user: UserID, _ device: DeviceID) -> UInt64? {
        let key = DeviceKey(user: user, device: device)
        return monitor.withLock { state in
            // The newer one is the higher one.
            state.acknowledgements[key] ?? state.acknowledgementsInProgress[key]
        }
    }

    /// Commits everything that waits, then refuses what comes with `.shuttingDown`. Returns when the thread has ended.
    package func shutdown() async {
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
            var acknowledgements = taken.acknowledgements
            var start = 0
            repeat {
                let end = min(start + limits.maxBatch, taken.pending.count)
                commit(taken.pending[start..<end], acknowledgements)
                acknowledgements = [:]
                start = end
            } while start < taken.pending.count
            if !taken.acknowledgements.isEmpty { monitor.withLock { $0.acknowledgementsInProgress = [:] } }
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
            if state.waiting.isEmpty && state.acknowledgements.isEmpty {
                state.flushAt = nil
                if state.isStopping { return .some(nil) }
                state.isThreadIdle = true
                return nil
            }
            state.isThreadIdle = false
            let taken = Taken(pending: state.waiting, acknowledgements: state.acknowledgements)
            state.inProgress = state.waiting.count
            state.waiting = []
            state.waiting.reserveCapacity(min(taken.pending.count, limits.maxBatch))
            state.acknowledgementsInProgress = state.acknowledgements
            state.acknowledgements = [:]
            state.flushAt = nil
            return .some(taken)
        }
    }

    private func commit(_ batch: ArraySlice<Pending>, _ acknowledgements: [DeviceKey: UInt64]) {
        var operations: [WriteOperation] = []
        operations.reserveCapacity(batch.count + acknowledgements.count)
        for pending in batch { operations.append(pending.operation) }
        for (key, seq) in acknowledgements { operations.append(.acknowledge(key.user, key.device, upTo: seq)) }
        do throws(HermesError) {
            let outcomes = try store.commit(operations, now: time.now())
            guard outcomes.count == operations.count else {
                throw HermesError(
                    .internalError,
                    "the store answered \(outcomes.count) of \(operations.count) operations"
                )
            }
            committed(batch, outcomes)
        } catch {
            failed(batch, acknowledgements, error)
        }
    }

    private func committed(_ batch: ArraySlice<Pending>, _ outcomes: [WriteOutcome]) {
        count(batch, hasFailed: false)
        var deliveries: [UserID: [InboxEntry]] = [:]
        for (pending, outcome) in zip(batch, outcomes) {
            for delivery in Self.complete(pending.completion, outcome) {
                deliveries[delivery.user, default: []].append(delivery.entry)
            }
        }
        for (user, entries) in deliveries {
            for attachment in sessions.attachments(of: user) { attachment.inboxAdvanced(entries) }
        }
        watch.committed(deliveries)
    }

    private func failed(
        _ batch: ArraySlice<Pending>,
        _ acknowledgements: [DeviceKey: UInt64],
        _ error: HermesError
    ) {
        count(batch, hasFailed: true)
        for pending in batch { pending.completion.fail(error) }
        guard !acknowledgements.isEmpty else { return }
        monitor.withLock { state in
            guard !state.isStopping else { return }
            state.acknowledgements.merge(acknowledgements, uniquingKeysWith: max)
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

    /// Tells the caller; returns what is to be delivered.
    private static func complete(_ completion: Completion, _ outcome: WriteOutcome) -> [InboxDelivery] {
        switch (completion, outcome) {
        case (_, .refused(let error)):
            completion.fail(error)
            return []
        case (.receipt(let completion), .appended(let receipt, let deliveries)):
            completion(.success(receipt))
            return deliveries
        case (.receipt(let completion), .duplicate(let receipt)):
            completion(.success(receipt))
            return []
        case (.done(let completion), .eventAppended(let deliveries)):
            completion(.success(()))
            return deliveries
        case (.group(let completion), .groupChanged(let group, let deliveries)):
            completion(.success(group))
            return deliveries
        case (.done(let completion), .acknowledged):
            completion(.success(()))
            return []
        case (.push(let completion), .pushed(let outcome)):
            completion(.success(outcome))
            return outcome.deliveries
        case (.receipt, .eventAppended(let deliveries)), (.group, .eventAppended(let deliveries)),
            (.done, .appended(_, let deliveries)), (.group, .appended(_, let deliveries)),
            (.receipt, .groupChanged(_, let deliveries)), (.done, .groupChanged(_, let deliveries)),
            (.push, .eventAppended(let deliveries)), (.push, .appended(_, let deliveries)),
            (.push, .groupChanged(_, let deliveries)):
            completion.fail(HermesError(.internalError, "the store answered another operation"))
            return deliveries
        case (.receipt, .pushed(let outcome)), (.done, .pushed(let outcome)), (.group, .pushed(let outcome)):
            completion.fail(HermesError(.internalError, "the store answered another operation"))
            return outcome.deliveries
        case (.receipt, .acknowledged), (.group, .acknowledged), (.push, .acknowledged), (.done, .duplicate),
            (.group, .duplicate), (.push, .duplicate):
            completion.fail(HermesError(.internalError, "the store answered another operation"))
            return []
        }
    }

    private static let overloaded = HermesError(
        .overloaded,
        "the server has more to store than it can; try again shortly",
        retryAfter: .seconds(1)
    )
    private static let stopping = HermesError(
        .shuttingDown,
        "the server is stopping; connect again shortly",
        retryAfter: .seconds(2)
    )
}
