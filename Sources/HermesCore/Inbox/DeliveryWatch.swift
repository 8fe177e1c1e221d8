// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Learns of everything that is committed to inboxes and of what devices take out of them.
package protocol DeliveryObserver: Sendable {
    /// Entries were committed, ascending for each user. Called on the committer's thread; must not block.
    func committed(_ entries: [UserID: [InboxEntry]])

    /// A device has everything up to `seq`. Called on event loops; must not block.
    func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64)
}

/// The place where one observer stands; costs a lock for each batch while there is none.
///
/// State: a `Mutex`; the observer is called outside of it.
package final class DeliveryWatch: Sendable {
    private let observer = Mutex<(any DeliveryObserver)?>(nil)

    /// Lets an observer stand here from now on, in the place of any other.
    package func install(_ observer: any DeliveryObserver) { self.observer.withLock { $0 = observer } }

    func committed(_ entries: [UserID: [InboxEntry]]) {
        guard !entries.isEmpty, let observer = observer.withLock({ $0 }) else { return }
        observer.committed(entries)
    }

    func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64) {
        guard let observer = observer.withLock({ $0 }) else { return }
        observer.acknowledged(user, device, upTo: seq)
    }
}
