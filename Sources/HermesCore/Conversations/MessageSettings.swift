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

extension MessageSettings {
    private static let defaults = MessageSettings()

    private static let maxContentBytes = Setting.byteCount(
        "limits.message",
        default: defaults.maxContentBytes,
        in: 1024...(1 << 20),
        "The largest size of the content of one message."
    )
    private static let retention = Setting.duration(
        "store.retention",
        default: defaults.retention,
        in: .seconds(60) ... .seconds(3650 * 86_400),
        "How long a message waits for devices that have not acknowledged it."
    )
    private static let recallWindow = Setting.duration(
        "messages.recallWindow",
        default: defaults.recallWindow,
        in: .seconds(0) ... .seconds(365 * 86_400),
        "The time after sending in which a message can be recalled."
    )
    private static let acceptedFrom = Setting<Senders>.choice(
        "messages.from",
        default: defaults.acceptedFrom,
        "Who may write to an account and add it to groups: every account, or only its contacts. An account that it "
            + "blocks may do neither. In a group, every member may write."
    )
    private static let contactRequestsPerHour = Setting.number(
        "limits.contactRequestsPerHour",
        default: defaults.contactRequestsPerHour,
        in: 1...1_000_000,
        "The largest number of contact requests that one account may send per hour."
    )
    private static let groupEntriesPerHour = Setting.number(
        "limits.groupEntriesPerHour",
        default: defaults.groupEntriesPerHour,
        in: 1...100_000_000,
        "The largest number of inbox entries that one account may cause per hour by creating and changing groups."
    )
    private static let maxStoredBytes = Setting.byteCount(
        "limits.storedPerAccountPerDay",
        default: defaults.maxStoredBytes,
        in: (16 << 20)...(1 << 50),
        "The largest total size of the messages that one account may send per day. A message counts with its content, "
            + "plus 256 bytes, plus 16 bytes for each recipient. The whole amount may be used at once."
    )

    /// The settings of messages.
    package static let settings: [SettingDescriptor] = [
        maxContentBytes.descriptor, retention.descriptor, recallWindow.descriptor, acceptedFrom.descriptor,
        contactRequestsPerHour.descriptor, groupEntriesPerHour.descriptor, maxStoredBytes.descriptor,
    ]

    package init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            maxContentBytes: try values.value(of: Self.maxContentBytes),
            retention: try values.value(of: Self.retention),
            recallWindow: try values.value(of: Self.recallWindow),
            acceptedFrom: try values.value(of: Self.acceptedFrom),
            contactRequestsPerHour: try values.value(of: Self.contactRequestsPerHour),
            groupEntriesPerHour: try values.value(of: Self.groupEntriesPerHour),
            maxStoredBytes: try values.value(of: Self.maxStoredBytes)
        )
    }
}
