// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// What a client's publications leave in the store before they are acknowledged (4.3, 4.4).
extension MQTTConnection {
    /// Has a message stored for those who are away, and as the retained one; delivered to those who are connected and
    /// acknowledged after that.
    func store(
        _ publication: Publication,
        _ head: MQTTPublishHead,
        _ targets: [DurableTarget],
        of client: MQTTClientState
    ) {
        let stored = StoredPublication(publication, publishedAt: now())
        let number = client.inbound.stores(head.packetID, head.qos, publication.owned())
        let bytes = stored.weight
        connection.requestStarted(bytes: bytes)
        let bound = NIOLoopBound((connection: self, client: client), eventLoop: connection.loop.eventLoop)
        let loop = connection.loop
        let durable = environment.messenger.durable
        // At once, not when they are stored: by then many more would be on their way.
        connection.charge(.queues(durable.reach(of: stored, to: targets)))
        let receivedID = client.durable != nil && head.qos == .exactlyOnce ? head.packetID : nil
        durable.publish(
            stored,
            targets: targets,
            from: client.link?.id,
            receivedID: receivedID,
            retains: publication.retain,
            // 3.1.1 has no word for it.
            mustRetain: version == .v5,
            source: source
        ) { result in
            loop.post(
                .run { bound.value.connection.stored(number, bytes, result, receivedID, of: bound.value.client) }
            )
        }
    }

    /// No client waits until a retained message of QoS 0 is stored. But its connection is not read from while too much
    /// is on its way.
    func retain(_ stored: StoredPublication) {
        let bytes = stored.weight
        connection.requestStarted(bytes: bytes)
        let loop = connection.loop
        let bound = NIOLoopBound(connection, eventLoop: loop.eventLoop)
        environment.messenger.durable.retain(stored, source: source) { _ in
            loop.post(.run { bound.value.requestAnswered(bytes: bytes) })
        }
    }

    /// The payer for what a client stores: its owner or, without an owner, its address.
    func source(of client: MQTTClientState) -> CommitSource {
        CommitSource(client.key.owner) ?? connection.address
    }

    /// The source of this client's operations.
    var source: CommitSource { client?.link?.source ?? .server }

    /// - Parameters:
    ///   - receivedID: of a message of QoS 2 of a kept session.
    ///   - client: whose message; its connection may be closed by now.
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
                client.link.map { environment.messenger.durable.isPartlyStored($0.id, packetID) }
            }
            let isAnswered = version == .v5 && isPartlyStored != true
            client.inbound.stored(number, failure: reason, isAnswered: isAnswered)
            if !isAnswered, phase == .connected {
                // 3.1.1 has no refusal, and after one of 5.0 it would be another message, which those who have this one
                // get, too: the client has to send it again over another connection.
                parting = (reason, error.message)
                connection.end(.finished)
            }
        }
        while let done = client.inbound.popAcknowledgement() {
            if done.heldBytes > 0 { connection.requestAnswered(bytes: done.heldBytes) }
            // Also where the client has gone: its message is stored, and its turn has come.
            let workBefore = topics.matchWork
            if let publication = done.publication {
                connection.keepPace(with: topics.publish(publication, isPaced: phase == .connected))
            }
            searched(since: workBefore)
            if done.isWritten, phase == .connected { writeAcknowledgement(done.type, done.packetID, done.reason) }
        }
    }

    /// PUBREL: the client will not send the message again under this identifier (4.3.3).
    func releaseReceived(_ packetID: UInt16) {
        guard let client, client.inbound.released(packetID) else {
            return writeAcknowledgement(.pubcomp, packetID, .packetIdentifierNotFound)
        }
        guard client.durable != nil, let link = client.link else { return writeAcknowledgement(.pubcomp, packetID) }
        // After PUBCOMP the client may use the identifier for another message. The store must have removed it by then,
        // or that message would count as the old one after a restart, and be lost.
        connection.requestStarted()
        let bound = NIOLoopBound(self, eventLoop: connection.loop.eventLoop)
        let loop = connection.loop
        environment.messenger.durable.receivedReleased(link.id, packetID, source: link.source) { result in
            loop.post(.run { bound.value.releaseStored(packetID, result) })
        }
    }

    private func releaseStored(_ packetID: UInt16, _ result: Result<Void, HermesError>) {
        connection.requestAnswered()
        guard phase == .connected else { return }
        switch result {
        case .success: writeAcknowledgement(.pubcomp, packetID)
        // The client repeats it over its next connection.
        case .failure: connection.end(.finished)
        }
    }
}
