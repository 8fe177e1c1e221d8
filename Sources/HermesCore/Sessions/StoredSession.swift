// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A subscription of a durable session.
package struct DurableSubscription: Sendable, Hashable {
    /// The filter as the client wrote it. The filter of a shared subscription begins with `$share/`.
    package let filter: String
    package let options: SubscriptionOptions

    package init(filter: String, options: SubscriptionOptions) {
        self.filter = filter
        self.options = options
    }
}

/// A durable session in the store.
package struct StoredSession: Sendable {
    package let id: DurableSessionID
    package let key: SessionKey
    /// The present name of the owner's account (``NickName/key``), or the owner's subject; empty for anonymous clients.
    /// Only ``SessionStore/sessions(after:containing:limit:searched:)`` sets it.
    package var ownerName = ""
    /// The payer of the session: the source whose share of the limits the session uses (``payer(of:openedBy:)``).
    package var payer = CommitSource.server
    /// Whether the session existed before this opening.
    package var wasPresent = false
    /// The subscriptions; each filter occurs once.
    package var subscriptions: [DurableSubscription] = []
    /// The time for which the session is kept without a connection. Nil means forever.
    package var expiry: Duration?
    /// Whether the session was opened and has not been closed since then.
    package var isOnline = false
    /// Where the session is open; nil if only one process uses the store.
    package var place: SessionPlace?
    /// The number of operations ``SessionOperation/subscribe(_:_:)`` and ``SessionOperation/unsubscribe(_:_:)`` that
    /// have changed the session; 0 if only one process uses the store.
    package var subscriptionsVersion: UInt64 = 0
    /// The time at which the session expires unless it is opened earlier; nil while it is online, or if it never
    /// expires.
    package var expiresAt: Timestamp?
    /// The newest seq that was ever queued (``QueuedPublication/seq``); 0 if nothing was ever queued.
    package var head: UInt64 = 0
    /// The newest seq at the time when the owner was last renamed. Publications up to this seq were queued while the
    /// owner had another name. It is 0 if there are no such publications.
    package var renamedAt: UInt64 = 0
    /// The last seq that was sent over an earlier connection. Deliveries up to this seq are duplicates.
    package var sentUpTo: UInt64 = 0
    /// The number of waiting or unacknowledged publications.
    package var queuedCount = 0
    /// The approximate size of these publications, in bytes.
    package var queuedBytes = 0
    /// The seqs of QoS 2 publications that the client has received (PUBREC) and not completed (PUBCOMP), in ascending
    /// order. Only the outcome of `.open` contains them.
    package var released: [UInt64] = []
    /// The packet identifiers of the client's own QoS 2 publications that it has not released (PUBREL). Only the
    /// outcome of `.open` contains them.
    package var received: [UInt16] = []
    /// The client's own QoS 2 publications that are stored for only some of their targets, by packet identifier. Only
    /// the outcome of `.open` contains them.
    package var partial: [UInt16: PartialPublication] = [:]

    package init(id: DurableSessionID, key: SessionKey) {
        self.id = id
        self.key = key
    }

    /// Returns the payer of a session, which is its owner. If the owner is anonymous, the payer is the address that
    /// opened the session first, or the server if that address is not known.
    package static func payer(of owner: SessionOwner, openedBy source: CommitSource) -> CommitSource {
        CommitSource(owner) ?? source
    }
}
