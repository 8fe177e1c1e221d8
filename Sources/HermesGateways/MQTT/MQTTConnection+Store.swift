// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// Storing a client's publications before they are acknowledged (4.3, 4.4).
extension MQTTConnection {
    /// Stores a message: for kept sessions (those that outlive their connections) and, if RETAIN is set, as the
    /// retained message of its topic. After that, the message is delivered to connected subscribers and acknowledged.
    func store(
        _ publication: Publication,
        _ head: MQTTPublishHead,
        _ targets: [DurableTarget],
        of client: MQTTClientState
    ) {
        let stored = StoredPublication(publication, publishedAt: now())
        let durable = environment.messenger.durable
        // The cost is charged at once and not after the commit, because by then many more messages would be on their
        // way to the store.
        connection.charge(.queues(durable.reach(of: stored, to: targets)))
        // The charge may have ended the connection.
        guard phase == .connected else { return }
        let number = client.inbound.stores(head.packetID, head.qos, publication.owned())
        let bytes = stored.weight
        connection.requestStarted(bytes: bytes)
        let loop = connection.loop
        let bound = loop.bound((connection: self, client: client))
        let receivedID = client.durable != nil && head.qos == .exactlyOnce ? head.packetID : nil
        durable.publish(
            stored,
            targets: targets,
            from: client.link?.id,
            receivedID: receivedID,
            retains: publication.retain,
            // 3.1.1 cannot refuse the message, so in 3.1.1 it is delivered even if it cannot be retained.
            mustRetain: version == .v5,
            source: source
        ) { result in
            loop.post(
                .run { bound.value.connection.stored(number, bytes, result, receivedID, of: bound.value.client) }
            )
        }
    }

    /// Stores a retained message of QoS 0. The client gets no answer, but nothing is read from its connection while
    /// too many of its messages are on their way to the store.
    func retain(_ stored: StoredPublication) {
        let bytes = stored.weight
        connection.requestStarted(bytes: bytes)
        let connection = connection
        environment.messenger.durable.retain(stored, source: source) { _ in
            connection.loop.post(.run { connection.requestAnswered(bytes: bytes) })
        }
    }

    /// Returns the source that pays for a client's stored data: the client's owner, or the client's address if there is
    /// no owner.
    func source(of client: MQTTClientState) -> CommitSource {
        CommitSource(client.key.owner) ?? connection.address
    }

    /// The source of this client's operations.
    var source: CommitSource { client?.link?.source ?? .server }

    /// - Parameters:
    ///   - receivedID: the packet identifier of a QoS 2 message from a kept session; nil for other messages.
    ///   - client: the client that sent the message. Its connection may be closed by now.
    private func stored(
        _ number: UInt64,
        _ bytes: Int,
        _ result: Result<Void, HermesError>,
        _ receivedID: UInt16?,
        of client: MQTTClientState
    ) {
        connection.requestAnswered(bytes: bytes)
        switch result {
        case .success:
            client.inbound.stored(number, failure: nil)
        case .failure(let error):
            let reason = MQTTTranslation.publishReason(for: error)
            let isPartlyStored = receivedID.flatMap { packetID in
                client.link?.id.map { environment.messenger.durable.isPartlyStored($0, packetID) }
            }
            let isAnswered = version == .v5 && isPartlyStored != true
            client.inbound.stored(number, failure: reason, isAnswered: isAnswered)
            if !isAnswered, phase == .connected {
                // In 3.1.1 the server cannot refuse a message. In 5.0 it must not refuse a message that is partly
                // stored: if the client sent it again as a new message, the sessions that already have it would get
                // it twice. So the connection ends, and the client has to repeat the message over another connection.
                giveReason(reason, error.message, error)
                connection.end(.finished)
            }
        }
        while let done = client.inbound.popAcknowledgement() {
            if done.heldBytes > 0 { connection.requestAnswered(bytes: done.heldBytes) }
            // The message is published even if the client has gone, because it is stored and is now the next message
            // in order.
            let workBefore = topics.matchWork
            if let publication = done.publication {
                connection.keepPace(with: topics.publish(publication, isPaced: phase == .connected))
            }
            searched(since: workBefore)
            if done.isWritten, phase == .connected { writeAcknowledgement(done.type, done.packetID, done.reason) }
        }
    }

    /// Handles a PUBREL: the client will not send the message again under this identifier (4.3.3).
    func releaseReceived(_ packetID: UInt16) {
        guard let client, client.inbound.released(packetID) else {
            return writeAcknowledgement(.pubcomp, packetID, .packetIdentifierNotFound)
        }
        guard client.durable != nil, let link = client.link, let id = link.id else {
            return writeAcknowledgement(.pubcomp, packetID)
        }
        // After PUBCOMP the client may use the identifier for another message. The store must have removed the
        // identifier by then. If the store still had it, the server would mistake the new message for the old message
        // after a restart, and the new message would be lost.
        connection.requestStarted()
        let loop = connection.loop
        let bound = loop.bound(self)
        environment.messenger.durable.receivedReleased(id, packetID, source: link.source) { result in
            loop.post(.run { bound.value.releaseStored(packetID, result) })
        }
    }

    private func releaseStored(_ packetID: UInt16, _ result: Result<Void, HermesError>) {
        connection.requestAnswered()
        guard phase == .connected else { return }
        switch result {
        case .success: writeAcknowledgement(.pubcomp, packetID)
        // The client repeats PUBREL over its next connection.
        case .failure(let error): end(because: error)
        }
    }

    /// Ends the connection because the store has failed. The client has to repeat its packet over another connection.
    func end(because error: HermesError) {
        giveReason(.unspecifiedError, error.message, error)
        connection.end(.finished)
    }
}
