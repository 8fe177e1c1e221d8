// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Observes everything that is committed to inboxes, and what devices acknowledge.
package protocol DeliveryObserver: Sendable {
    /// Entries were committed, ascending for each user. Called on the committer's thread; must not block.
    func committed(_ entries: [UserID: [InboxEntry]])

    /// A device has acknowledged everything up to `seq`. Called on event loops; must not block.
    func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64)
}

/// Holds one observer; without one it costs a lock per batch.
///
/// State: a `Mutex`; the observer is called outside of it.
package final class DeliveryWatch: Sendable {
    private let observer = Mutex<(any DeliveryObserver)?>(nil)
    /// Those who watch the server's events.
    let events = EventWatch()

    /// Sets the observer; it replaces an earlier one.
    package func install(_ observer: any DeliveryObserver) { self.observer.withLock { $0 = observer } }

    func committed(_ entries: [UserID: [InboxEntry]]) {
        guard !entries.isEmpty else { return }
        events.committed(entries)
        observer.withLock { $0 }?.committed(entries)
    }

    func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64) {
        guard let observer = observer.withLock({ $0 }) else { return }
        observer.acknowledged(user, device, upTo: seq)
    }
}
