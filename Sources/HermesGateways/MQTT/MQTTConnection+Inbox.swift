// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import Metrics
import NIOCore

/// The native protocol over MQTT: the account's inbox, and publications that the server handles itself or refuses.
extension MQTTConnection {
    /// Adjusts the inbox after a change of the subscriptions or permissions. The inbox is open while the client
    /// subscribes to it, in the format and with the QoS of its present subscriptions.
    func adjustInbox(of client: MQTTClientState) {
        guard let account = client.account, !account.asking.isEmpty else { return }
        // The client may have thousands of subscriptions, but at most about ten of them ask for the inbox.
        account.asking = account.asking.filter { client.subscriptions[$0] != nil }
        let asking = account.asking.compactMap { text in
            client.subscriptions[text].flatMap { held in
                TopicFilter(text.rawValue).map { (filter: $0, options: held.options) }
            }
        }
        let form = MQTTInbox.form(of: asking) { topic in TopicName(topic).map(mayRead) ?? false }
        guard let form else {
            account.inbox?.close()
            return
        }
        guard let login = account.login else {
            // The session was kept with a subscription to the inbox, but the account no longer has the device.
            return openDevice(of: account) { [self] error in
                guard let error else { return adjustInbox(of: client) }
                // CONNACK has been sent by now, so the reason code must be one that DISCONNECT has.
                refuse(MQTTPacketError(MQTTTranslation.subackReason(for: error), error.message), because: error)
            }
        }
        let inbox = account.inbox ?? MQTTInbox(form, cursor: login.device.cursor)
        if account.inbox == nil { inbox.accepted(ownSlots: account.ownSlots) }
        account.inbox = inbox
        inbox.change(to: form)
        if let packets = inbox.packets { return packets.roomChanged() }
        let carrier = NativeConnection.Carrier(
            write: { [unowned self] packet, kind in writeDown(packet, kind) },
            freeSlots: { [unowned self] in self.client?.inbox?.freeSlots(self.outbound.window) ?? .max },
            rules: { [unowned self] in self.client?.access(environment.access) }
        )
        let packets = NativeConnection(connection: connection, environment: environment, carrier: carrier)
        inbox.open(packets)
        // The session is attached, so the server would have ended this connection if necessary. So the login is not
        // affected if the server ended other connections of the account before this moment.
        let present = phase == .connected ? environment.messenger.accounts.continued(login) : login
        packets.authenticated(present, after: inbox.cursor, window: MQTTInbox.windowSize)
        // From now on the client can be warned that its token expires. The check follows soon, after SUBACK.
        if client.identity.expiresAt != nil { connection.wake(in: .zero) }
    }

    /// Registers the client's device. From now on, entries of the account's inbox wait for it.
    ///
    /// - Parameter then: called with nil after ``MQTTAccountState/login`` is set, or with the error.
    func openDevice(of account: MQTTAccountState, then: @escaping (HermesError?) -> Void) {
        guard !account.isIDAssigned else {
            return then(
                HermesError(.forbidden, "an inbox needs a permanent client identifier that the client chose")
            )
        }
        guard let admission = account.admission else {
            return then(HermesError(.notAuthenticated, "the device is gone; log in again"))
        }
        let accounts = environment.messenger.accounts
        let device = account.device
        connection.ask { () async throws(HermesError) -> Login in
            try await accounts.open(device, by: admission, isLate: true)
        } then: { result in
            switch result {
            case .success(let login):
                account.login = login
                then(nil)
            case .failure(let error):
                then(error)
            }
        }
    }

    /// Sends a packet of the native protocol, or a replacement if the packet is too long for the client.
    private func writeDown(_ packet: Hermes_V1_Packet, _ kind: Publication.DropClass) -> NativeConnection.Carriage {
        // Nothing more is written over this connection. The next connection delivers the packet.
        guard phase == .connected, let inbox = client?.inbox, inbox.packets != nil else { return .carried }
        let payload = inbox.payload(of: packet)
        if let payload, writesDown(payload, packet, kind, inbox) { return .carried }
        for standIn in MQTTInbox.standIns(for: packet, bytes: payload?.readableBytes ?? 0) {
            guard let payload = inbox.payload(of: standIn) else { continue }
            if writesDown(payload, standIn, kind, inbox) {
                gateway.metrics.standIns.increment()
                return .carried
            }
        }
        dropped(.tooLarge)
        return .leftOut
    }

    /// Sends a packet of the native protocol as a publication.
    ///
    /// - Returns: false if the client accepts no packet of that size. In that case, nothing was written.
    private func writesDown(
        _ payload: ByteBuffer,
        _ packet: Hermes_V1_Packet,
        _ kind: Publication.DropClass,
        _ inbox: MQTTInbox
    ) -> Bool {
        guard let topic = TopicName(inbox.form.topic) else { return false }
        let publication = Publication(topic: topic, payload: payload, kind: Publication.plainKind)
        let id = inbox.nextPacketID(for: packet)
        let publish = self.packet(
            publication,
            id == nil ? .atMostOnce : .atLeastOnce,
            packetID: id ?? 0,
            isRetained: false,
            identifiers: []
        )
        guard let publish else { return false }
        if id != nil { inbox.sent(packet, &outbound.window) }
        connection.write(kind, frame: publish.bytes, sharing: publish.payload)
        return true
    }

    /// Handles the PUBACK for an entry of the inbox. The PUBACK counts even after UNSUBSCRIBE, because deliveries
    /// that have begun are completed [MQTT-3.10.4-3].
    func inboxAcknowledged(_ packetID: UInt16) {
        guard let account = client?.account, let inbox = account.inbox else { return }
        let hadRoom = outbound.window.hasRoom
        if let taken = inbox.acknowledged(packetID, &outbound.window) {
            if let packets = inbox.packets {
                packets.acknowledged(upTo: taken)
            } else if let login = account.login {
                environment.messenger.inbox.acknowledge(login.principal, upTo: taken)
            }
        }
        // If other publications wait for the slot, they get it.
        if !hadRoom, outbound.window.hasRoom { sendWaiting() }
        inbox.packets?.roomChanged()
    }

    /// Handles a publication for the server itself, or a publication that cannot be delivered to clients of other
    /// protocols.
    ///
    /// - Returns: true if the publication was handled here; false if it must be published.
    func takesSpecial(_ publication: Publication, _ head: MQTTPublishHead) -> Bool {
        switch publication.topic.rawValue {
        case MQTTInbox.Topic.up: receivedUp(publication.payload, isJSON: false, head)
        case MQTTInbox.Topic.upJSON: receivedUp(publication.payload, isJSON: true, head)
        default:
            let parts = ApplicationTopics.partCount(of: publication.topic, publication.payload)
            connection.charge(.parts(parts))
            if ApplicationTopics.contains(publication.topic.rawValue) {
                // The payload may be parsed as JSON.
                connection.charge(.json(publication.payload.readableBytes))
            }
            // The limit for a message applies to its payload.
            guard parts <= MessageParts.max else {
                refusedPayload(head)
                return true
            }
            do throws(HermesError) {
                try ApplicationTopics.check(publication.topic, publication.payload)
                return false
            } catch {
                refusedPayload(head)
            }
        }
        return true
    }

    /// Refuses a publication whose payload the topic's clients cannot get. Only a publisher that uses MQTT 5.0 with QoS
    /// 1 or 2 is told, so the publication is also counted.
    func refusedPayload(_ head: MQTTPublishHead) {
        gateway.metrics.refusedPayloads.increment()
        answer(head, .payloadFormatInvalid)
    }

    private func receivedUp(_ payload: ByteBuffer, isJSON: Bool, _ head: MQTTPublishHead) {
        guard let packets = client?.inbox?.packets else {
            // The client does not subscribe to the topic for answers, so it would not get the answer.
            return answer(head, .notAuthorized)
        }
        connection.charge(isJSON ? .json(payload.readableBytes) : .bytes(payload.readableBytes))
        do {
            let packet = try Hermes_V1_Packet(payload, isJSON: isJSON) { connection.charge(.parts($0)) }
            answer(head, .success)
            if !renewsToken(packet) { packets.received(packet) }
        } catch {
            answer(head, .payloadFormatInvalid)
        }
    }

    // MARK: Events

    package func inboxAdvanced(_ entries: [InboxEntry]) { client?.inbox?.packets?.inboxAdvanced(entries) }

    package func ephemeralArrived(_ event: EphemeralEvent) { client?.inbox?.packets?.ephemeralArrived(event) }

    package func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>) {
        client?.inbox?.packets?.sent(correlation, result)
    }

    func inboxClosed(_ client: MQTTClientState) {
        client.inbox?.close()
    }
}
