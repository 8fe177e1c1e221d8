// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Groups the write operations of many connections into one commit of the ``MessageStore``.
///
/// One thread of its own takes all waiting operations, commits them, completes them in order and delivers to the
/// attachments, with one call for each attachment and batch.
///
/// State: a ``CommitQueue``.
package final class GroupCommitter: Sendable {
    /// The receiver of an operation's outcome. Called on the committer's thread, or on the caller's if refused at once.
    enum Completion: Sendable {
        case receipt(@Sendable (Result<SendReceipt, HermesError>) -> Void)
        case done(@Sendable (Result<Void, HermesError>) -> Void)
        /// With the number of entries that it caused.
        case group(@Sendable (Result<(group: Group, entries: Int), HermesError>) -> Void)
        case push(@Sendable (Result<PushOutcome, HermesError>) -> Void)
        case device(@Sendable (Result<Device, HermesError>) -> Void)
        /// Whether the account's deletion is complete.
        case deletion(@Sendable (Result<Bool, HermesError>) -> Void)

        func fail(_ error: HermesError) {
            switch self {
            case .receipt(let completion): completion(.failure(error))
            case .done(let completion): completion(.failure(error))
            case .group(let completion): completion(.failure(error))
            case .push(let completion): completion(.failure(error))
            case .device(let completion): completion(.failure(error))
            case .deletion(let completion): completion(.failure(error))
            }
        }
    }

    package struct Limits: Sendable, Hashable {
        /// The number of waiting operations before `.overloaded`.
        package var maxWaiting: Int
        /// The bytes of all waiting operations.
        package var maxWaitingBytes: Int
        /// The most operations in one commit.
        package var maxBatch: Int
        /// The most bytes in one commit; further operations wait for the next.
        package var maxBatchBytes: Int
        /// The time that acknowledgements wait for operations that they can share a commit with.
        package var acknowledgementDelay: Duration

        package init(
            maxWaiting: Int = 65_536,
            maxWaitingBytes: Int = 256 << 20,
            maxBatch: Int = 1024,
            maxBatchBytes: Int = 4 << 20,
            acknowledgementDelay: Duration = .milliseconds(50)
        ) {
            self.maxWaiting = max(1, maxWaiting)
            self.maxWaitingBytes = max(1, maxWaitingBytes)
            self.maxBatch = max(1, maxBatch)
            self.maxBatchBytes = max(1, maxBatchBytes)
            self.acknowledgementDelay = acknowledgementDelay
        }
    }

    /// Counts since the start.
    package struct Statistics: Sendable, Hashable {
        package internal(set) var batches: UInt64 = 0
        package internal(set) var operations: UInt64 = 0
        package internal(set) var failedBatches: UInt64 = 0
        /// The time that commits took, from taking a batch to telling its results.
        package internal(set) var committing = Duration.zero
        /// The number of operations that wait or are being committed.
        package internal(set) var waiting = 0
        /// Their approximate bytes.
        package internal(set) var waitingBytes = 0
    }

    private struct Pending: Sendable {
        let operation: WriteOperation
        let completion: Completion
        let submittedAt: Duration
    }

    private struct DeviceKey: Sendable, Hashable {
        let user: UserID
        let device: DeviceID
    }

    /// The highest seq that each device has acknowledged.
    private struct Acknowledgements: CommitRiders {
        var seqs: [DeviceKey: UInt64] = [:]

        var isEmpty: Bool { seqs.isEmpty }

        mutating func takeBack(_ older: Acknowledgements) { seqs.merge(older.seqs, uniquingKeysWith: max) }
    }

    private typealias Queue = CommitQueue<Pending, Acknowledgements>

    private let store: any MessageStore
    private let sessions: SessionRegistry
    private let time: any TimeSource
    private let limits: Limits
    private let queue: Queue
    private let acknowledgementCounter = Atomic<UInt64>(0)
    /// The number of commits with acknowledgements.
    var acknowledgementCommits: UInt64 { acknowledgementCounter.load(ordering: .acquiring) }
    /// Observes everything that is committed and acknowledged.
    let watch = DeliveryWatch()
    /// Remembers where the last messages went.
    let traces: MessageTraces

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
        traces = MessageTraces(time: time)
        queue = Queue(limits: limits)
        queue.start(named: "hermes-commit") { [self] batch, acknowledgements in commit(batch, acknowledgements) }
    }

    /// Counts since the start.
    package var statistics: Statistics { queue.statistics }

    /// Submits an operation; operations are committed and completed in the order of the calls.
    func submit(_ operation: WriteOperation, _ completion: Completion) {
        do throws(HermesError) {
            let pending = Pending(operation: operation, completion: completion, submittedAt: time.uptime())
            try queue.submit(pending, bytes: Self.bytes(operation))
        } catch {
            completion.fail(error)
        }
    }

    /// The approximate memory of an operation, in bytes.
    private static func bytes(_ operation: WriteOperation) -> Int {
        switch operation {
        case .append(let message): 512 + message.draft.content.bytes.count + 8 * message.recipients.count
        case .push(let push): 512 + push.weight
        case .markRead, .acknowledge, .recall, .contact, .group, .deleteAccount, .openDevice: 512
        }
    }

    /// Notes the cursor of a device; committed with the next operation, or after a short while.
    func acknowledge(_ user: UserID, _ device: DeviceID, upTo seq: UInt64) {
        watch.acknowledged(user, device, upTo: seq)
        traces.acknowledged(user, device, upTo: seq)
        let key = DeviceKey(user: user, device: device)
        queue.note { noted in
            if let known = noted.seqs[key] {
                if seq > known { noted.seqs[key] = seq }
                return false
            }
            // A loss costs a repetition; unbounded memory costs more.
            guard noted.seqs.count < limits.maxWaiting else { return false }
            noted.seqs[key] = seq
            return true
        }
    }

    /// The cursor of a device that is not in the store yet; nil if there is none.
    func acknowledged(_ user: UserID, _ device: DeviceID) -> UInt64? {
        let key = DeviceKey(user: user, device: device)
        // The newer cursor is the higher one.
        return queue.withRiders { waiting, inProgress in waiting.seqs[key] ?? inProgress.seqs[key] }
    }

    /// Commits everything that waits, then refuses further operations with `.shuttingDown`. Returns when the thread has
    /// ended.
    package func shutdown() async { await queue.shutdown() }

    // MARK: The thread

    private func commit(_ batch: ArraySlice<Queue.Entry>, _ acknowledgements: Acknowledgements) {
        var operations: [WriteOperation] = []
        operations.reserveCapacity(batch.count + acknowledgements.seqs.count)
        for entry in batch { operations.append(entry.item.operation) }
        for (key, seq) in acknowledgements.seqs { operations.append(.acknowledge(key.user, key.device, upTo: seq)) }
        var waiting = batch
        do throws(HermesError) {
            try Queue.commitInParts(operations) { rest throws(HermesError) in
                try store.commit(firstOf: rest, now: time.now())
            } committed: { part, outcomes in
                // Before the queue forgets them: a concurrent reader of the store looks again.
                if part.endIndex == operations.endIndex, !acknowledgements.isEmpty {
                    acknowledgementCounter.add(1, ordering: .acquiringAndReleasing)
                }
                let done = waiting.prefix(part.count)
                waiting = waiting.dropFirst(done.count)
                queue.finished(done)
                committed(done, outcomes)
            }
        } catch {
            queue.finished(waiting, takingBack: acknowledgements)
            for entry in waiting { entry.item.completion.fail(error) }
        }
    }

    private func committed(_ batch: ArraySlice<Queue.Entry>, _ outcomes: [WriteOutcome]) {
        let (now, clock) = (time.uptime(), time.latest())
        // Before anybody hears of them, so that a search for what was confirmed finds it.
        traces.committed(
            zip(batch, outcomes).compactMap { entry, outcome in
                TracedMessage(
                    entry.item.operation,
                    outcome,
                    acceptedAt: entry.item.submittedAt,
                    committedAt: now,
                    committedTime: clock
                )
            }
        )
        var deliveries: [UserID: [InboxEntry]] = [:]
        for (entry, outcome) in zip(batch, outcomes) {
            for delivery in Self.complete(entry.item.completion, outcome) {
                deliveries[delivery.user, default: []].append(delivery.entry)
            }
        }
        for (user, entries) in deliveries {
            for attachment in sessions.attachments(of: user) { attachment.inboxAdvanced(entries) }
        }
        watch.committed(deliveries)
    }

    /// Calls the completion; returns the deliveries.
    private static func complete(_ completion: Completion, _ outcome: WriteOutcome) -> [InboxDelivery] {
        switch (completion, outcome) {
        case (_, .refused(let error)):
            completion.fail(error)
            return []
        case (.receipt(let completion), .appended(var receipt, let deliveries)):
            receipt.recipientCount = deliveries.count
            completion(.success(receipt))
            return deliveries
        case (.receipt(let completion), .duplicate(let receipt)):
            completion(.success(receipt))
            return []
        case (.done(let completion), .eventAppended(let deliveries)):
            completion(.success(()))
            return deliveries
        case (.group(let completion), .groupChanged(let group, let deliveries)):
            completion(.success((group, deliveries.count)))
            return deliveries
        case (.done(let completion), .acknowledged):
            completion(.success(()))
            return []
        case (.push(let completion), .pushed(let outcome)):
            completion(.success(outcome))
            return outcome.deliveries
        case (.device(let completion), .deviceOpened(let device)):
            completion(.success(device))
            return []
        case (.deletion(let completion), .deleted(let deliveries, let isDone)):
            completion(.success(isDone))
            return deliveries
        case (.deletion, .eventAppended(let deliveries)), (.deletion, .appended(_, let deliveries)),
            (.deletion, .groupChanged(_, let deliveries)), (.receipt, .deleted(let deliveries, _)),
            (.done, .deleted(let deliveries, _)), (.group, .deleted(let deliveries, _)),
            (.push, .deleted(let deliveries, _)), (.device, .deleted(let deliveries, _)),
            (.receipt, .eventAppended(let deliveries)), (.group, .eventAppended(let deliveries)),
            (.done, .appended(_, let deliveries)), (.group, .appended(_, let deliveries)),
            (.receipt, .groupChanged(_, let deliveries)), (.done, .groupChanged(_, let deliveries)),
            (.push, .eventAppended(let deliveries)), (.push, .appended(_, let deliveries)),
            (.push, .groupChanged(_, let deliveries)), (.device, .eventAppended(let deliveries)),
            (.device, .appended(_, let deliveries)), (.device, .groupChanged(_, let deliveries)):
            completion.fail(HermesError(.internalError, "the store answered another operation"))
            return deliveries
        case (.receipt, .pushed(let outcome)), (.done, .pushed(let outcome)), (.group, .pushed(let outcome)),
            (.device, .pushed(let outcome)), (.deletion, .pushed(let outcome)):
            completion.fail(HermesError(.internalError, "the store answered another operation"))
            return outcome.deliveries
        case (.receipt, .acknowledged), (.group, .acknowledged), (.push, .acknowledged), (.done, .duplicate),
            (.group, .duplicate), (.push, .duplicate), (.device, .acknowledged), (.device, .duplicate),
            (.receipt, .deviceOpened), (.done, .deviceOpened), (.group, .deviceOpened), (.push, .deviceOpened),
            (.deletion, .acknowledged), (.deletion, .duplicate), (.deletion, .deviceOpened):
            completion.fail(HermesError(.internalError, "the store answered another operation"))
            return []
        }
    }
}
