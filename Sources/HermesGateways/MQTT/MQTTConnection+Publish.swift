// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesCore
import HermesWire
import Metrics
import NIOCore

/// PUBLISH from the client, and its acknowledgement (3.3, 4.3).
extension MQTTConnection {
    func publishReceived(_ frame: MQTTPublishFrame) throws(MQTTPacketError) {
        let head = try MQTTPublishHead(frame, version: version)
        try gateway.check(head.qos, isRetained: head.isRetained, of: "a PUBLISH")
        if head.packetID != 0, let client {
            if head.qos == .exactlyOnce, client.received.contains(head.packetID) {
                // A repetition. While the first is being stored, its answer is the answer to all.
                guard !client.storingReceived.contains(head.packetID) else { return }
                return acknowledge(.pubrec, head.packetID, .success)
            }
            let count = (version == .v311 ? 0 : client.storing) + client.received.count
            guard count < receiveLimit else {
                throw MQTTPacketError(
                    .receiveMaximumExceeded,
                    "more than \(receiveLimit) messages are not acknowledged [MQTT-3.3.4-7]"
                )
            }
        }
        let target: MQTTPublishTarget
        var details: PublicationDetails?
        var payload: ByteBuffer?
        if head.propertyBytes == 0, let known = knownTarget(frame, head) {
            target = known
        } else {
            // Properties, or another topic than last time: parse everything.
            guard case .publish(let packet) = try MQTTPacket(fromClient: frame.frame, version: version) else { return }
            connection.charge(.properties(packet.properties.list.count))
            try Self.check(packet.properties)
            target = try self.target(of: packet)
            if !packet.properties.isEmpty { details = MQTTTranslation.details(of: packet.properties, now: now()) }
            payload = packet.payload
        }
        guard target.isAllowed else { return refused(head) }
        let slot = passesOn(head, details) ? Self.slot(version, isAcknowledged: head.packetID != 0) : nil
        let publication = Publication(
            topic: target.topic,
            payload: payload ?? frame.bytes.getSlice(
                at: head.payloadStart,
                length: frame.bytes.writerIndex - head.payloadStart
            ) ?? ByteBuffer(),
            kind: Publication.plainKind,
            sender: target.sender,
            qos: MQTTTranslation.qos(head.qos),
            retain: head.isRetained,
            details: details,
            publisher: number,
            encodedSlot: slot,
            encoded: slot == nil ? nil : frame.bytes
        )
        publish(publication, head, to: target)
    }

    /// The most messages that a client may have sent and not released. 3.1.1 has no such limit, but the server must keep
    /// the identifier of each, on the disk for a kept session.
    var receiveLimit: Int {
        let limit = gateway.settings.receiveMaximum
        return version == .v311 ? max(limit, Self.maxReceivedOf311) : limit
    }

    private static let maxReceivedOf311 = 4_096
    /// A last topic up to this length is not worth a measurement.
    private static let shortTopicBytes = 1_024

    /// Refuses well-formed properties that a client may not send.
    static func check(_ properties: MQTTProperties) throws(MQTTPacketError) {
        for property in properties.list {
            switch property {
            case .subscriptionIdentifier:
                throw MQTTPacketError(.protocolError, "a client sent a subscription identifier [MQTT-3.3.4-6]")
            case .responseTopic(let topic) where !MQTTTopic.isValidName(topic):
                throw MQTTPacketError(.protocolError, "the response topic has wildcards or is empty [MQTT-3.3.2-14]")
            default: break
            }
        }
    }

    /// Whether subscribers of this version can get the received bytes. With QoS 1 and 2, header and identifier are set
    /// for each.
    private func passesOn(_ head: MQTTPublishHead, _ details: PublicationDetails?) -> Bool {
        // Some properties are only for the server, and the expiry is counted down.
        head.propertyBytes == 0 && (head.packetID != 0 || head.flags == 0) && head.topicBytes > 0
    }

    static func slot(_ version: MQTTVersion, isAcknowledged: Bool) -> EncodingSlot {
        switch (version, isAcknowledged) {
        case (.v311, false): .mqttV311
        case (.v311, true): .mqttV311Acknowledged
        case (.v5, false): .mqttV5
        case (.v5, true): .mqttV5Acknowledged
        }
    }

    private func publish(_ publication: Publication, _ head: MQTTPublishHead, to target: MQTTPublishTarget) {
        var publication = publication
        if target.isSpecial {
            if takesSpecial(publication, head) { return }
            guard let kind = MQTTTranslation.kind(of: publication, counted: { connection.charge(.parts($0)) }) else {
                return answer(head, .payloadFormatInvalid)
            }
            publication = publication.ofKind(kind)
        }
        connection.tally.messagesIn += 1
        // Before the delivery: only one member of a group with kept members gets it.
        let durable = head.packetID == 0 ? nil : durableRoute(of: target)
        publication.decided = durable?.decided
        // With QoS 2, a kept session must know the identifier on its next connection, too [MQTT-4.3.3-10].
        let remembers = head.qos == .exactlyOnce && client?.durable != nil
        if publication.retain { connection.charge(.levels(Self.levels(of: publication.topic))) }
        if head.packetID != 0, let client {
            // Those who are connected get it after the commit, too: what is refused reaches nobody.
            if publication.retain || durable != nil || remembers {
                return store(publication, head, durable?.targets ?? [], of: client)
            }
            // Behind those that are not stored yet, in their order [MQTT-4.6.0-5].
            if !client.acknowledgements.isEmpty { return publishedLater(publication, head, of: client) }
        }
        let outcome = topics.publish(publication, via: target.route)
        connection.worked(.receivers(outcome.localCount, topicBytes: publication.topic.rawValue.utf8.count))
        if outcome.isCongested { connection.slowDown() }
        // Nobody waits for one of QoS 0, and nobody sends it again: those who are connected have it though the store fails.
        if head.packetID == 0 {
            if publication.retain { retain(StoredPublication(publication, publishedAt: now())) }
            return
        }
        published(head, outcome.matchedAnywhere ? .success : .noMatchingSubscribers)
    }

    private static func levels(of topic: TopicName) -> Int {
        topic.rawValue.utf8.reduce(1) { $1 == UInt8(ascii: "/") ? $0 &+ 1 : $0 }
    }

    private func publishedLater(_ publication: Publication, _ head: MQTTPublishHead, of client: MQTTClientState) {
        let isExactlyOnce = head.qos == .exactlyOnce
        if isExactlyOnce { client.received.insert(head.packetID) }
        client.nextAcknowledgement += 1
        var pending = MQTTPendingAcknowledgement(
            type: isExactlyOnce ? .pubrec : .puback,
            packetID: head.packetID,
            reason: .success,
            publication: publication.owned()
        )
        pending.heldBytes = publication.weight
        connection.requestStarted(bytes: pending.heldBytes)
        client.acknowledgements.append(pending)
        if client.acknowledgements.count > Self.maxAcknowledgements { connection.slowDown() }
    }

    /// The message is delivered or stored.
    private func published(_ head: MQTTPublishHead, _ reason: MQTTReasonCode) {
        switch head.qos {
        case .atMostOnce: break
        case .atLeastOnce: acknowledge(.puback, head.packetID, reason)
        case .exactlyOnce:
            client?.received.insert(head.packetID)
            acknowledge(.pubrec, head.packetID, reason)
        }
    }

    /// The client may not publish there. 5.0 has a reason code; in 3.1.1 the message is acknowledged and dropped
    /// (3.3.5.2).
    private func refused(_ head: MQTTPublishHead) {
        gateway.metrics.refusedPublishes.increment()
        answer(head, .notAuthorized)
    }

    /// Answers a message that is not published.
    func answer(_ head: MQTTPublishHead, _ reason: MQTTReasonCode) {
        switch head.qos {
        case .atMostOnce: break
        case .atLeastOnce: acknowledge(.puback, head.packetID, reason)
        case .exactlyOnce:
            // 3.1.1 continues with PUBREL; in 5.0 a failure ends the exchange here.
            if version == .v311 || !reason.isFailure { client?.received.insert(head.packetID) }
            acknowledge(.pubrec, head.packetID, reason)
        }
    }

    // MARK: Targets

    private func knownTarget(_ frame: MQTTPublishFrame, _ head: MQTTPublishHead) -> MQTTPublishTarget? {
        guard let target = lastTarget, target.rules == gateway.access.generation,
            target.isNamed(frame.bytes, at: head.topicStart, length: head.topicBytes)
        else { return nil }
        return target
    }

    /// The target of a message, by its topic or alias [MQTT-3.3.2-12].
    func target(of packet: MQTTPublish) throws(MQTTPacketError) -> MQTTPublishTarget {
        var name = packet.topic
        if let alias: UInt16 = packet.properties.first({ if case .topicAlias(let alias) = $0 { alias } else { nil } }) {
            guard let client, alias > 0, alias <= gateway.settings.topicAliasMaximum else {
                throw MQTTPacketError(
                    .topicAliasInvalid,
                    "topic aliases are 1 to \(gateway.settings.topicAliasMaximum) [MQTT-3.3.2-8] [MQTT-3.3.2-9]"
                )
            }
            if name.isEmpty {
                guard let known = client.inboundAliases[alias] else {
                    throw MQTTPacketError(.protocolError, "the topic alias \(alias) was never set (3.3.2.3.4)")
                }
                name = known
            } else {
                client.aliasBytes += name.utf8.count - (client.inboundAliases[alias]?.utf8.count ?? 0)
                client.inboundAliases[alias] = name
                measureMemory()
            }
        }
        // Before it is looked at: an alias takes no bytes.
        connection.charge(.topic(bytes: name.utf8.count))
        if let known = lastTarget, known.topic.rawValue.utf8.elementsEqual(name.utf8),
            known.rules == gateway.access.generation
        {
            return known
        }
        guard let topic = TopicName(name), let client else {
            throw MQTTPacketError(.topicNameInvalid, "the topic name is empty or has wildcards [MQTT-3.3.2-2]")
        }
        let rules = gateway.access.generation
        let workBefore = topics.matchWork
        let route = topics.route(to: topic)
        connection.charge(.matches(topics.matchWork &- workBefore))
        let target = MQTTPublishTarget(
            bytes: Array(name.utf8),
            topic: topic,
            sender: client.identity.principal?.user,
            route: route,
            isAllowed: client.access(environment.access).allows(.publish, name),
            rules: rules,
            isSpecial: name.hasPrefix("hermes/") || name.hasPrefix(TopicName.roomPrefix)
                || ApplicationTopics.contains(name)
        )
        lastTarget = target
        if name.utf8.count > Self.shortTopicBytes { measureMemory() }
        return target
    }

    /// The kept sessions that get a publication; nil if there are none.
    func durableRoute(of target: MQTTPublishTarget) -> DurableRoute? {
        let durable = gateway.durable
        guard durable.hasSubscriptions else { return nil }
        if let known = target.durable, known.generation == durable.generation {
            return known.targets.isEmpty ? nil : known
        }
        let (route, work) = durable.search(target.topic)
        // Not again after a change of somebody else's subscriptions.
        if !target.isSearched { connection.charge(.matches(work)) }
        target.isSearched = true
        target.durable = route
        return route.targets.isEmpty ? nil : route
    }

    // MARK: Storing

    /// Has a message stored for those who are away, and as the retained one; delivered to those who are connected and
    /// acknowledged after that.
    private func store(
        _ publication: Publication,
        _ head: MQTTPublishHead,
        _ targets: [DurableTarget],
        of client: MQTTClientState
    ) {
        let stored = StoredPublication(publication, publishedAt: now())
        if head.qos == .exactlyOnce {
            client.received.insert(head.packetID)
            client.storingReceived.insert(head.packetID)
        } else {
            client.storing += 1
        }
        client.nextAcknowledgement += 1
        let number = client.nextAcknowledgement
        client.acknowledgements.append(
            MQTTPendingAcknowledgement(
                type: head.qos == .exactlyOnce ? .pubrec : .puback,
                packetID: head.packetID,
                publication: publication.owned()
            )
        )
        let bytes = stored.weight
        connection.requestStarted(bytes: bytes)
        let bound = NIOLoopBound((session: self, client: client), eventLoop: connection.loop.eventLoop)
        let loop = connection.loop
        environment.messenger.durable.publish(
            stored,
            targets: targets,
            from: client.link?.id,
            receivedID: client.durable != nil && head.qos == .exactlyOnce ? head.packetID : nil,
            retains: publication.retain,
            // 3.1.1 has no word for it.
            mustRetain: version == .v5,
            source: source
        ) { result in
            loop.post(.run { bound.value.session.stored(number, bytes, result, of: bound.value.client) })
        }
    }

    /// Nobody waits for a retained message of QoS 0, but for the connection, which is not read from while too much is on its
    /// way.
    private func retain(_ stored: StoredPublication) {
        let bytes = stored.weight
        connection.requestStarted(bytes: bytes)
        let loop = connection.loop
        let bound = NIOLoopBound(connection, eventLoop: loop.eventLoop)
        environment.messenger.durable.retain(stored, source: source) { _ in
            loop.post(.run { bound.value.requestAnswered(bytes: bytes) })
        }
    }

    /// Who pays for what a client has stored: its owner; without one its address.
    func source(of client: MQTTClientState) -> CommitSource {
        CommitSource(client.key.owner) ?? CommitSource(host: connection.remoteHost)
    }

    /// The source of this client's operations.
    var source: CommitSource { client?.link?.source ?? .server }

    /// - Parameter client: whose message; its connection may be closed by now.
    private func stored(
        _ number: UInt64,
        _ bytes: Int,
        _ result: Result<Void, HermesError>,
        of client: MQTTClientState
    ) {
        connection.requestAnswered(bytes: bytes)
        let first = client.nextAcknowledgement - UInt64(client.acknowledgements.count) + 1
        guard number >= first else { return }
        let index = Int(number - first)
        let pending = client.acknowledgements[index]
        if pending.type == .puback {
            client.storing -= 1
        } else {
            client.storingReceived.remove(pending.packetID)
        }
        switch result {
        case .success:
            client.acknowledgements[index].reason = .success
        case .failure(let error):
            if pending.type == .pubrec { client.received.remove(pending.packetID) }
            client.acknowledgements[index].reason = MQTTTranslation.publishReason(for: error)
            client.acknowledgements[index].publication = nil
            if version == .v311, phase == .connected {
                // 3.1.1 has no refusal: the client has to send it again over another connection.
                client.acknowledgements[index].isAnswered = false
                parting = (MQTTTranslation.publishReason(for: error), error.message)
                connection.end(.finished)
            }
        }
        while let done = client.acknowledgements.first, let reason = done.reason {
            client.acknowledgements.removeFirst()
            if done.heldBytes > 0 { connection.requestAnswered(bytes: done.heldBytes) }
            // Also where the client has gone: its message is stored, and its turn has come.
            if let publication = done.publication, topics.publish(publication).isCongested { connection.slowDown() }
            if done.isAnswered, phase == .connected { writeAcknowledgement(done.type, done.packetID, reason) }
        }
    }

    /// As many acknowledgements may wait for the store before the connection is not read from for a while.
    private static let maxAcknowledgements = 4_096

    /// Acknowledges in the order of the messages [MQTT-4.6.0-2].
    private func acknowledge(_ type: MQTTPacketType, _ packetID: UInt16, _ reason: MQTTReasonCode) {
        guard let client, !client.acknowledgements.isEmpty else {
            return writeAcknowledgement(type, packetID, reason)
        }
        client.nextAcknowledgement += 1
        client.acknowledgements.append(MQTTPendingAcknowledgement(type: type, packetID: packetID, reason: reason))
        // The store is slow, and the client does not wait for it.
        if client.acknowledgements.count > Self.maxAcknowledgements { connection.slowDown() }
    }

    /// PUBREL: the client will not send the message again under this identifier (4.3.3).
    func releaseReceived(_ packetID: UInt16) {
        guard let client, !client.storingReceived.contains(packetID), client.received.remove(packetID) != nil else {
            return writeAcknowledgement(.pubcomp, packetID, .packetIdentifierNotFound)
        }
        guard client.durable != nil, let link = client.link else { return writeAcknowledgement(.pubcomp, packetID) }
        // After PUBCOMP the client may use the identifier for another message. The store must have removed it by then,
        // or that message would count as the old one after a restart, and be lost.
        connection.requestStarted()
        let session = NIOLoopBound(self, eventLoop: connection.loop.eventLoop)
        let loop = connection.loop
        environment.messenger.durable.receivedReleased(link.id, packetID, source: link.source) { result in
            loop.post(.run { session.value.releaseStored(packetID, result) })
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
