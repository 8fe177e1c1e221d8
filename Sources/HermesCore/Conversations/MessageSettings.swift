// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The limits and times of messages.
package struct MessageSettings: Sendable, Hashable {
    /// The accounts that may write to another account and add it to groups, in every protocol.
    package enum Senders: String, CaseIterable, Sendable {
        /// All accounts.
        case everyone
        /// Only the account's contacts. Both accounts have agreed to a contact.
        case contacts
    }

    /// The maximum size of the content of one message, in bytes.
    package var maxContentBytes: Int
    /// The time for which a message waits for devices that do not fetch it.
    package var retention: Duration
    /// The time after sending within which a message can be recalled.
    package var recallWindow: Duration
    /// The accounts that may write to an account, unless that account blocks them.
    package var acceptedFrom: Senders
    /// The maximum number of contact requests that one account may send in an hour.
    package var contactRequestsPerHour: Int
    /// The number of inbox entries that one account may cause in an hour by creating and changing groups.
    package var groupEntriesPerHour: Int
    /// The bytes that one account's messages may add to the store in ``storedPeriod`` (``StoredAllowance``).
    package var maxStoredBytes: Int
    /// The limits of the commits to inboxes.
    package var commit: CommitLimits
    /// The maximum number of reads of the store that run at once.
    package var maxConcurrentReads: Int
    /// The maximum number of reads that may wait; a further read fails with `.overloaded`.
    package var maxWaitingReads: Int

    /// The minimum time for which the store keeps a message's record (``StoreSettings/recordPeriod``).
    package static let storedPeriod = Duration.seconds(24 * 3600)

    package init(
        maxContentBytes: Int = 64 * 1024,
        retention: Duration = .seconds(30 * 24 * 3600),
        recallWindow: Duration = .seconds(120),
        acceptedFrom: Senders = .everyone,
        contactRequestsPerHour: Int = 200,
        groupEntriesPerHour: Int = 20_000,
        maxStoredBytes: Int = 4 << 30,
        commit: CommitLimits = CommitLimits(),
        maxConcurrentReads: Int = 2,
        maxWaitingReads: Int = 65_536
    ) {
        self.maxContentBytes = maxContentBytes
        self.retention = retention
        self.recallWindow = recallWindow
        self.acceptedFrom = acceptedFrom
        self.contactRequestsPerHour = contactRequestsPerHour
        self.groupEntriesPerHour = groupEntriesPerHour
        self.maxStoredBytes = maxStoredBytes
        self.commit = commit
        self.maxConcurrentReads = maxConcurrentReads
        self.maxWaitingReads = maxWaitingReads
    }
}
