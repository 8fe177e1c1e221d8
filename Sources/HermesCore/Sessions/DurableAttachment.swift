// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A live connection that has a session. Implemented by the gateways.
///
/// Called on any thread; must not block: it hops to its own event loop itself.
package protocol DurableAttachment: AnyObject, Sendable {
    /// The permissions of the client; nil: it may read everything. Asked when the session is attached, and kept until
    /// the next attachment.
    var reader: (any TopicReader)? { get }

    /// The client, as the source of its operations.
    var source: CommitSource { get }

    /// The name under which the client logged in, in its compared form (``NickName/key``); nil: anonymous.
    var userName: String? { get }

    /// The device whose token the client showed; nil without one.
    var tokenOwner: DeviceID? { get }

    /// The client's login; nil without an account.
    var login: LoginNumber? { get }

    /// The newest seq that the connection may have sent; set before it looks whether the publication has expired.
    var sentUpTo: UInt64 { get }

    /// Another connection takes the session. Tell the client why, close, and detach: the other connection waits for
    /// that.
    func replaced()

    /// The connection must end: tell the client why, close, and detach. If the reason's
    /// ``AttachmentEnd/endsKeptSessions`` is true, the session ends with the connection.
    func ended(_ reason: AttachmentEnd)

    /// These publications were queued for the session: contiguous within one call, all after ``DurableOpening/head``,
    /// one call per commit. The attachment may forget publications that cannot be sent now:
    /// ``DurableSessions/queued(of:after:sentUpTo:limit:completion:)`` returns them again. It also returns what comes
    /// between two calls, which other nodes have queued.
    func committed(_ publications: [QueuedPublication])

    /// Other nodes have queued publications up to this seq, which may be known already. Read them.
    func advanced(to head: UInt64)
}

extension DurableAttachment {
    package var reader: (any TopicReader)? { nil }
    package var source: CommitSource { .server }
    package var sentUpTo: UInt64 { 0 }
}

/// The state of the session at its attachment.
package struct DurableOpening: Sendable {
    package let id: DurableSessionID
    /// Whether the session existed before.
    package let isPresent: Bool
    /// Its subscriptions in the store.
    package let subscriptions: [DurableSubscription]
    /// The newest seq of its queue; newer ones arrive through ``DurableAttachment/committed(_:)``.
    package let head: UInt64
    /// ``StoredSession/renamedAt``.
    package let renamedAt: UInt64
    /// The last seq that was sent before: publications up to it are duplicates.
    package let sentUpTo: UInt64
    /// The seqs that wait for their completion (PUBCOMP), ascending.
    package let released: [UInt64]
    /// The packet identifiers of the client's QoS 2 publications that it has not released.
    package let received: [UInt16]

    /// Whether the session outlives its connection. One that does not has no queue; nothing of it is stored.
    package var isDurable: Bool { id.isStored }

    init(_ session: StoredSession) {
        id = session.id
        isPresent = session.wasPresent
        subscriptions = session.subscriptions
        head = session.head
        renamedAt = session.renamedAt
        sentUpTo = session.sentUpTo
        released = session.released
        received = session.received
    }

    init(transient id: DurableSessionID) {
        self.init(StoredSession(id: id, key: SessionKey(owner: .anonymous, clientID: "")))
    }
}

extension DurableAttachment {
    package var userName: String? { nil }
    package var tokenOwner: DeviceID? { nil }
    package var login: LoginNumber? { nil }
}

extension DurableSessionID {
    /// Whether it is stored; otherwise it ends with its connection.
    package var isStored: Bool { rawValue > 0 }
}

/// A part of a session's queue.
package struct DurablePage: Sendable {
    /// Ascending, without expired ones.
    package let publications: [QueuedPublication]
    /// The last seq that was read: continue behind it. If ``isAtEnd``, at least the newest seq known when the read
    /// began.
    package let upTo: UInt64
    /// Whether nothing more was queued at the read.
    package let isAtEnd: Bool
}
