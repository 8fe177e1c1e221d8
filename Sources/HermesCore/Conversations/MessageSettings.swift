// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The limits and times of messages.
package struct MessageSettings: Sendable, Hashable {
    /// The largest content of one message.
    package var maxContentBytes: Int
    /// How long a message waits for devices that do not fetch it.
    package var retention: Duration
    /// How long after it was sent a message can be recalled.
    package var recallWindow: Duration
    /// Whether only contacts may write to each other; else strangers may, too.
    package var contactsOnly: Bool
    /// How many accounts one account may ask to be contacts in an hour.
    package var contactRequestsPerHour: Int
    /// How many entries one account may put into inboxes in an hour by creating and changing groups.
    package var groupEntriesPerHour: Int
    /// The limits of the group commit.
    package var commit: GroupCommitter.Limits
    /// How many reads of the store run at once.
    package var maxConcurrentReads: Int
    /// How many more may wait before `.overloaded`.
    package var maxWaitingReads: Int

    package init(
        maxContentBytes: Int = 64 * 1024,
        retention: Duration = .seconds(30 * 24 * 3600),
        recallWindow: Duration = .seconds(120),
        contactsOnly: Bool = false,
        contactRequestsPerHour: Int = 200,
        groupEntriesPerHour: Int = 20_000,
        commit: GroupCommitter.Limits = GroupCommitter.Limits(),
        maxConcurrentReads: Int = 16,
        maxWaitingReads: Int = 65_536
    ) {
        self.maxContentBytes = maxContentBytes
        self.retention = retention
        self.recallWindow = recallWindow
        self.contactsOnly = contactsOnly
        self.contactRequestsPerHour = contactRequestsPerHour
        self.groupEntriesPerHour = groupEntriesPerHour
        self.commit = commit
        self.maxConcurrentReads = maxConcurrentReads
        self.maxWaitingReads = maxWaitingReads
    }
}
