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
    package var maxContentBytes = 64 * 1024
    /// The time for which a message waits for devices that do not fetch it.
    package var retention = Duration.seconds(30 * 24 * 3600)
    /// The time after sending within which a message can be recalled.
    package var recallWindow = Duration.seconds(120)
    /// The accounts that may write to an account, unless that account blocks them.
    package var acceptedFrom = Senders.everyone
    /// The maximum number of contact requests that one account may send in an hour.
    package var contactRequestsPerHour = 200
    /// The number of inbox entries that one account may cause in an hour by creating and changing groups.
    package var groupEntriesPerHour = 20_000
    /// The bytes that one account's messages may add to the store in ``storedPeriod`` (``StoredAllowance``).
    package var maxStoredBytes = 4 << 30
    /// The limits of the commits to inboxes.
    package var commit = CommitLimits()
    /// The maximum number of reads that run at once for requests. Logins and the heads of inboxes have other gates.
    package var maxConcurrentReads = 2
    /// The maximum number of reads that may wait; a further read fails with `.overloaded`.
    package var maxWaitingReads = 65_536

    /// The minimum time for which the store keeps a message's record (``StoreSettings/recordPeriod``).
    package static let storedPeriod = Duration.seconds(24 * 3600)

    package init() {}
}

extension MessageSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .byteCount(
            \.maxContentBytes,
            "limits.message",
            in: 1024...(1 << 20),
            "The largest size of the content of one message."
        ),
        .duration(
            \.retention,
            "store.retention",
            in: .seconds(60) ... .seconds(3650 * 86_400),
            "How long a message waits for devices that have not acknowledged it."
        ),
        .duration(
            \.recallWindow,
            "messages.recallWindow",
            in: .seconds(0) ... .seconds(365 * 86_400),
            "The time after sending in which a message can be recalled."
        ),
        .choice(
            \.acceptedFrom,
            "messages.from",
            "Who may write to an account and add it to groups: every account, or only its contacts. An account that it "
                + "blocks may do neither. In a group, every member may write."
        ),
        .number(
            \.contactRequestsPerHour,
            "limits.contactRequestsPerHour",
            in: 1...1_000_000,
            "The largest number of contact requests that one account may send per hour."
        ),
        .number(
            \.groupEntriesPerHour,
            "limits.groupEntriesPerHour",
            in: 1...100_000_000,
            "The largest number of inbox entries that one account may cause per hour by creating and changing groups."
        ),
        .byteCount(
            \.maxStoredBytes,
            "limits.storedPerAccountPerDay",
            in: (16 << 20)...(1 << 50),
            "The largest total size of the messages that one account may send per day. A message counts with its "
                + "content, plus 256 bytes, plus 16 bytes for each recipient. The whole amount may be used at once."
        ),
    ]
}
