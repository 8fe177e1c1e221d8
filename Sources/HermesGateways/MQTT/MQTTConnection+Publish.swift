// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import HermesWire
import Metrics
import NIOCore

/// Handling of PUBLISH from the client: single packets, and runs of packets that arrived together (3.3, 4.3). Each
/// packet goes through the same steps: find its target (``MQTTPublishTarget``), choose its course (``Course``),
/// publish it to the topics, and acknowledge it. A run goes through these steps as a whole if none of its packets
/// needs special treatment.
extension MQTTConnection {
    /// Handles the client's input. It is here because most input consists of publications, which this file handles.
    package func received(_ input: MQTTInput) {
        guard phase == .connected else { return receivedUnconnected(input) }
        switch input {
        case .publish(let frame): attempt { () throws(MQTTPacketError) in try publishReceived(frame) }
        case .publishes(let run): attempt { () throws(MQTTPacketError) in try publishesReceived(run) }
        case .acknowledgement(let type, let packetID): acknowledgementReceived(type, packetID, .success)
        case .other(let frame): otherReceived(frame)
        }
    }

    private func publishReceived(_ frame: MQTTPublishFrame) throws(MQTTPacketError) {
        let head = try MQTTPublishHead(frame, version: version)
        try gateway.check(head.qos, isRetained: head.isRetained, of: "a PUBLISH")
        if head.packetID != 0, let client {
            switch client.inbound.verdict(on: head.packetID, head.qos) {
            case .new: break
            case .repeated:
                try noteAlias(frame, head)
                return answer(head, .success)
            case .awaited: return try noteAlias(frame, head)
            case .tooMany:
                throw MQTTPacketError(
                    .receiveMaximumExceeded,
                    "more than \(client.inbound.limit) messages are not acknowledged [MQTT-3.3.4-7]"
                )
            }
        }
        let target: MQTTPublishTarget
        var details: PublicationDetails?
        var payload: ByteBuffer?
        if head.propertyBytes == 0,
            let known = knownTarget(frame.bytes, topicStart: head.topicStart, topicBytes: head.topicBytes)
        {
            target = known
        } else {
            // The packet has properties, or its topic differs from the last topic, so the whole packet is parsed.
            guard case .publish(let packet) = try MQTTPacket(fromClient: frame.frame, version: version) else { return }
            connection.charge(.properties(packet.properties.list.count))
            try Self.check(packet.properties)
            target = try self.target(of: packet)
            if !packet.properties.isEmpty { details = MQTTTranslation.details(of: packet.properties, now: now()) }
            payload = packet.payload
        }
        guard target.isAllowed else { return refused(head) }
        let slot = passesOn(frame, head) ? Self.slot(version, isAcknowledged: head.packetID != 0) : nil
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
            publisher: publisher,
            encodedSlot: slot,
            encoded: slot == nil ? nil : frame.bytes
        )
        publish(publication, head, to: target)
    }

    /// Sets the topic alias of a repeated PUBLISH. The message itself is not published again.
    private func noteAlias(_ frame: MQTTPublishFrame, _ head: MQTTPublishHead) throws(MQTTPacketError) {
        guard head.propertyBytes > 0,
            case .publish(let packet) = try MQTTPacket(fromClient: frame.frame, version: version)
        else { return }
        connection.charge(.properties(packet.properties.list.count))
        try Self.check(packet.properties)
        _ = try name(of: packet)
    }

    private func publishesReceived(_ run: MQTTPublishRun) throws(MQTTPacketError) {
        try gateway.check(run.qos, isRetained: false, of: "a PUBLISH")
        let target = try target(of: run)
        let receivers = target?.route.receiverCount ?? 0
        let most = topics.pace.most
        guard receivers * run.count > most else { return try publish(run, to: target) }
        // The rest of the run is decoded again, after other connections have had their turn.
        let part = run.part(0..<max(1, most / receivers))
        connection.giveBack(run.bytes.readableBytes - part.bytes.readableBytes, frames: run.count - part.count)
        try publish(part, to: target)
    }

    /// - Parameter target: the common target of all packets of the run, if there is one.
    private func publish(_ run: MQTTPublishRun, to target: MQTTPublishTarget?) throws(MQTTPacketError) {
        if let target, publishAsWhole(run, to: target) { return }
        for index in 0..<run.count {
            // An earlier packet of the run may have ended the connection.
            guard phase == .connected else { return }
            try publishReceived(run.frame(index))
        }
    }

    /// The longest topic of a new ``lastTarget``, in bytes, for which the memory is not measured again.
    private static let shortTopicBytes = 1_024

    /// Refuses well-formed properties that a client must not send.
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

    /// Whether subscribers of the same MQTT version can get the received bytes. With QoS 1 and 2, the header's flags
    /// and the packet identifier are then set for each subscriber.
    private func passesOn(_ frame: MQTTPublishFrame, _ head: MQTTPublishHead) -> Bool {
        // Packets with properties cannot be shared: some properties are only for the server, and the message expiry
        // is counted down. Lengths that are encoded in more bytes than necessary are not forwarded [MQTT-1.5.5-1].
        head.propertyBytes == 0 && (head.packetID != 0 || head.flags == 0) && head.topicBytes > 0
            && head.lengthBytes <= 1 && frame.isLengthShortest
    }

    static func slot(_ version: MQTTVersion, isAcknowledged: Bool) -> EncodingSlot {
        switch (version, isAcknowledged) {
        case (.v311, false): .mqttV311
        case (.v311, true): .mqttV311Acknowledged
        case (.v5, false): .mqttV5
        case (.v5, true): .mqttV5Acknowledged
        }
    }

    // MARK: The course

    /// The way in which publications to a target are handled.
    private enum Course {
        /// The publications are delivered and acknowledged at once.
        case now
        /// The publications are delivered and acknowledged after the client's earlier publications are stored.
        case later
        /// The publications are stored before they are delivered and acknowledged, because they go to kept sessions,
        /// are retained, or have QoS 2 and come from a kept session.
        case store(DurableRoute?)
        /// The publications are dropped, because a charge for them has ended the connection. The client repeats them,
        /// because they are not acknowledged.
        case drop
    }

    private func course(of qos: MQTTQoS, isRetained: Bool, to target: MQTTPublishTarget) -> Course {
        guard qos != .atMostOnce else { return .now }
        guard let client else { return .drop }
        // Even connected subscribers get the publication only after the commit, so that a refused publication reaches
        // nobody.
        if let durable = durableRoute(of: target) { return .store(durable) }
        // With QoS 2, a kept session (one that outlives its connection) must still have a record of the packet
        // identifier on its next connection [MQTT-4.3.3-10].
        if isRetained || (qos == .exactlyOnce && client.durable != nil) { return .store(nil) }
        return client.inbound.isBehind ? .later : .now
    }

    private func publish(_ publication: Publication, _ head: MQTTPublishHead, to target: MQTTPublishTarget) {
        var publication = publication
        if target.isSpecial {
            if takesSpecial(publication, head) { return }
            guard let kind = MQTTTranslation.kind(of: publication, counted: { connection.charge(.parts($0)) }) else {
                return refusedPayload(head)
            }
            publication = publication.ofKind(kind)
            guard isTold(kind, in: publication.topic) else {
                gateway.metrics.droppedCrowded.increment()
                return answer(head, .quotaExceeded)
            }
        }
        connection.tally.messagesIn += 1
        if publication.retain { connection.charge(.levels(Self.levels(of: publication.topic))) }
        // A charge may have ended the connection.
        guard phase == .connected else { return }
        switch course(of: head.qos, isRetained: publication.retain, to: target) {
        case .now:
            // A publication of QoS 0 is not acknowledged, and the client does not send it again. So connected
            // subscribers get it even if the store then fails to retain it. The publication becomes the retained
            // publication before it is delivered. If it were delivered first, a client that subscribes in between would
            // not get it.
            if publication.retain { retain(StoredPublication(publication, publishedAt: now())) }
            let workBefore = topics.matchWork
            let outcome = topics.publish(publication, via: target.route)
            searched(since: workBefore)
            connection.worked(.receivers(outcome.localCount, topicBytes: publication.topic.rawValue.utf8.count))
            let reason = reason(for: outcome)
            if head.packetID != 0 { acknowledge(head.packetID, head.qos, reason, of: client) }
        case .later:
            guard let client else { return }
            let bytes = publication.weight
            connection.requestStarted(bytes: bytes)
            client.inbound.postpones(head.packetID, head.qos, publication.owned(), heldBytes: bytes)
            if client.inbound.isFarBehind { connection.slowDown() }
        case .store(let durable):
            guard let client else { return }
            // For a shared subscription with kept sessions, the search has already chosen the one member that gets the
            // publication.
            publication.decided = durable?.decided
            store(publication, head, durable?.targets ?? [], of: client)
        case .drop: break
        }
    }

    /// Publishes a run of packets as a whole.
    ///
    /// - Returns: false if each packet must be handled separately. In that case, nothing was done.
    private func publishAsWhole(_ run: MQTTPublishRun, to target: MQTTPublishTarget) -> Bool {
        let qos = run.qos
        guard target.isAllowed, !target.isSpecial, case .now = course(of: qos, isRetained: false, to: target),
            qos == .atMostOnce || client?.inbound.areNew(run, qos) ?? false
        else { return false }
        connection.tally.messagesIn += run.count
        let workBefore = topics.matchWork
        let outcome = topics.publish(
            PublicationRun(
                topic: target.topic,
                slot: Self.slot(version, isAcknowledged: qos != .atMostOnce),
                bytes: run.bytes,
                bodies: run.bodies,
                payloadOffset: (qos == .atMostOnce ? 0 : 2) + (version == .v5 ? 1 : 0),
                sender: target.sender,
                qos: MQTTTranslation.qos(qos),
                publisher: publisher
            ),
            via: target.route
        )
        searched(since: workBefore)
        let reason = reason(for: outcome)
        guard qos != .atMostOnce else { return true }
        let client = client
        if reason == .success || version == .v311, qos == .atLeastOnce, !(client?.inbound.isBehind ?? false) {
            writeAcknowledgements(.puback, of: run)
            return true
        }
        run.bytes.withUnsafeReadableBytes { bytes in
            for body in run.bodies { acknowledge(MQTTPublishRun.packetID(bytes, body), qos, reason, of: client) }
        }
        return true
    }

    /// Counts a search for a topic's subscribers that became necessary because other clients' subscriptions have
    /// changed. No budget is charged for the search, but the search shortens this connection's turn.
    @inline(__always)
    func searched(since workBefore: Int) {
        let work = topics.matchWork &- workBefore
        if work > 0 { connection.worked(.matches(work)) }
    }

    private static func levels(of topic: TopicName) -> Int {
        topic.rawValue.utf8.reduce(1) { $1 == UInt8(ascii: "/") ? $0 &+ 1 : $0 }
    }

    // MARK: Answers

    /// Returns the reason code that the publisher gets for a delivery. Slows the publisher down if its subscribers are
    /// far behind.
    private func reason(for outcome: PublishOutcome) -> MQTTReasonCode {
        connection.keepPace(with: outcome)
        return outcome.matchedAnywhere ? .success : .noMatchingSubscribers
    }

    /// Acknowledges a PUBLISH, unless it has QoS 0.
    func answer(_ head: MQTTPublishHead, _ reason: MQTTReasonCode) {
        if head.packetID != 0 { acknowledge(head.packetID, head.qos, reason, of: client) }
    }

    /// Acknowledges a PUBLISH. Acknowledgements keep the order of the messages [MQTT-4.6.0-2].
    private func acknowledge(
        _ packetID: UInt16,
        _ qos: MQTTQoS,
        _ reason: MQTTReasonCode,
        of client: MQTTClientState?
    ) {
        guard client?.inbound.answered(packetID, qos, reason) ?? true else {
            if client?.inbound.isFarBehind ?? false { connection.slowDown() }
            return
        }
        writeAcknowledgement(MQTTInbound.answer(to: qos), packetID, reason)
    }

    /// Refuses a message because the client may not publish to its topic. 5.0 has a reason code for that. In 3.1.1,
    /// the message is acknowledged and dropped (3.3.5.2).
    private func refused(_ head: MQTTPublishHead) {
        gateway.metrics.refusedPublishes.increment()
        answer(head, .notAuthorized)
    }

    // MARK: Targets

    /// Returns the target of the last PUBLISH if these bytes are its topic and the rules have not changed since then;
    /// otherwise nil.
    private func knownTarget(_ bytes: ByteBuffer, topicStart: Int, topicBytes: Int) -> MQTTPublishTarget? {
        guard let target = lastTarget, target.rules == gateway.access.generation,
            target.isNamed(bytes, at: topicStart, length: topicBytes)
        else { return nil }
        return target
    }

    /// Returns the common target of all packets of a run; nil if the run must be handled packet by packet.
    private func target(of run: MQTTPublishRun) throws(MQTTPacketError) -> MQTTPublishTarget? {
        guard isPlain(run) else { return nil }
        let start = run.bytes.readerIndex + run.topicStart
        if let known = knownTarget(run.bytes, topicStart: start, topicBytes: run.topicBytes) { return known }
        guard case .publish(let packet) = try MQTTPacket(run.frame(0).frame, version: version) else { return nil }
        return try target(of: packet)
    }

    /// Whether no packet of a run has properties.
    private func isPlain(_ run: MQTTPublishRun) -> Bool {
        guard version == .v5 else { return true }
        let offset = run.qos == .atMostOnce ? 0 : 2
        return run.bytes.withUnsafeReadableBytes { bytes in
            run.bodies.allSatisfy { $0.count > offset && bytes[Int($0.lowerBound) + offset] == 0 }
        }
    }

    /// Returns the name of a message's topic. A topic alias in the message either replaces this name or is set to it
    /// [MQTT-3.3.2-12].
    private func name(of packet: MQTTPublish) throws(MQTTPacketError) -> String {
        guard let alias = packet.properties.topicAlias else { return packet.topic }
        guard let client else {
            throw MQTTPacketError(.topicAliasInvalid, "topic aliases end with the connection")
        }
        let name = try client.inbound.topic(packet.topic, alias: alias, maximum: gateway.settings.topicAliasMaximum)
        if !packet.topic.isEmpty { measureMemory() }
        return name
    }

    /// Returns the target of a message.
    private func target(of packet: MQTTPublish) throws(MQTTPacketError) -> MQTTPublishTarget {
        let name = try name(of: packet)
        // The topic is charged before it is examined, because a short alias may replace a long topic.
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
            sender: client.identity.account,
            route: route,
            isAllowed: client.access(environment.access).allows(.publish, name),
            rules: rules,
            isSpecial: name.hasBytes(startingWith: "hermes/") || name.hasBytes(startingWith: TopicName.roomPrefix)
                || ApplicationTopics.contains(name)
        )
        lastTarget = target
        if name.utf8.count > Self.shortTopicBytes { measureMemory() }
        return target
    }

    /// Returns the kept sessions that get a publication; nil if there are none.
    private func durableRoute(of target: MQTTPublishTarget) -> DurableRoute? {
        let durable = gateway.durable
        guard durable.hasSubscriptions else { return nil }
        if let known = target.durable, known.generation == durable.generation {
            return known.targets.isEmpty ? nil : known
        }
        let (route, work) = durable.search(target.topic)
        // Only the first search is charged. Later searches are caused by changes of other clients' subscriptions.
        if target.isSearched { connection.worked(.matches(work)) } else { connection.charge(.matches(work)) }
        target.isSearched = true
        target.durable = route
        return route.targets.isEmpty ? nil : route
    }
}
