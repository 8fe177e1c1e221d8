// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesWire
import NIOCore

/// The link of MQTT: CONNECT, publications in both directions, and subscriptions that outlive their connection.
struct MQTTLink: ConnectionLink {
    typealias Decoder = MQTTFrameDecoder
    typealias Login = MQTTClient.Connection

    enum Request: Sendable {
        /// A publication with QoS 1 or 2.
        case publish(MQTTOutgoing)
        case subscribe([MQTTClient.Subscription], identifier: Int?)
        case unsubscribe([String])
        case ping
        /// A frame that already has its packet identifier, or needs neither a packet identifier nor an answer.
        case frame(MQTTFrame)
        case packet(MQTTPacket)
    }

    /// The reason codes of an answer. The answer to a publication has one reason code.
    typealias Answer = [MQTTClient.ReasonCode]

    struct Event: Sendable {
        var message: MQTTMessage
        /// The number of the delivery; see ``MQTTInbound/Verdict``.
        var delivery: UInt64
        /// The memory that the message takes in the queue, in bytes.
        var bytes: Int
    }

    /// A request that waits for a SUBACK or UNSUBACK.
    enum Awaited {
        case subscribe(id: UInt64, [MQTTClient.Subscription], identifier: Int?)
        case unsubscribe(id: UInt64, [String])
    }

    private(set) var configuration: MQTTClient.Configuration
    let version: MQTTVersion
    var maxFrameBytes: Int { configuration.maxPacketBytes }

    var outbound = MQTTOutbound()
    var inbound = MQTTInbound()
    /// The granted subscriptions, in order. The client requests them again if the server has lost the session.
    var subscriptions: [(subscription: MQTTClient.Subscription, identifier: Int?)] = []
    var awaited: [UInt16: Awaited] = [:]
    /// The ids of the requests that wait for a PINGRESP, oldest first. The id 0 stands for a heartbeat.
    var pongsDue = Deque<UInt64>()
    /// The topics of this connection's aliases.
    var aliases: [UInt16: String] = [:]
    /// The present or last connection.
    var connection: MQTTClient.Connection?
    var isConnected = false
    /// Whether the app is ending the connection.
    var isClosing = false
    /// The identifiers of the subscriptions that the server has lost with the session and has not confirmed since then.
    var unrenewed: Set<Int?> = []
    /// The number of renewals in a row that the server has refused for a temporary reason.
    var refusedRenewals = 0
    var strayLogins = StrayLogins()
    var references: MQTTServerReferences

    /// The number of messages that wait for the app in ``MQTTClient/messages``.
    var backlog = 0
    /// The total size of the messages that wait for the app, in bytes.
    var backlogBytes = 0
    /// The number of QoS 0 messages that were dropped because the app is too slow.
    var dropped = 0
    /// The scopes: the subscriptions that last while a closure runs.
    private var scopes: [MQTTScope] = []
    /// The filters of scopes that have ended, until the server has ended their subscriptions.
    var endings: Set<ExactText> = []
    private var lastScope = 0
    /// Whether the client's first connection resumed the session of an earlier run.
    var resumesEarlierRun = false
    /// The number of the last push to each topic.
    var topics = TopicTracker()

    init(_ configuration: MQTTClient.Configuration) {
        self.configuration = configuration
        version = configuration.version.wire
        references = MQTTServerReferences(port: configuration.server.port)
        guard !configuration.cleanStart else { return }
        outbound = MQTTOutbound(lastPacketID: .random(in: 0 ... .max))
        // The session of an earlier run still has messages with the identifiers of that run's scopes.
        lastScope = .random(in: 0..<1_000_000)
    }

    // MARK: Packets

    mutating func received(_ frame: MQTTFrame, now: NIODeadline, effects: inout Effects) throws {
        do {
            try received(try MQTTPacket(frame, version: version), effects: &effects)
        } catch {
            if version == .v5, isConnected {
                effects.append(.send(.packet(.disconnect(MQTTDisconnect(reason: error.reason)))))
            }
            throw error
        }
    }

    private mutating func received(_ packet: MQTTPacket, effects: inout Effects) throws(MQTTPacketError) {
        if case .connack(let packet) = packet { return try accepted(packet, effects: &effects) }
        if case .disconnect(let packet) = packet, version == .v5 { return disconnected(packet, effects: &effects) }
        guard isConnected else {
            throw MQTTPacketError(.protocolError, "the server's first packet is a \(packet.type) [MQTT-3.2.0-1]")
        }
        switch packet {
        case .publish(let packet):
            try published(packet, effects: &effects)
        case .puback(let packet):
            perform(try outbound.pubackReceived(packet.packetID, packet.reason, packet.properties), &effects)
        case .pubrec(let packet):
            perform(try outbound.pubrecReceived(packet.packetID, packet.reason, packet.properties), &effects)
        case .pubcomp(let packet):
            perform(try outbound.pubcompReceived(packet.packetID), &effects)
        case .pubrel(let packet):
            let reason = inbound.released(packet.packetID)
            effects.append(.send(.packet(.pubcomp(MQTTAcknowledgement(packetID: packet.packetID, reason: reason)))))
        case .suback(let packet):
            try subscribed(packet, effects: &effects)
        case .unsuback(let packet):
            unsubscribed(packet, effects: &effects)
        case .pingresp:
            if let id = pongsDue.popFirst(), id != 0 { effects.append(.answer(id: id, .success([]))) }
        case .connect, .connack, .subscribe, .unsubscribe, .pingreq, .disconnect, .auth:
            throw MQTTPacketError(.protocolError, "the server sent a \(packet.type)")
        }
    }

    private mutating func published(_ packet: MQTTPublish, effects: inout Effects) throws(MQTTPacketError) {
        let topic = try topic(of: packet)
        let packetID = packet.packetID ?? 0
        switch try inbound.published(packetID, packet.qos, isDuplicate: packet.isDuplicate) {
        case .ignore:
            return
        case .acknowledge(let acknowledgement):
            effects.append(.send(.packet(acknowledgement.packet)))
        case .deliver(let delivery):
            let bytes = 256 + packet.payload.readableBytes + topic.utf8.count + packet.properties.weight
            let isFull =
                backlog >= configuration.maxQueuedMessages || backlogBytes + bytes > configuration.maxQueuedBytes
            if isFull, packet.qos == .atMostOnce {
                dropped += 1
                return
            }
            // The receive maximum limits the number of QoS 1 and 2 messages. If the server exceeds it by far, the
            // connection ends.
            guard !isFull || backlogBytes / 4 < configuration.maxQueuedBytes else {
                throw MQTTPacketError(.quotaExceeded, "the app does not read its messages: too many are waiting")
            }
            backlogBytes += bytes
            var message = MQTTMessage(packet, topic: topic)
            // In a shared subscription, other members get some of the pushes, so a missing number means nothing.
            if let (seq, epoch) = message.pushNumber,
                !subscriptions.contains(where: { $0.subscription.filter.utf8.starts(with: MQTTTopic.sharePrefix.utf8) })
            {
                message.missedPushes = topics.arrived(seq, epoch: epoch, on: topic, isKept: packet.retain)
            }
            let event = Event(message: message, delivery: delivery, bytes: bytes)
            if !scopes.isEmpty || !endings.isEmpty, isForScope(event, effects: &effects) { return }
            effects.append(.event(event))
        }
    }

    /// Returns the topic in the packet, or the topic of its alias (section 3.3.2.3.4).
    private mutating func topic(of packet: MQTTPublish) throws(MQTTPacketError) -> String {
        guard let alias = packet.properties.topicAlias else { return packet.topic }
        guard alias > 0, alias <= configuration.topicAliasMaximum else {
            throw MQTTPacketError(.topicAliasInvalid, "the topic alias \(alias) is above the maximum [MQTT-3.3.2-10]")
        }
        if packet.topic.isEmpty {
            guard let topic = aliases[alias] else {
                throw MQTTPacketError(.protocolError, "the topic alias \(alias) is undefined (3.3.2.3.4)")
            }
            return topic
        }
        aliases[alias] = packet.topic
        return packet.topic
    }

    /// Handles the server's DISCONNECT, which ends the connection with a reason.
    private mutating func disconnected(_ packet: MQTTDisconnect, effects: inout Effects) {
        let reason = MQTTClient.ReasonCode(packet.reason)
        let error = HermesClientError("the server ended the connection", reason, packet.properties)
        let advice = references.advice(packet.reason, packet.properties)
        var mayReturn = reason == .sessionTakenOver ? strayLogins.blame() : reason.mayRetry || advice != nil
        if packet.reason == .packetTooLarge {
            // Without the packet that was too long, the next connection may succeed.
            let actions = outbound.refusedForLength()
            mayReturn = mayReturn || !actions.isEmpty
            perform(actions, &effects)
        }
        effects.append(.kicked(error, mayReturn: mayReturn, advice: advice))
    }

    func perform(_ actions: [MQTTOutbound.Action], _ effects: inout Effects) {
        for action in actions {
            switch action {
            case .send(let frame):
                effects.append(.send(.frame(frame)))
            case .release(let packetID, let reason):
                effects.append(.send(.packet(.pubrel(MQTTAcknowledgement(packetID: packetID, reason: reason)))))
            case .done(let id, let reason, let properties):
                let reason = MQTTClient.ReasonCode(reason)
                let error = HermesClientError("the server refused the message", reason, properties)
                effects.append(.answer(id: id, reason.isFailure ? .failure(error) : .success([reason])))
            case .failed(let id, let error):
                effects.append(.answer(id: id, .failure(error)))
            }
        }
    }

    /// Sets the credentials for the next connection.
    ///
    /// - Throws: HermesClientError `.notEncodable` if CONNECT cannot carry them. The former credentials then stay in
    ///   use.
    mutating func useCredentials(_ userName: String?, _ password: String?) throws(HermesClientError) {
        let former = configuration
        configuration.userName = userName
        configuration.password = password
        do throws(HermesClientError) {
            try validate()
        } catch {
            configuration = former
            throw error
        }
    }

    // MARK: Scopes

    /// The largest subscription identifier. Scopes count down from it, because an app's own identifiers are small.
    private static let lastIdentifier = 268_435_455

    mutating func makeScope(_ filter: String) -> MQTTScope {
        lastScope += 1
        // A server keeps one subscription for each filter, so scopes with the same filter share it.
        let key = ExactText(filter)
        let known = scopes.first { $0.key == key }
        let hasIdentifiers = version == .v5 && connection?.subscriptionIdentifiersAvailable != false
        let scope = MQTTScope(
            filter: filter,
            identifier: known?.identifier ?? (hasIdentifiers ? Self.lastIdentifier - lastScope % 1_000_000 : nil),
            maxMessages: configuration.maxQueuedMessages,
            maxBytes: configuration.maxQueuedBytes
        )
        scopes.append(scope)
        endings.remove(key)
        return scope
    }

    /// Removes a scope that has ended.
    ///
    /// - Returns: true if no other scope has the same filter. The client must then end the subscription.
    mutating func remove(_ scope: MQTTScope) -> Bool {
        scopes.removeAll { $0 === scope }
        let key = scope.key
        guard !scopes.contains(where: { $0.key == key }) else { return false }
        subscriptions.removeAll { $0.subscription.key == key }
        endings.insert(key)
        return true
    }

    /// Hands the message to the scopes that it belongs to.
    ///
    /// - Returns: false if the message belongs neither to a scope nor to a scope that has just ended.
    private mutating func isForScope(_ event: Event, effects: inout Effects) -> Bool {
        let wanted = recipients(of: event.message)
        guard !wanted.isEmpty else {
            let topic = event.message.topic
            guard endings.contains(where: { MQTTTopicMatch.matches(topic, $0.text) }),
                !subscriptions.contains(where: { MQTTTopicMatch.matches(topic, $0.subscription.filter) })
            else { return false }
            taken(event, now: .now(), effects: &effects)
            return true
        }
        offer(MQTTScope.Delivery(event, scopes: wanted.count), to: wanted, effects: &effects)
        return true
    }

    /// Returns the scopes that the message belongs to. If the message comes from a subscription of an earlier run, it
    /// belongs to the scopes whose filters match its topic and whose subscriptions the server has granted.
    private func recipients(of message: MQTTMessage) -> [MQTTScope] {
        let wanted = scopes.filter { $0.matches(message) }
        guard wanted.isEmpty, isInherited(message) else { return wanted }
        return scopes.filter { scope in
            MQTTTopicMatch.matches(message.topic, scope.filter)
                && subscriptions.contains { $0.subscription.key == scope.key }
        }
    }

    /// Whether a message counts as coming from a subscription of an earlier run. For this, the client must have
    /// resumed a session. The message must belong neither to a scope that has just ended, nor to a subscription for
    /// ``MQTTClient/messages`` that the client has or has requested. Subscriptions that the app has ended are not
    /// remembered.
    func isInherited(_ message: MQTTMessage) -> Bool {
        guard resumesEarlierRun, !endings.contains(where: { MQTTTopicMatch.matches(message.topic, $0.text) }) else {
            return false
        }
        let identifiers = message.properties.subscriptionIdentifiers
        func isOwn(_ subscription: MQTTClient.Subscription, _ identifier: Int?) -> Bool {
            guard !scopes.contains(where: { $0.key == subscription.key }) else { return false }
            if let identifier, !identifiers.isEmpty { return identifiers.contains(identifier) }
            return MQTTTopicMatch.matches(message.topic, subscription.filter)
        }
        let isPending = awaited.values.contains { request in
            guard case .subscribe(_, let wanted, let identifier) = request else { return false }
            return wanted.contains { isOwn($0, identifier) }
        }
        return !isPending && !subscriptions.contains { isOwn($0.subscription, $0.identifier) }
    }

    /// Hands waiting messages of an earlier run to a scope whose loop has not begun. The scope gets these messages
    /// before the messages that it already has.
    mutating func inherit(_ waiting: [Event], _ scope: MQTTScope, effects: inout Effects) {
        let later = scope.removeWaiting()
        for event in waiting { offer(MQTTScope.Delivery(event, scopes: 1), to: [scope], effects: &effects) }
        for delivery in later { offer(delivery, to: [scope], effects: &effects) }
    }

    /// Offers a message to scopes. If a scope has no room for the message, the message counts as taken in this scope.
    private mutating func offer(_ delivery: MQTTScope.Delivery, to wanted: [MQTTScope], effects: inout Effects) {
        for scope in wanted where !scope.offer(delivery) {
            if delivery.event.message.qos == .atMostOnce { dropped += 1 }
            if delivery.taken() { taken(delivery.event, now: .now(), effects: &effects) }
        }
    }

    func stopped() { for scope in scopes { scope.finish() } }

    // MARK: The app

    func comesAgain(_ event: Event) -> Bool { event.message.qos != .atMostOnce }

    mutating func taken(_ event: Event, now: NIODeadline, effects: inout Effects) {
        backlogBytes = max(0, backlogBytes - event.bytes)
        let message = event.message
        let acknowledgement = inbound.taken(
            message.packetID,
            message.qos.wire,
            delivery: event.delivery,
            isConnected: isConnected
        )
        if let acknowledgement { effects.append(.send(.packet(acknowledgement.packet))) }
    }

    mutating func backlogChanged(_ count: Int, bytes: Int) { backlog = count }

    mutating func abandoned(id: UInt64) { outbound.abandoned(id: id) }

    mutating func refusedForLength(atLeast bytes: Int, effects: inout Effects) {
        perform(outbound.refusedForLength(atLeast: bytes), &effects)
    }
}

extension MQTTInbound.Acknowledgement {
    var packet: MQTTPacket {
        switch self {
        case .puback(let packetID): .puback(MQTTAcknowledgement(packetID: packetID))
        case .pubrec(let packetID): .pubrec(MQTTAcknowledgement(packetID: packetID))
        }
    }
}
