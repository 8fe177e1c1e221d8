// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The limits of a ``CommitQueue``.
package struct CommitLimits: Sendable, Hashable {
    /// The number of waiting operations at which further operations are refused with `.overloaded`.
    package var maxWaiting: Int
    /// The total size of the waiting operations, in bytes, at which further operations are refused.
    package var maxWaitingBytes: Int
    /// The maximum number of operations in one commit.
    package var maxBatch: Int
    /// The maximum number of bytes in one commit; further operations wait for the next commit. All senders wait for the
    /// running commit. Therefore, long messages must not make a commit take longer than many short messages do.
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
    /// The last failure; nil if there was none, or if a commit that is at least as large has succeeded since.
    package internal(set) var failure: CommitFailure?
    /// The total time of all commits. A commit begins when its batch begins, and ends when its results are reported.
    package internal(set) var committing = Duration.zero
    /// The number of operations that wait or are being committed.
    package internal(set) var waiting = 0
    /// The approximate number of bytes of the operations that wait or are being committed.
    package internal(set) var waitingBytes = 0
}

/// The failure of a commit.
package struct CommitFailure: Sendable, Hashable {
    /// A failure counts for this time, or until a commit of at least the same size succeeds.
    package static let memory = Duration.seconds(60)

    /// The reason, for people.
    package let reason: String
    /// The time of the failure (``TimeSource/uptime()``).
    package let at: Duration
    /// The approximate number of bytes of the largest commit that failed. A full disk may have room for smaller
    /// commits.
    let bytes: Int

    package init(reason: String, at: Duration, bytes: Int) {
        self.reason = reason
        self.at = at
        self.bytes = bytes
    }

    /// Whether the failure still counts.
    ///
    /// - Parameter now: the current time (``TimeSource/uptime()``).
    package func isRecent(now: Duration) -> Bool { now - at < Self.memory }
}
