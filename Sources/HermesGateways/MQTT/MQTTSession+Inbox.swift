// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import NIOCore

/// What is not for subscribers: the native protocol in publications, and what rooms ask of theirs.
extension MQTTSession {
    /// The client subscribed to what comes down: from now on it gets its account's inbox.
    func openInbox(_ filter: TopicFilter, _ qos: QoS, of client: MQTTClientState) {
        guard let account = client.account else { return }
        let inbox = inbox(of: account)
        inbox.subscribed(filter, qos)
        guard !account.isInboxOpen else { return }
        account.isInboxOpen = true
        let login = account.login
        inbox.packets.authenticated(login, after: login.device.cursor, window: MQTTInbox.windowSize)
    }

    private func inbox(of account: MQTTAccountState) -> MQTTInbox {
        if let inbox = account.inbox { return inbox }
        let carrier = DelimitedSession.Carrier(
            write: { [unowned self] packet in writeDown(packet) },
            rules: { [unowned self] in client?.access(environment.access) }
        )
        let packets = DelimitedSession(connection: connection, environment: environment, carrier: carrier)
        let inbox = MQTTInbox(packets: packets)
        account.inbox = inbox
        return inbox
    }

    private func writeDown(_ packet: Hermes_V1_Packet) {
        guard phase == .connected, let account = client?.account, account.isInboxOpen, let inbox = account.inbox,
            let payload = inbox.payload(of: packet),
            let topic = TopicName(inbox.isJSON ? MQTTInbox.Topic.downJSON : MQTTInbox.Topic.down)
        else { return }
        let publication = Publication(topic: topic, payload: payload, kind: Publication.plainKind)
        let id = inbox.packetID(for: packet)
        send(
            publication,
            id == nil ? .atMostOnce : .atLeastOnce,
            packetID: id ?? 0,
            isRetained: false,
            identifiers: []
        )
    }

    /// Takes a publication that is for the server itself, or that a room does not take.
    ///
    /// - Returns: false if it is to be published.
    func takesSpecial(_ publication: Publication, _ head: MQTTPublishHead) -> Bool {
        switch publication.topic.rawValue {
        case MQTTInbox.Topic.up: receivedUp(publication.payload, isJSON: false, head)
        case MQTTInbox.Topic.upJSON: receivedUp(publication.payload, isJSON: true, head)
        default: return false
        }
        return true
    }

    private func receivedUp(_ payload: ByteBuffer, isJSON: Bool, _ head: MQTTPublishHead) {
        guard let account = client?.account, account.isInboxOpen, let inbox = account.inbox else {
            // Without the topic of the answers nobody would hear them.
            return answer(head, .notAuthorized)
        }
        do {
            let packet = try MQTTInbox.packet(from: payload, isJSON: isJSON)
            answer(head, .success)
            inbox.packets.received(packet)
        } catch {
            answer(head, .payloadFormatInvalid)
        }
    }

    // MARK: Events

    package func inboxAdvanced(_ entries: [InboxEntry]) { client?.inbox?.packets.inboxAdvanced(entries) }

    package func ephemeralArrived(_ event: EphemeralEvent) { client?.inbox?.packets.ephemeralArrived(event) }

    package func sent(_ correlation: UInt64, _ result: Result<SendReceipt, HermesError>) {
        client?.inbox?.packets.sent(correlation, result)
    }

    func inboxClosed(_ client: MQTTClientState) {
        guard let account = client.account else { return }
        account.isInboxOpen = false
        account.inbox?.packets.closed()
        account.inbox = nil
    }
}

/// What rooms ask of a publication: LiveRoom's viewers are in them, too.
extension MQTTTranslation {
    /// LiveRoom's type of a message to a room; nil if it says one that is not a client's, or if the body is not of that
    /// type.
    static func roomKind(of publication: Publication) -> UInt16? {
        guard let text = publication.details?.userProperties.first(where: { $0.name == roomTypeName })?.value else {
            return Publication.plainKind
        }
        guard let number = UInt16(text) else { return nil }
        let type = LiveRoomFrameType(rawValue: number)
        switch type {
        case .join, .leave, .text, .gift: break
        default: guard type.isApplicationDefined else { return nil }
        }
        guard let frame = try? LiveRoomFrame(type: type, body: publication.payload) else { return nil }
        return frame.hasGoodBody ? number : nil
    }
}
