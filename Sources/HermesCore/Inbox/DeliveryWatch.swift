// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Tells of everything that is committed to inboxes, and of what devices acknowledge. Without an observer it costs a
/// lock per batch and acknowledgement.
package final class DeliveryWatch: Sendable {
    /// A device has acknowledged everything up to `seq`.
    package struct Acknowledgement: Sendable {
        package let user: UserID
        package let device: DeviceID
        package let seq: UInt64
        /// False: the device only claimed to be one (``Principal/isProven``).
        package let isProven: Bool
    }

    /// Entries were committed, ascending for each user. Observers run on the committer's thread and must not block.
    package let entriesCommitted = Hook<[UserID: [InboxEntry]]>()
    /// A device has acknowledged entries. Observers run on event loops and must not block.
    package let entriesAcknowledged = Hook<Acknowledgement>()
    /// Those who watch the server's events.
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
