// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// The core's attachment for a connection with a session. The connection's loop owns its mutable state.
final class MQTTSessionLink: DurableAttachment, @unchecked Sendable {  // Confined, except the calls below.
    /// The client's connection. Other threads only post to its loop.
    private let owner: MQTTConnection
    /// The session's id; nil until the session is attached.
    var id: DurableSessionID?
    /// The newest seq that other nodes are known to have queued before the session was attached.
    var head: UInt64 = 0
    /// The numbers of acknowledged messages that are not yet reported to the core.
    var completed: [UInt64] = []
    /// The removals of the client from rooms that operators requested before CONNACK.
    var expulsions: [RoomExpulsion] = []
    /// The session's subscriptions in the store; empty before the session is attached, and after CONNACK.
    var restored: [DurableSubscription] = []

    /// The client's permissions, for the core; nil for a session that ends with its connection, because the
    /// connection itself checks the messages of such a session.
    let reader: (any TopicReader)?
    let source: CommitSource
    /// Whether the session ends with this connection, regardless of the agreed session expiry.
    private(set) var endsSession = false
    /// Whether the client's account has lost its name.
    private(set) var isNameFree = false
    let order: AttachmentOrder
    private let identity: ClientIdentity
    private let sent = Atomic<UInt64>(0)

    init(_ owner: MQTTConnection, _ client: MQTTClientState) {
        var identity = client.identity
        // The claims may be long, and are not needed here.
        if identity.claims != nil { identity.claims = nil }
        self.identity = identity
        reader = client.sessionExpiry == .zero ? nil : client.reader
        source = owner.source(of: client)
        order = owner.connection.order
        self.owner = owner
    }

    var userName: String? { identity.userName }
    var tokenOwner: DeviceID? { identity.tokenOwner }
    var login: LoginNumber? { identity.principal?.login }
    var shown: ShownProof { identity.shown }

    func ends(with end: AttachmentEnd) {
        endsSession = endsSession || end.endsKeptSessions
        isNameFree = isNameFree || end.freesName
    }

    /// Records that the connection is about to send or drop the message with this number.
    func mayHaveSent(upTo number: UInt64) { sent.store(number, ordering: .relaxed) }

    var sentUpTo: UInt64 { sent.load(ordering: .relaxed) }

    func renamed(to name: NickName) { identity.principal?.rename(to: name) }

    func replaced() { ended(.replaced) }

    func ended(_ reason: AttachmentEnd) { owner.connection.loop.post(.ended(owner.connection, reason)) }

    func committed(_ publications: [QueuedPublication]) {
        owner.connection.loop.post(.run { [self] in owner.committed(publications) })
    }

    func advanced(to head: UInt64) {
        owner.connection.loop.post(.run { [self] in owner.advanced(to: head) })
    }
}
