// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// The operators' view of a client, and their actions on it.
extension MQTTConnection: OperatedClient {
    package var operated: (any OperatedClient)? { phase == .connected && client != nil ? self : nil }
    package var clientID: String { client?.identity.clientID ?? "" }
    package var owner: String { client?.identity.userName ?? "" }

    package func listing() -> ClientListing {
        ClientListing(
            number: number,
            clientID: ClientListing.shown(clientID),
            owner: ClientListing.shown(owner),
            version: version == .v5 ? "MQTT 5.0" : "MQTT 3.1.1",
            listener: connection.listener.name,
            address: connection.remoteHost ?? "",
            age: connection.age,
            subscriptions: client?.subscriptions.count ?? 0,
            queued: outbound.waiting.count + (client?.durable?.queuedCount ?? 0),
            inflight: outbound.window.inflight,
            heldBytes: connection.shownBytes,
            isKept: client?.durable != nil
        )
    }

    package func disconnect() {
        guard phase == .connected else { return }
        giveReason(.administrativeAction, "an operator ended the connection")
        connection.end(.finished)
    }
}
