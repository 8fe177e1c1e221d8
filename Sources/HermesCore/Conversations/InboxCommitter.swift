// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Groups the write operations of many connections into transactions of the ``MessageStore``.
///
/// The committer's own thread runs one transaction after another. A transaction takes one waiting operation after
/// another. The sources (``InboxSubmission/source``) take turns of one operation each, and the operations of one source
/// keep their order. The source of a message is the sender's account. After several sources have waited at once, each
/// source may use at most a sixteenth of the transaction's bytes. But each source gets at least one operation, and
/// small operations do not count (``FairQueue``). The transaction ends when
/// - nothing waits, or
/// - it is full (``CommitLimits/maxBatch``, ``CommitLimits/maxBatchBytes``), or
/// - it has used its usual time, and somebody waits: another writer of the store, or a source that has nothing else
///   under way, or
/// - it has used the longest time that the store allows.
///
/// After the transaction has been committed, the thread completes its operations in order: for a message, the sender's
/// connection gets the receipt. Then the thread passes the entries to the attachments, with one call for each
/// attachment and batch. A connection's attachment only posts the entries to the mailbox of the connection's event
/// loop. If the transaction fails, all its operations fail. The waiting operations that would have fitted into the
/// transaction also fail. If the reason is a full disk, the operations fail with `.storageUnavailable` and a
/// `retryAfter` of 5 s.
///
/// The implementations of the store apply the operations. They are `MemoryState`, and `BatchWriter` of HermesSQLite.
/// `BatchWriter` documents the checks and the rows that are written.
///
/// State: a ``CommitQueue``.
package final class InboxCommitter: Sendable {
    private struct Pending: CommitItem {
        let submission: InboxSubmission
        let submittedAt: Duration

        func operation() -> WriteOperation { submission.operation }
    }

    private struct DeviceKey: Sendable, Hashable {
        let user: UserID
        let device: DeviceID
        /// Whether the device has proved that it belongs to the account; false if it was merely claimed.
        let isProven: Bool
    }

    /// The highest seq that each device has acknowledged.
    private struct Acknowledgements: CommitRiders {
        var seqs: [DeviceKey: UInt64] = [:]

        var isEmpty: Bool { seqs.isEmpty }

        mutating func takeBack(_ older: Acknowledgements) { seqs.merge(older.seqs, uniquingKeysWith: max) }
    }

    private typealias Queue = CommitQueue<Pending, Acknowledgements>

    private let store: any MessageStore
    private let devices: DeviceRegistry
    private let time: any TimeSource
    private let limits: CommitLimits
    private let queue: Queue
    private let acknowledgementCounter = Atomic<UInt64>(0)
    /// The number of commits with acknowledgements.
    var acknowledgementCommits: UInt64 { acknowledgementCounter.load(ordering: .acquiring) }
    /// The hooks for everything that is committed and acknowledged.
    let watch = DeliveryWatch()
    /// The traces of the last messages.
    let traces: MessageTraces

    /// Creates the committer and starts its thread, which ends with ``shutdown()``.
    package init(
        store: any MessageStore,
        devices: DeviceRegistry,
        time: any TimeSource,
        limits: CommitLimits = CommitLimits()
    ) {
        self.store = store
        self.devices = devices
        self.time = time
        self.limits = limits
        traces = MessageTraces(time: time)
        queue = Queue(limits: limits, ordersRiders: false, time: time)
        queue.start(named: "hermes-commit") { [self] acknowledgements in commit(acknowledgements) }
    }

    /// The counts since the start.
    package var statistics: CommitStatistics { queue.statistics }

    /// Submits an operation. Sources take turns. The operations of one source are committed and completed in the order
    /// of the calls.
    func submit(_ submission: InboxSubmission) {
        do throws(HermesError) {
            let pending = Pending(submission: submission, submittedAt: time.uptime())
            try queue.submit(pending, bytes: submission.bytes, source: submission.source)
        } catch {
            submission.complete(.failure(error), 0)
        }
    }

    /// Notes the cursor of a device. The cursor is committed with the next operation, or after a short time.
    func acknowledge(_ user: UserID, _ device: DeviceID, upTo seq: UInt64, isProven: Bool = true) {
        watch.acknowledged(user, device, upTo: seq, isProven: isProven)
        traces.acknowledged(user, device, upTo: seq)
        let key = DeviceKey(user: user, device: device, isProven: isProven)
        queue.note { noted in
            if let known = noted.seqs[key] {
                if seq > known { noted.seqs[key] = seq }
                return false
            }
            // If there is no room, the acknowledgement is lost. This causes a repetition, which costs less than
            // unbounded memory.
            guard noted.seqs.count < limits.maxWaiting else { return false }
            noted.seqs[key] = seq
            return true
        }
    }

    /// Returns the seq that a device has acknowledged, if it is not in the store yet; otherwise nil.
    ///
    /// - Parameter proof: the strongest proof of the device. If the device was merely claimed, acknowledgements without
    ///   a proof also count.
    func acknowledged(_ user: UserID, _ device: DeviceID, by proof: DeviceProof) -> UInt64? {
        queue.withRiders { waiting, inProgress in
            // The higher cursor is the newer cursor.
            func seq(isProven: Bool) -> UInt64? {
                let key = DeviceKey(user: user, device: device, isProven: isProven)
                return waiting.seqs[key] ?? inProgress.seqs[key]
            }
            let proven = seq(isProven: true)
            guard proof == .claim, let claimed = seq(isProven: false) else { return proven }
            return max(proven ?? 0, claimed)
        }
    }

    /// Commits everything that waits, then refuses further operations with `.shuttingDown`. Returns when the thread has
    /// ended.
    package func shutdown() async { await queue.shutdown() }

    // MARK: The thread

    private func commit(_ acknowledgements: Acknowledgements) {
        let operations = acknowledgements.seqs.map { key, seq in
            WriteOperation.acknowledge(key.user, key.device, upTo: seq, isProven: key.isProven)
        }
        var left = operations.count
        do throws(Queue.Failure) {
            try queue.commit(after: operations) { next throws(HermesError) in
                try store.commit(taking: next, now: time.now())
            } committed: { transaction in
                left -= transaction.riderCount
                // Count before the queue forgets the acknowledgements: the count shows a concurrent reader of the store
                // that it must read again.
                if transaction.riderCount > 0, left == 0 {
                    acknowledgementCounter.add(1, ordering: .acquiringAndReleasing)
                }
                queue.finished(transaction.batch)
                committed(transaction.batch, transaction.batchOutcomes)
            }
        } catch {
            queue.finished(error.batch, failure: (riders: acknowledgements, error: error.error))
            for entry in error.batch { entry.item.submission.complete(.failure(error.error), 0) }
        }
    }

    private func committed(_ batch: [Queue.Entry], _ outcomes: [WriteOutcome]) {
        let (now, clock) = (time.uptime(), time.latest())
        // Record the messages before anybody learns of them, so that a search finds every message that was confirmed.
        traces.committed(
            zip(batch, outcomes).compactMap { entry, outcome in
                TracedMessage(
                    entry.item.submission.operation,
                    outcome,
                    acceptedAt: entry.item.submittedAt,
                    committedAt: now,
                    committedTime: clock
                )
            }
        )
        for (entry, outcome) in zip(batch, outcomes) {
            if case .push(.fanOut(let push, _)) = entry.item.submission.operation {
                traces.fannedOut(push, outcome.deliveries)
            }
        }
        var deliveries: [UserID: [InboxEntry]] = [:]
        // If a device attaches after its user's attachments were looked up, it reads the entries from the store.
        var attachments: [UserID: [any Attachment]] = [:]
        var nodes = NodeSet()
        for (entry, outcome) in zip(batch, outcomes) {
            var count = 0
            for delivery in outcome.deliveries {
                nodes.formUnion(delivery.nodes)
                var live = delivery.entry
                live.acceptedAt = entry.item.submittedAt
                deliveries[delivery.user, default: []].append(live)
                if let known = attachments[delivery.user] {
                    count += known.count
                } else {
                    let found = devices.takers(of: delivery.user)
                    attachments[delivery.user] = found
                    count += found.count
                }
            }
            entry.item.submission.complete(.success(outcome), count)
        }
        for (user, entries) in deliveries {
            for attachment in attachments[user] ?? [] { attachment.inboxAdvanced(entries) }
        }
        if !nodes.isEmpty { devices.roster?.deliver(outcomes, to: nodes) }
        watch.committed(deliveries)
    }
}
