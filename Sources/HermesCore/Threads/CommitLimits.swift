// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The bounds of a ``CommitQueue``.
package struct CommitLimits: Sendable, Hashable {
    /// The number of waiting operations at which further operations are refused with `.overloaded`.
    package var maxWaiting: Int
    /// The bytes of all waiting operations at which further operations are refused.
    package var maxWaitingBytes: Int
    /// The most operations in one commit.
    package var maxBatch: Int
    /// The most bytes in one commit; further operations wait for the next commit. All senders wait for the running
    /// commit. Therefore, long messages must not make a commit take longer than many short messages do.
    package var maxBatchBytes: Int
    /// The longest time that acknowledgements wait for an operation whose commit they can share.
    package var acknowledgementDelay: Duration

    package init(
        maxWaiting: Int = 65_536,
        maxWaitingBytes: Int = 256 << 20,
        maxBatch: Int = 1024,
        maxBatchBytes: Int = 512 << 10,
        acknowledgementDelay: Duration = .milliseconds(50)
    ) {
        self.maxWaiting = max(1, maxWaiting)
        self.maxWaitingBytes = max(1, maxWaitingBytes)
        self.maxBatch = max(1, maxBatch)
        self.maxBatchBytes = max(1, maxBatchBytes)
        self.acknowledgementDelay = acknowledgementDelay
    }
}

/// The counts of a ``CommitQueue`` since its start.
package struct CommitStatistics: Sendable, Hashable {
    package internal(set) var batches: UInt64 = 0
    package internal(set) var operations: UInt64 = 0
    package internal(set) var failedBatches: UInt64 = 0
    /// The time that commits took, from taking a batch to reporting its results.
    package internal(set) var committing = Duration.zero
    /// The number of operations that wait or are being committed.
    package internal(set) var waiting = 0
    /// The approximate bytes of the operations that wait or are being committed.
    package internal(set) var waitingBytes = 0
}
