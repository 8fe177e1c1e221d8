// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A subscription of a durable session.
package struct DurableSubscription: Sendable, Hashable {
    /// As the client wrote it, with `$share/…` where it shares.
    package let filter: String
    package let options: SubscriptionOptions

    package init(filter: String, options: SubscriptionOptions) {
        self.filter = filter
        self.options = options
    }
}

/// A durable session as the store has it.
package struct StoredSession: Sendable {
    package let id: DurableSessionID
    package let key: SessionKey
    /// Whether it was there before it was opened.
    package var wasPresent = false
    /// Each filter once.
    package var subscriptions: [DurableSubscription] = []
    /// How long it stays without a connection; nil: for ever.
    package var expiry: Duration?
    /// Opened and not closed since.
    package var isOnline = false
    /// When it ends if it is not opened before; nil while it is online, and if it never ends.
    package var expiresAt: Timestamp?
    /// The seq of the newest publication that was ever queued; 0: none.
    package var head: UInt64 = 0
    /// How far its publications were sent over a connection before: sent again, they are duplicates.
    package var sentUpTo: UInt64 = 0
    /// What waits or is not acknowledged.
    package var queuedCount = 0
    /// The bytes of that, about.
    package var queuedBytes = 0
    /// The seqs that were received but not completed (QoS 2), ascending; only from `.open`.
    package var released: [UInt64] = []
    /// The packet ids the client published with QoS 2 and has not released; only from `.open`.
    package var received: [UInt16] = []

    package init(id: DurableSessionID, key: SessionKey) {
        self.id = id
        self.key = key
    }
}
