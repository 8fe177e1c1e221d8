// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import HermesWire
import Metrics
import NIOCore

/// Sending PUBLISH to the client (3.3, 4.3, 4.9).
extension MQTTConnection {
    package var awaitsConfirmation: Bool { !outbound.window.isEmpty }

    package func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
        // The shared subscriptions of an ended connection are not active, so their messages go to other members.
        guard phase == .connected else { return }
        if subscription.isOwnApart, delivery.publisher == publisher {
            if let own = subscription.own { deliver(delivery, for: own) }
            return
        }
        let qos = min(delivery.qos, subscription.qos)
        if qos == .atMostOnce {
            if subscription.isPlain, !outbound.usesAliases {
                deliverShared(delivery, for: subscription)
            } else {
                deliverOnce(delivery, subscription)
            }
        } else if !subscription.isLiveAtMostOnceOnly {
            deliverAcknowledged(delivery, qos, subscription)
        }
    }

    package func deliver(_ run: DeliveryRun, for subscription: TopicSubscription) {
        guard phase == .connected else { return }
        if subscription.isOwnApart, run.run.publisher == publisher {
            if let own = subscription.own { deliver(run, for: own) }
            return
        }
        if !sendTogether(run, subscription) { subscription.deliverOneByOne(run) }
    }

    /// Delivers with QoS 0. All subscribers of one MQTT version share the bytes.
    @inline(__always)
    private func deliverShared(_ delivery: Delivery, for subscription: TopicSubscription) {
        let version = version
        let slot: EncodingSlot = version == .v5 ? .mqttV5 : .mqttV311
        let frame = delivery.borrowed(slot) { publication in
            let now = expiryTime(of: publication.details)
            return MQTTPublishWriter.shared(publication, version: version, acknowledged: false, now: now)
        }
        guard frame.count <= outbound.maxPacketBytes else { return dropped(.tooLarge) }
        connection.tally.messagesOut += 1
        guard !connection.writeNow(frame) else { return }
        connection.write(.text, frame: delivery.compact(slot))
        noteLag(of: subscription)
    }

    /// Records that this client does not keep up with a shared subscription. Until this client has read its output,
    /// further messages go to the subscription's other members.
    private func noteLag(of subscription: TopicSubscription) {
        if !connection.keepsUp, subscription.isShared { client?.shared.load.fallBehind() }
    }

    /// Delivers with QoS 0 in a packet for this subscriber alone. This is necessary for a subscription with options,
    /// and for a client with topic aliases.
    private func deliverOnce(_ delivery: Delivery, _ subscription: TopicSubscription) {
        let options = subscription.options
        let publication = delivery.publication
        guard !options.isFiltered || mayRead(publication.topic) else { return withhold(delivery, subscription) }
        sendOnce(
            publication,
            isRetained: options.retainAsPublished && publication.retain,
            identifiers: options.identifiers
        )
        noteLag(of: subscription)
    }

    /// Delivers with QoS 1 or 2 to a session that ends with its connection.
    private func deliverAcknowledged(_ delivery: Delivery, _ qos: QoS, _ subscription: TopicSubscription) {
        guard subscription.isPlain || !subscription.options.isFiltered || mayRead(delivery.publication.topic) else {
            return withhold(delivery, subscription)
        }
        guard outbound.hasRoom, connection.hasRoom else {
            return wait(delivery, qos, subscription)
        }
        guard subscription.isPlain, !outbound.usesAliases else {
            let options = subscription.options
            let isSent = sendWindowed(
                delivery.publication,
                qos,
                isRetained: options.retainAsPublished && delivery.publication.retain,
                identifiers: options.identifiers
            )
            if isSent, subscription.isShared { remember(delivery.kept(), qos, subscription as? SharedSubscription) }
            return
        }
        let version = version
        let frame = delivery.encoded(Self.slot(version, isAcknowledged: true)) { publication in
            let now = expiryTime(of: publication.details)
            return MQTTPublishWriter.shared(publication, version: version, acknowledged: true, now: now)
        }
        guard frame.readableBytes <= outbound.maxPacketBytes else { return dropped(.tooLarge) }
        let id = outbound.window.send(exactlyOnce: qos == .exactlyOnce)
        if subscription.isShared { remember(delivery.kept(), qos, subscription as? SharedSubscription) }
        connection.tally.messagesOut += 1
        connection.write(patching: frame, head: Self.packetIDPlace(in: frame).map { $0 + 2 }) { buffer, start in
            Self.put(qos, id, into: &buffer, at: start)
        }
    }

    /// Withholds a message that the client may not read. If the subscription is shared, the rules have changed since
    /// the group chose this member, so another member gets the message.
    private func withhold(_ delivery: Delivery, _ subscription: TopicSubscription) {
        guard let shared = subscription as? SharedSubscription else { return }
        topics.passOn(delivery.kept(), of: shared)
    }

    /// Sends packets that arrived together as one block of bytes.
    ///
    /// - Returns: false if the packets cannot be sent as one block. In that case, nothing was sent.
    private func sendTogether(_ delivery: DeliveryRun, _ subscription: TopicSubscription) -> Bool {
        let run = delivery.run
        guard subscription.isPlain, !outbound.usesAliases, !subscription.isShared, subscription.qos >= run.qos,
            run.bytes.readableBytes <= outbound.maxPacketBytes
        else { return false }
        if run.qos == .atMostOnce {
            guard run.slot == (version == .v5 ? .mqttV5 : .mqttV311) else { return false }
            if connection.keepsUp {
                connection.write(.text, frame: run.bytes, count: run.count)
            } else if connection.isWorthKeepingTogether(run.bytes) {
                connection.write(.text, frame: delivery.compactBytes, count: run.count)
            } else {
                return false
            }
            connection.tally.messagesOut += run.count
            return true
        }
        guard connection.keepsUp, run.slot == (version == .v5 ? .mqttV5Acknowledged : .mqttV311Acknowledged),
            !subscription.isLiveAtMostOnceOnly, outbound.hasRoom(for: run.count)
        else { return false }
        let isExactlyOnce = run.qos == .exactlyOnce
        connection.tally.messagesOut += run.count
        connection.write(patching: run.bytes, frames: run.count) { buffer, start in
            for body in run.bodies {
                let id = outbound.window.send(exactlyOnce: isExactlyOnce)
                buffer.setInteger(id, at: start + Int(body.lowerBound))
            }
        }
        return true
    }

    /// Turns the shared form of a packet into this subscriber's form: sets the QoS and the packet identifier, and
    /// clears the retain and duplicate flags.
    private static func put(_ qos: QoS, _ packetID: UInt16, into buffer: inout ByteBuffer, at start: Int) {
        buffer.setInteger(MQTTPacketType.publish.rawValue << 4 | qos.rawValue << 1, at: start)
        guard let place = packetIDPlace(in: buffer, at: start) else { return }
        buffer.setInteger(packetID, at: start + place)
    }

    /// Returns the offset of the packet identifier in a PUBLISH packet of QoS 1 or 2.
    ///
    /// - Parameter start: the index of the packet's first byte; nil for the first readable byte.
    private static func packetIDPlace(in buffer: ByteBuffer, at start: Int? = nil) -> Int? {
        let start = start ?? buffer.readerIndex
        var index = start + 2
        while let byte = buffer.getInteger(at: index - 1, as: UInt8.self), byte >= 0x80, index < start + 5 {
            index += 1
        }
        return buffer.getInteger(at: index, as: UInt16.self).map { index - start + 2 + Int($0) }
    }

    /// Whether the client may read a topic that one of its filters matches: the rules allow it, and no operator has
    /// removed the client from the topic's room.
    func mayRead(_ topic: TopicName) -> Bool {
        guard let client, client.closedRooms.isEmpty || !client.closedRooms.contains(topic) else { return false }
        return client.access(environment.access).allows(.subscribe, topic)
    }

    private func wait(_ delivery: Delivery, _ qos: QoS, _ subscription: TopicSubscription) {
        let options = subscription.options
        let publication = delivery.kept()
        wait(
            MQTTWaitingQueue.Message(
                publication: publication,
                qos: qos,
                isRetained: options.retainAsPublished && publication.retain,
                identifiers: options.identifiers,
                shared: subscription.isShared ? subscription as? SharedSubscription : nil
            )
        )
    }

    /// Remembers the message that was just sent, so that other members of the shared subscription can get it if this
    /// client leaves.
    private func remember(_ publication: Publication, _ qos: QoS, _ subscription: SharedSubscription?) {
        guard let client, let subscription else { return }
        let sent = MQTTSharedState.Sent(publication: publication, qos: qos, subscription: subscription)
        if client.shared.remember(outbound.window.next - 1, sent) { measureMemory() }
        client.shared.load.add()
    }

    /// Forgets a message that is complete or that the client has received, if the message belongs to a shared
    /// subscription.
    private func forgetShared(_ number: UInt64) {
        guard let client, client.hasShared, client.shared.forget(number) != nil else {
            return
        }
        client.shared.load.subtract()
    }

    private func wait(_ message: MQTTWaitingQueue.Message) {
        let settings = gateway.settings
        let (count, bytes) = (settings.maxQueuedMessages, settings.maxQueuedBytes)
        if outbound.waiting.append(message, maxCount: count, maxBytes: bytes) {
            if message.shared != nil { client?.shared.load.add() }
        } else if let subscription = message.shared {
            // Until the queue has room again, the group chooses other members.
            client?.shared.load.isFull = true
            topics.passOn(message.publication, of: subscription)
        } else {
            dropped(.queueFull)
        }
        measureMemory()
    }

    /// Reports to the connection the memory that is kept for the client.
    func measureMemory() {
        let target = 2 &* (lastTarget?.topic.rawValue.utf8.count ?? 0)
        connection.sessionHolds(outbound.bytes &+ (client?.heldBytes(loops: topics.loopCount) ?? 0) &+ target)
    }

    /// Counts a message that is not sent.
    func dropped(_ reason: MQTTOutbound.Drop) {
        switch reason {
        case .tooLarge: gateway.metrics.droppedTooLarge.increment()
        case .queueFull: gateway.metrics.droppedQueueFull.increment()
        case .expired: gateway.metrics.droppedExpired.increment()
        }
    }

    /// Sends a QoS 0 message in a packet for this client alone. A packet that is too large for the client is dropped
    /// and counted.
    func sendOnce(_ publication: Publication, isRetained: Bool, identifiers: [UInt32]) {
        guard
            let packet = packet(
                publication,
                .atMostOnce,
                packetID: 0,
                isRetained: isRetained,
                identifiers: identifiers
            )
        else { return dropped(.tooLarge) }
        connection.tally.messagesOut += 1
        connection.write(.text, frame: packet.bytes, sharing: packet.payload)
    }

    /// Sends a QoS 1 or 2 message of a session that ends with its connection; the window must have room. Only a
    /// packet that is sent uses a slot of the window, because no acknowledgement would ever free the slot of an
    /// unsent packet.
    ///
    /// - Returns: false if the packet is too large for the client. In that case, the drop was counted.
    private func sendWindowed(_ publication: Publication, _ qos: QoS, isRetained: Bool, identifiers: [UInt32]) -> Bool {
        if identifiers.isEmpty, !outbound.usesAliases,
            MQTTPublishWriter.isPlain(publication, maxBytes: outbound.maxPacketBytes)
        {
            var writer = MQTTPublishWriter(version: version, qos: qos, now: Timestamp(rawValue: 0))
            writer.packetID = outbound.window.send(exactlyOnce: qos == .exactlyOnce)
            writer.isRetained = isRetained
            connection.tally.messagesOut += 1
            writePlain(writer, publication.topic, publication.payload)
            return true
        }
        let next = outbound.window.nextPacketID
        guard
            let packet = packet(
                publication,
                qos,
                packetID: next,
                isRetained: isRetained,
                identifiers: identifiers
            )
        else {
            dropped(.tooLarge)
            return false
        }
        guard outbound.window.send(exactlyOnce: qos == .exactlyOnce) == next else { return false }
        connection.tally.messagesOut += 1
        connection.write(frame: packet.bytes, sharing: packet.payload)
        return true
    }

    /// Writes a packet without properties straight into the output, so that no packet is allocated for it
    /// (``MQTTPublishWriter/isPlain(_:maxBytes:)-(Publication,_)``).
    func writePlain(_ writer: MQTTPublishWriter, _ topic: TopicName, _ payload: ByteBuffer) {
        connection.write { writer.writePlain(topic, payload, into: &$0) }
    }

    /// Encodes a message as a packet for this client alone.
    ///
    /// This function neither sends the packet nor uses a slot of the window. The caller must send the result at once,
    /// because the packet may set a topic alias.
    /// - Returns: the PUBLISH packet; nil if the client accepts no packet of that size.
    func packet(
        _ publication: Publication,
        _ qos: QoS,
        packetID: UInt16,
        isRetained: Bool,
        isDuplicate: Bool = false,
        identifiers: [UInt32]
    ) -> MQTTPublishPacket? {
        var writer = MQTTPublishWriter(version: version, qos: qos, now: expiryTime(of: publication.details))
        writer.packetID = packetID
        writer.isRetained = isRetained
        writer.isDuplicate = isDuplicate
        if version == .v5 {
            writer.identifiers = identifiers
            if outbound.usesAliases { alias(publication.topic, &writer) }
        }
        let packet = writer.packet(publication)
        guard packet.readableBytes <= outbound.maxPacketBytes else {
            // The packet that sets the alias is not sent, so the client will not know the alias.
            if writer.alias != nil, !writer.omitsTopic { outbound.forgetAlias(of: publication.topic) }
            return nil
        }
        return packet
    }

    /// Lets the packet use or set a topic alias. The first topics get aliases, until the client's maximum is reached.
    private func alias(_ topic: TopicName, _ writer: inout MQTTPublishWriter) {
        switch outbound.alias(of: topic, mayAdd: connection.keepsUp) {
        case .noAlias: break
        case .known(let alias):
            writer.alias = alias
            writer.omitsTopic = true
        case .new(let alias):
            // The alias is new: the packet that sets it must be written now and must not be dropped.
            writer.alias = alias
            measureMemory()
        }
    }

    // MARK: Waiting

    /// Sends waiting messages, now that the window or the connection has room again.
    func sendWaiting() {
        guard phase == .connected, let client else { return }
        if client.durable != nil { sendQueued() }
        while connection.hasRoom, let message = outbound.popWaiting() {
            if client.hasShared { client.shared.load.isFull = false }
            sendAcknowledged(message)
        }
        noteRoom(of: client)
        measureMemory()
        sendRetained(client)
    }

    /// Lets the groups of shared subscriptions choose this client again, because there is room for a message to this
    /// client now. There may have been no room although the queue was empty, because a message was too large for the
    /// queue.
    private func noteRoom(of client: MQTTClientState) {
        guard client.hasShared, client.shared.load.isFull, outbound.hasRoom, connection.hasRoom else { return }
        client.shared.load.isFull = false
    }

    /// Sends a message for which the window has room, unless the message has expired, or the client may no longer
    /// read it. If the client may no longer read a message of a shared subscription, the message goes to another
    /// member.
    func sendAcknowledged(_ message: MQTTWaitingQueue.Message) {
        let publication = message.publication
        if message.shared != nil { client?.shared.load.subtract() }
        guard publication.details?.hasExpired(at: now()) != true else { return dropped(.expired) }
        guard client?.subscriptions.hasFiltered != true || mayRead(publication.topic) else {
            if let subscription = message.shared { topics.passOn(publication, of: subscription) }
            return
        }
        let isSent = sendWindowed(
            publication,
            message.qos,
            isRetained: message.isRetained,
            identifiers: message.identifiers
        )
        if isSent { remember(publication, message.qos, message.shared) }
    }

    // MARK: Acknowledgements

    func acknowledgementReceived(_ type: MQTTPacketType, _ packetID: UInt16, _ reason: MQTTReasonCode) {
        switch type {
        case .puback where Int(packetID) >= MQTTInbox.firstPacketID: return inboxAcknowledged(packetID)
        case .pubrel: return releaseReceived(packetID)
        default: break
        }
        let hadRoom = outbound.window.hasRoom
        let answer = outbound.acknowledged(
            type,
            packetID,
            isRefused: reason.isFailure,
            storesReleases: type == .pubrec && client?.durable != nil
        )
        switch answer {
        case .completed(let number):
            forgetShared(number)
            guard let client else { return }
            complete(number, of: client)
            if !outbound.waiting.isEmpty || client.durable != nil || client.retained != nil { sendWaiting() }
            noteRoom(of: client)
            if !hadRoom, let inbox = client.inbox, inbox.freeSlots(outbound.window) > 0 { inbox.packets?.roomChanged() }
        case .received(let number):
            forgetShared(number)
            if client?.durable != nil, let link = client?.link {
                release(number, packetID, of: link)
            } else {
                writeAcknowledgement(.pubrel, packetID)
            }
        case .releaseAwaited:
            // PUBREL follows after the store has recorded the PUBREC.
            break
        case .alreadyReceived:
            writeAcknowledgement(.pubrel, packetID)
        case .unknown:
            // This can happen after the server lost a session. In 5.0, the answer reports this loss. A PUBREC with a
            // reason code of 0x80 or above ends the exchange, so PUBREL answers only a PUBREC with a lower code
            // [MQTT-4.3.3-4].
            guard type == .pubrec, !reason.isFailure else { return }
            writeAcknowledgement(.pubrel, packetID, .packetIdentifierNotFound)
        }
    }
}
