// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A live connection that has a session, as the core sees it. Implemented by the gateways.
///
/// Called on any thread; must not block: it hops to its own event loop itself.
package protocol DurableAttachment: AnyObject, Sendable {
    /// What the client may read; nil: everything. Asked when the session is attached, and kept until the next one is.
    var reader: (any TopicReader)? { get }

    /// Who it is, for what is stored on its behalf.
    var source: CommitSource { get }

    /// Another connection wants the session. Tell the client why, close, and detach: the other one waits for that.
    func replaced()

    /// The connection must end: tell the client why, close, and detach. After ``SessionEnd/endsKeptSessions`` the session ends
    /// with it.
    func ended(_ reason: SessionEnd)

    /// These were queued for the session, contiguous within one call and all behind ``DurableOpening/head``; one call a
    /// commit. Those that cannot be sent now may be forgotten: ``DurableSessions/queued(of:after:limit:completion:)``
    /// gives them again.
    func committed(_ publications: [QueuedPublication])
}

extension DurableAttachment {
    package var reader: (any TopicReader)? { nil }
    package var source: CommitSource { .server }
}

/// What an attachment finds.
package struct DurableOpening: Sendable {
    package let id: DurableSessionID
    /// Whether the session was there before.
    package let isPresent: Bool
    /// What it is subscribed to in the store.
    package let subscriptions: [DurableSubscription]
    /// The newest seq of its queue; newer ones come by ``DurableAttachment/committed(_:)``.
    package let head: UInt64
    /// Publications up to this seq were sent before: they are duplicates.
    package let sentUpTo: UInt64
    /// The seqs that wait for their completion (PUBCOMP), ascending.
    package let released: [UInt64]
    /// The packet ids the client published with QoS 2 and has not released.
    package let received: [UInt16]

    /// Whether the session outlives its connection. One that does not has no queue; nothing of it is stored.
    package var isDurable: Bool { id.isStored }

    init(_ session: StoredSession) {
        id = session.id
        isPresent = session.wasPresent
        subscriptions = session.subscriptions
        head = session.head
        sentUpTo = session.sentUpTo
        released = session.released
        received = session.received
    }

    init(transient id: DurableSessionID) {
        self.init(StoredSession(id: id, key: SessionKey(owner: "", clientID: "")))
    }
}

extension DurableSessionID {
    /// Whether the store knows it; else it stands for a session that ends with its connection.
    package var isStored: Bool { rawValue > 0 }
}

/// A part of a session's queue.
package struct DurablePage: Sendable {
    /// Ascending; what has expired is left out.
    package let publications: [QueuedPublication]
    /// The queue was read up to here: go on behind it. Not below the newest seq that was known when the reading began
    /// if ``isAtEnd``.
    package let upTo: UInt64
    /// Nothing more was there when it was read.
    package let isAtEnd: Bool
}
