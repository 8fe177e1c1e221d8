// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Reports everything that is committed to inboxes, and everything that devices acknowledge. Without an observer, each
/// batch and each acknowledgement only takes a lock once.
package final class DeliveryWatch: Sendable {
    /// A device has acknowledged everything up to `seq`.
    package struct Acknowledgement: Sendable {
        package let user: UserID
        package let device: DeviceID
        package let seq: UInt64
        /// Whether the device's login proved that the client belongs to the account (``Principal/isProven``); false if
        /// the client only claimed to belong to the account.
        package let isProven: Bool
    }

    /// The hook for committed entries, which are in ascending order for each user. Observers run on the committer's
    /// thread and must not block.
    package let entriesCommitted = Hook<[UserID: [InboxEntry]]>()
    /// The hook for the acknowledgements of devices. Observers run on event loops and must not block.
    package let entriesAcknowledged = Hook<Acknowledgement>()
    /// The distribution of the server's events to their observers.
    let events = EventWatch()

    func committed(_ entries: [UserID: [InboxEntry]]) {
        guard !entries.isEmpty else { return }
        events.committed(entries)
        entriesCommitted(entries)
    }

    func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64, isProven: Bool) {
        entriesAcknowledged(Acknowledgement(user: user, device: device, seq: seq, isProven: isProven))
    }
}
