// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The limits of durable sessions and of retained publications. How much one queue holds is the store's
/// (``StoreSettings/maxQueuedMessages``).
package struct DurableSettings: Sendable, Hashable {
    /// How many sessions there may be, online or not.
    package var maxSessions: Int
    /// Whether there are retained publications.
    package var isRetainAvailable: Bool
    /// After how long without a connection others get what waits for a session by a shared subscription and was never sent;
    /// nil: they do not.
    package var sharedRedistribution: Duration?
    /// How many topics may have a retained publication.
    package var maxRetainedMessages: Int
    /// How many bytes all retained publications may have.
    package var maxRetainedBytes: Int
    /// The limits of the group commit.
    package var commit: GroupCommitter.Limits
    /// A page of a queue ends behind the publication that takes it past this many bytes.
    package var maxPageBytes: Int
    /// How many reads of the store run at once.
    package var maxConcurrentReads: Int
    /// How many more may wait before `.overloaded`.
    package var maxWaitingReads: Int

    package init(
        maxSessions: Int = 1_000_000,
        isRetainAvailable: Bool = true,
        sharedRedistribution: Duration? = .seconds(60),
        maxRetainedMessages: Int = 1_000_000,
        maxRetainedBytes: Int = 1 << 30,
        commit: GroupCommitter.Limits = GroupCommitter.Limits(),
        maxPageBytes: Int = 256 << 10,
        maxConcurrentReads: Int = 8,
        maxWaitingReads: Int = 65_536
    ) {
        self.maxSessions = maxSessions
        self.isRetainAvailable = isRetainAvailable
        self.sharedRedistribution = sharedRedistribution
        self.maxRetainedMessages = maxRetainedMessages
        self.maxRetainedBytes = maxRetainedBytes
        self.commit = commit
        self.maxPageBytes = max(1, maxPageBytes)
        self.maxConcurrentReads = maxConcurrentReads
        self.maxWaitingReads = maxWaitingReads
    }
}
