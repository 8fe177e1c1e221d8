// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A subscription of a durable session.
package struct DurableSubscription: Sendable, Hashable {
    /// The client's text, with `$share/…` if it shares.
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
    /// The name of its owner at present (``NickName/key``), or the subject; empty for anonymous clients. Only from
    /// ``SessionStore/sessions(after:containing:limit:)``.
    package var ownerName = ""
    /// The payer for the session (``payer(of:openedBy:)``).
    package var payer = CommitSource.server
    /// Whether it existed before it was opened.
    package var wasPresent = false
    /// Each filter once.
    package var subscriptions: [DurableSubscription] = []
    /// The time that the session is kept without a connection; nil: forever.
    package var expiry: Duration?
    /// Whether it was opened and not closed since.
    package var isOnline = false
    /// Where it is open; nil if the record has a single process.
    package var place: SessionPlace?
    /// The number of times that the subscriptions were changed, each ``SessionOperation/subscribe(_:_:)`` and
    /// ``SessionOperation/unsubscribe(_:_:)`` once; 0 if the record has a single process.
    package var subscriptionsVersion: UInt64 = 0
    /// When it expires if it is not opened before; nil while it is online, and if it never expires.
    package var expiresAt: Timestamp?
    /// The newest seq that was ever queued; 0: none.
    package var head: UInt64 = 0
    /// The newest seq when its owner was last renamed: publications up to it came while the owner had another name; 0:
    /// none did.
    package var renamedAt: UInt64 = 0
    /// The last seq sent over an earlier connection: up to it, deliveries are duplicates.
    package var sentUpTo: UInt64 = 0
    /// The number of waiting or unacknowledged publications.
    package var queuedCount = 0
    /// Their approximate bytes.
    package var queuedBytes = 0
    /// The seqs received but not completed (QoS 2), ascending; only from `.open`.
    package var released: [UInt64] = []
    /// The packet identifiers of the client's QoS 2 publications that it has not released; only from `.open`.
    package var received: [UInt16] = []
    /// The client's QoS 2 publications that are stored for some of their targets, by their identifiers; only from
    /// `.open`.
    package var partial: [UInt16: PartialPublication] = [:]

    package init(id: DurableSessionID, key: SessionKey) {
        self.id = id
        self.key = key
    }

    /// The payer for a session: its owner; without one the address that opened it first, or the server if that is not
    /// known.
    package static func payer(of owner: SessionOwner, openedBy source: CommitSource) -> CommitSource {
        CommitSource(owner) ?? source
    }
}
