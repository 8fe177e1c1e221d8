// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The limits of durable sessions and of retained publications. The store limits each single queue
/// (``StoreSettings/maxQueuedMessages``).
package struct DurableSettings: Sendable, Hashable {
    /// The number of sessions, online or not.
    package var sessions: SharedLimit
    /// The number of filters of all sessions; a long filter counts as several (``DurableQuota/units(of:)``).
    package var filters: SharedLimit
    /// Whether publications can be retained.
    package var isRetainAvailable: Bool
    /// How long a session must be without a connection before its never-sent messages from shared subscriptions go to
    /// other members. If it is nil, these messages never go to other members.
    package var sharedRedistribution: Duration?
    /// The number of topics with a retained publication.
    package var retainedMessages: SharedLimit
    /// The bytes of all retained publications.
    package var retainedBytes: SharedLimit
    /// The limits of the group commit.
    package var commit: CommitLimits
    /// The size of a page of a queue, in bytes. A page ends with the publication with which it reaches this size.
    package var maxPageBytes: Int
    /// The largest number of concurrent reads from the store.
    package var maxConcurrentReads: Int
    /// The largest number of waiting reads; further reads are refused with `.overloaded`.
    package var maxWaitingReads: Int

    /// The number of sessions unless the operator sets another number.
    package static let usualSessions = 250_000

    package init(
        sessions: SharedLimit = SharedLimit(Self.usualSessions),
        filters: SharedLimit = SharedLimit(4_000_000),
        isRetainAvailable: Bool = true,
        sharedRedistribution: Duration? = .seconds(60),
        retainedMessages: SharedLimit = SharedLimit(1_000_000),
        retainedBytes: SharedLimit = SharedLimit(1 << 30),
        commit: CommitLimits = CommitLimits(),
        maxPageBytes: Int = 256 << 10,
        maxConcurrentReads: Int = 2,
        maxWaitingReads: Int = 65_536
    ) {
        self.sessions = sessions
        self.filters = filters
        self.isRetainAvailable = isRetainAvailable
        self.sharedRedistribution = sharedRedistribution
        self.retainedMessages = retainedMessages
        self.retainedBytes = retainedBytes
        self.commit = commit
        self.maxPageBytes = max(1, maxPageBytes)
        self.maxConcurrentReads = maxConcurrentReads
        self.maxWaitingReads = maxWaitingReads
    }
}
