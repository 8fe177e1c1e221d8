// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A live connection that has a session. The gateways implement this protocol.
///
/// The members are called on any thread, and must not block. The attachment itself hops to its event loop.
package protocol DurableAttachment: AnyObject, Sendable {
    /// The permissions of the client; nil if the client is permitted to read everything. The permissions are read when
    /// the connection gets the session, and are used until the next connection gets it.
    var reader: (any TopicReader)? { get }

    /// The client, as the source of its operations.
    var source: CommitSource { get }

    /// The name under which the client logged in, in the form of ``NickName/key``; nil if the client is anonymous.
    var userName: String? { get }

    /// The device whose token the client presented; nil if it presented none.
    var tokenOwner: DeviceID? { get }

    /// The client's login; nil if the client has no account.
    var login: LoginNumber? { get }

    /// The position of this client's request among all clients' requests for sessions.
    var order: AttachmentOrder { get }

    /// The last proof that the client presented, at its login or later.
    var shown: ShownProof { get }

    /// The newest seq that the connection may have sent. The connection sets this seq before it checks whether the
    /// publication with this seq has expired.
    var sentUpTo: UInt64 { get }

    /// Ends the connection, because another connection takes the session over. The attachment tells the client the
    /// reason, closes, and detaches. The other connection waits until the attachment has detached.
    func replaced()

    /// Ends the connection: the attachment tells the client the reason, closes, and detaches. If the reason's
    /// ``AttachmentEnd/endsKeptSessions`` is true, the session ends with the connection.
    func ended(_ reason: AttachmentEnd)

    /// Notes the new name of the client's account. If only the spelling of the name has changed, the rules for the name
    /// stay the same. Otherwise, ``ended(_:)`` follows.
    func renamed(to name: NickName)

    /// Takes the publications that a commit has queued for the session. Their seqs are contiguous within one call, and
    /// all are above ``DurableOpening/head``. There may be gaps between two calls, because other nodes also queue
    /// publications. ``DurableSessions/queued(of:after:sentUpTo:limit:completion:)`` returns the publications in these
    /// gaps. That function also returns publications that the attachment has forgotten because it could not send them
    /// at once.
    func committed(_ publications: [QueuedPublication])

    /// Tells the attachment that other nodes have queued publications up to this seq. The attachment then reads them.
    /// The attachment may have some or all of them already.
    func advanced(to head: UInt64)
}

extension DurableAttachment {
    package var reader: (any TopicReader)? { nil }
    package var source: CommitSource { .server }
    package var sentUpTo: UInt64 { 0 }
}

/// The state of a session at the time when a connection gets it.
package struct DurableOpening: Sendable {
    package let id: DurableSessionID
    /// Whether the session already existed when the connection requested it.
    package let isPresent: Bool
    /// The session's subscriptions in the store.
    package let subscriptions: [DurableSubscription]
    /// The newest seq of the session's queue; newer publications arrive through ``DurableAttachment/committed(_:)``.
    package let head: UInt64
    /// The newest seq at the time when the owner was last renamed (``StoredSession/renamedAt``).
    package let renamedAt: UInt64
    /// The last seq that was sent over an earlier connection. A delivery of a publication up to this seq is a
    /// duplicate.
    package let sentUpTo: UInt64
    /// The seqs that wait for their completion (PUBCOMP), in ascending order.
    package let released: [UInt64]
    /// The packet identifiers of the client's own QoS 2 publications that it has not released (PUBREL).
    package let received: [UInt16]

    /// Whether the session outlives its connection. A session that ends with its connection has no queue, and is not
    /// stored.
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
    package func renamed(to name: NickName) {}
}

extension DurableSessionID {
    /// Whether the session is stored. A session that is not stored ends with its connection.
    package var isStored: Bool { rawValue > 0 }
}

/// A part of a session's queue.
package struct DurablePage: Sendable {
    /// The publications in ascending order of their seqs, without those that have expired.
    package let publications: [QueuedPublication]
    /// The sum of the publications' weights (``QueuedPublication/weight``), in bytes.
    package let weight: Int
    /// The last seq that was read; the next page begins after it. If ``isAtEnd`` is true, this seq is at least the
    /// newest seq that was known when the read began.
    package let upTo: UInt64
    /// Whether the queue had no further publications when it was read.
    package let isAtEnd: Bool
}
