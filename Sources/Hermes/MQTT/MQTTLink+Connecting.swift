// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import HermesWire
import NIOCore

// MARK: - CONNECT and its answer
extension MQTTLink {
    mutating func connected(effects: inout Effects) throws {
        aliases = [:]
        awaited = [:]
        pongsDue = []
        strayLogins.began()
        effects.append(.send(.packet(.connect(connectPacket()))))
    }

    func connectPacket() -> MQTTConnect {
        var properties: [MQTTProperty] = []
        if version == .v5 {
            let expiry = configuration.sessionExpiry.wholeSeconds
            if expiry > 0 { properties.append(.sessionExpiryInterval(expiry)) }
            properties.append(.receiveMaximum(UInt16(clamping: max(1, configuration.receiveMaximum))))
            properties.append(.maximumPacketSize(UInt32(clamping: max(16, configuration.maxPacketBytes))))
            if configuration.topicAliasMaximum > 0 {
                properties.append(.topicAliasMaximum(UInt16(clamping: configuration.topicAliasMaximum)))
            }
            for pair in configuration.userProperties { properties.append(.userProperty(pair.name, pair.value)) }
        }
        return MQTTConnect(
            version: version,
            clientID: connection?.clientID ?? configuration.clientID,
            cleanStart: startsClean,
            keepAlive: configuration.keepAliveSeconds,
            will: configuration.will.map { $0.will(version, after: configuration.willDelay) },
            userName: configuration.userName,
            password: configuration.password.map { ByteBuffer(string: $0) },
            properties: MQTTProperties(properties)
        )
    }

    /// Whether to connect with a clean start. The first connection follows the configuration. Later connections start
    /// clean only if no session outlives its connection.
    private var startsClean: Bool {
        guard connection != nil else { return configuration.cleanStart }
        return version == .v5 ? configuration.sessionExpiry <= .zero : configuration.cleanStart
    }

    mutating func accepted(_ packet: MQTTConnack, effects: inout Effects) throws(MQTTPacketError) {
        guard !isConnected else { throw MQTTPacketError(.protocolError, "a second CONNACK [MQTT-3.2.0-2]") }
        strayLogins.answered()
        let reason = MQTTClient.ReasonCode(packet.reason)
        guard packet.reason == .success else {
            // An abandoned CONNECT that the server has read late may have overtaken this one. CONNACK has no code for
            // this (table 3-1), so a Hermes server refuses the connection as not authorized.
            let isOvertaken = reason == .notAuthorized && strayLogins.blame()
            let error = HermesClientError(
                "the server refused the connection",
                reason,
                packet.properties,
                retryAfter: isOvertaken ? .zero : reason.mayRetry ? .seconds(5) : nil
            )
            if let advice = references.advice(packet.reason, packet.properties) {
                return effects.append(.kicked(error, mayReturn: true, advice: advice))
            }
            return effects.append(.refused(error))
        }
        // If the client accepted an old session that it had asked to discard, it would get messages that it has not
        // subscribed to [MQTT-3.2.2-4].
        guard !packet.sessionPresent || !startsClean else {
            throw MQTTPacketError(.protocolError, "the server resumed a session that should be new [MQTT-3.2.2-2]")
        }
        references.arrived()
        let accepted = MQTTClient.Connection(packet, clientID: connection?.clientID ?? configuration.clientID)
        if connection == nil { resumesEarlierRun = packet.sessionPresent }
        connection = accepted
        isConnected = true
        // The identifiers stay in `unrenewed` until the server has confirmed all of their subscriptions. If a later
        // connection resumes a session, the session may still lack subscriptions: its first connection may have ended
        // before the confirmation.
        if !packet.sessionPresent { unrenewed = Set(subscriptions.map(\.identifier)) }
        inbound.connected(sessionPresent: packet.sessionPresent)
        let actions = outbound.connected(
            sessionPresent: packet.sessionPresent,
            receiveMaximum: accepted.receiveMaximum,
            maxPacketBytes: accepted.maxPacketBytes
        )
        perform(actions, &effects)
        effects.append(
            .authenticated(accepted, heartbeatAtMost: accepted.serverKeepAlive.flatMap { $0 > .zero ? $0 : nil })
        )
    }

    mutating func becameLive(now: NIODeadline, effects: inout Effects) {
        // Send one request for each subscription identifier, because an identifier applies to all filters of a packet.
        for identifier in unrenewed {
            let packets = renewals(of: identifier)
            for packet in packets { effects.append(.send(.subscribe(packet, identifier: identifier))) }
            if packets.isEmpty { unrenewed.remove(identifier) }
        }
        perform(outbound.resumed(), &effects)
    }

    mutating func lost() {
        isConnected = false
        awaited = [:]
        // With MQTT 5.0, the server says which length it accepts, so no publication is suspected of being too long.
        outbound.lost(suspects: version == .v311 && !isClosing)
        isClosing = false
        strayLogins.connectionLost()
    }

    mutating func closing(effects: inout Effects) {
        guard isConnected else { return }
        isClosing = true
        effects.append(.send(.packet(.disconnect(MQTTDisconnect()))))
    }
}

// MARK: - Writing
extension MQTTLink {
    mutating func write(_ request: Request, id: UInt64, into buffer: inout ByteBuffer) throws {
        switch request {
        case .publish(let outgoing):
            try requireSupported(outgoing)
            // This sends as many publications as are allowed now; the others follow after the server's
            // acknowledgements.
            for action in outbound.published(outgoing, id: id) {
                switch action {
                case .send(let frame): try frame.write(into: &buffer)
                case .failed(id, let error): throw error
                case .failed, .release, .done: break
                }
            }
        case .subscribe(let subscriptions, let identifier):
            let packetID = try borrowPacketID()
            var properties: MQTTProperties = []
            if version == .v5, let identifier { properties.list.append(.subscriptionIdentifier(identifier)) }
            let wire = subscriptions.map(\.wire)
            let packet = MQTTSubscribe(packetID: packetID, subscriptions: wire, properties: properties)
            try write(.subscribe(packet), into: &buffer, for: .subscribe(id: id, subscriptions, identifier: identifier))
        case .unsubscribe(let filters):
            let packet = MQTTUnsubscribe(packetID: try borrowPacketID(), filters: filters)
            try write(.unsubscribe(packet), into: &buffer, for: .unsubscribe(id: id, filters))
        case .ping:
            try MQTTPacket.pingreq.write(into: &buffer, version: version)
            pongsDue.append(id)
        case .frame(let frame):
            try requireFits(frame)
            try frame.write(into: &buffer)
        case .packet(let packet):
            try packet.write(into: &buffer, version: version)
        }
    }

    mutating func writeHeartbeat(into buffer: inout ByteBuffer) throws {
        try MQTTPacket.pingreq.write(into: &buffer, version: version)
        pongsDue.append(0)
    }

    private mutating func write(_ packet: MQTTPacket, into buffer: inout ByteBuffer, for awaited: Awaited) throws {
        let packetID: UInt16
        switch packet {
        case .subscribe(let packet): packetID = packet.packetID
        case .unsubscribe(let packet): packetID = packet.packetID
        default: return
        }
        do {
            let frame = try packet.frame(version: version)
            try requireFits(frame)
            try frame.write(into: &buffer)
            self.awaited[packetID] = awaited
        } catch {
            outbound.returnPacketID(packetID)
            throw error
        }
    }

    private mutating func borrowPacketID() throws -> UInt16 {
        guard let packetID = outbound.borrowPacketID() else {
            throw HermesClientError(.notEncodable, "65,535 packets are unanswered; wait for some of the answers")
        }
        return packetID
    }

    private func requireFits(_ frame: MQTTFrame) throws {
        guard let limit = connection?.maxPacketBytes, frame.encodedBytes > limit else { return }
        throw HermesClientError(
            .notEncodable,
            "the packet has \(frame.encodedBytes) bytes; the server accepts at most \(limit)"
        )
    }

    private func requireSupported(_ outgoing: MQTTOutgoing) throws {
        guard let connection, outgoing.qos > connection.maximumQoS.wire else { return }
        let qos = connection.maximumQoS.rawValue
        throw HermesClientError(
            "QoS \(outgoing.qos.rawValue) is above the server's highest, \(qos)",
            .init(.qosNotSupported)
        )
    }
}

// MARK: - Subscriptions
extension MQTTLink {
    /// The largest number of filters in a packet that renews subscriptions. Some servers, for example AWS IoT Core,
    /// accept no more filters.
    private static let maxRenewedFilters = 8
    /// The longest packet that renews several subscriptions, in bytes. A server of MQTT 3.1.1 does not say which length
    /// it accepts.
    private static let maxRenewalBytes = 4_096
    /// The largest number of bytes that a SUBSCRIBE has in addition to its filters: the fixed header (5), the packet
    /// identifier (2), and the properties with a subscription identifier (6).
    private static let subscribeOverhead = 5 + 2 + 6
    /// The number of renewals in a row that the server may refuse for a temporary reason before the client stops. With
    /// MQTT 3.1.1, a permanent refusal has the same code as a temporary refusal.
    static let maxRefusedRenewals = 10

    /// Returns the subscriptions with an identifier, grouped into packets that the server accepts. The app may have
    /// requested the subscriptions in many packets, so one packet with all of them may be too long.
    private func renewals(of identifier: Int?) -> [[MQTTClient.Subscription]] {
        let limit = min(connection?.maxPacketBytes ?? Int.max, Self.maxRenewalBytes) - Self.subscribeOverhead
        var packets: [[MQTTClient.Subscription]] = []
        var bytes = 0
        for (subscription, other) in subscriptions where other == identifier {
            // A length precedes the filter, and the options follow it.
            let length = 2 + subscription.filter.utf8.count + 1
            if let count = packets.last?.count, count < Self.maxRenewedFilters, bytes + length <= limit {
                packets[packets.endIndex - 1].append(subscription)
                bytes += length
            } else {
                packets.append([subscription])
                bytes = length
            }
        }
        return packets
    }

    /// Ends the client if a subscription cannot be renewed. If the client continued without the subscription, the app
    /// would conclude that nothing is published.
    mutating func sendFailed(_ request: Request, error: HermesClientError, effects: inout Effects) {
        guard case .subscribe(let unsent, _) = request, let first = unsent.first else { return }
        // The client can be started again without these subscriptions.
        let keys = Set(unsent.map(\.key))
        subscriptions.removeAll { keys.contains($0.subscription.key) }
        let message = "the subscription \(first.filter) cannot be renewed: \(error.message)"
        effects.append(.kicked(HermesClientError(error.code, message), mayReturn: false, advice: nil))
    }

    mutating func subscribed(_ packet: MQTTSuback, effects: inout Effects) throws(MQTTPacketError) {
        guard case .subscribe(let id, let wanted, let identifier) = awaited.removeValue(forKey: packet.packetID) else {
            return
        }
        outbound.returnPacketID(packet.packetID)
        let reasons = packet.reasons.map { MQTTClient.ReasonCode($0) }
        guard reasons.count == wanted.count else {
            let message = "the server answered \(wanted.count) filters with \(reasons.count) reasons"
            // No request of the app waits for the answer to a renewal.
            guard id != 0 else { throw MQTTPacketError(.protocolError, message) }
            return effects.append(.answer(id: id, .failure(HermesClientError(.protocolViolation, message))))
        }
        guard id != 0 else { return renewed(wanted, identifier, reasons, packet.properties, effects: &effects) }
        for (subscription, reason) in zip(wanted, reasons) {
            subscriptions.removeAll { $0.subscription.key == subscription.key }
            if !reason.isFailure { subscriptions.append((subscription, identifier)) }
        }
        effects.append(.answer(id: id, .success(reasons)))
    }

    /// Handles the answer to a packet that renews subscriptions. If the server refuses one of the subscriptions, the
    /// connection ends, because the app would otherwise conclude that nothing is published. After a temporary refusal,
    /// the next connection renews the subscriptions again.
    private mutating func renewed(
        _ wanted: [MQTTClient.Subscription],
        _ identifier: Int?,
        _ reasons: [MQTTClient.ReasonCode],
        _ properties: MQTTProperties,
        effects: inout Effects
    ) {
        let refusals = zip(wanted, reasons).filter { $0.1.isFailure }
        guard let (subscription, reason) = refusals.first(where: { !$0.1.mayRetry }) ?? refusals.first else {
            if !isRenewing(identifier) { unrenewed.remove(identifier) }
            if unrenewed.isEmpty { refusedRenewals = 0 }
            return
        }
        refusedRenewals += 1
        let mayReturn = reason.mayRetry && refusedRenewals <= Self.maxRefusedRenewals
        if !mayReturn {
            refusedRenewals = 0
            let keys = Set(refusals.map { $0.0.key })
            subscriptions.removeAll { keys.contains($0.subscription.key) }
        }
        let error = HermesClientError(
            "the server does not renew the subscription \(subscription.filter)",
            reason,
            properties
        )
        effects.append(.kicked(error, mayReturn: mayReturn, advice: nil))
    }

    /// Whether a packet that renews subscriptions with this identifier is unanswered.
    private func isRenewing(_ identifier: Int?) -> Bool {
        awaited.values.contains { awaited in
            guard case .subscribe(let id, _, let other) = awaited else { return false }
            return id == 0 && other == identifier
        }
    }

    mutating func unsubscribed(_ packet: MQTTUnsuback, effects: inout Effects) {
        guard case .unsubscribe(let id, let filters) = awaited.removeValue(forKey: packet.packetID) else { return }
        for filter in filters {
            // If a filter has wildcards, the topics that match it are not looked up, and all topics are forgotten. The
            // topics of other subscriptions are then tracked anew.
            if filter.contains("#") || filter.contains("+") { topics.forgetAll() } else { topics.forget(filter) }
        }
        outbound.returnPacketID(packet.packetID)
        var reasons = packet.reasons.map { MQTTClient.ReasonCode($0) }
        // MQTT 3.1.1 has no reasons: the answer itself confirms the end of the subscriptions.
        if reasons.count != filters.count { reasons = Array(repeating: .success, count: filters.count) }
        for (filter, reason) in zip(filters, reasons) where !reason.isFailure {
            subscriptions.removeAll { $0.subscription.key == ExactText(filter) }
        }
        effects.append(.answer(id: id, .success(reasons)))
    }
}

extension MQTTMessage {
    /// Returns the message as a will, which is published after the delay.
    fileprivate func will(_ version: MQTTVersion, after delay: Duration) -> MQTTWill {
        var properties: MQTTProperties = []
        if version == .v5 {
            properties = self.properties.wire
            if delay > .zero { properties.list.append(.willDelayInterval(delay.wholeSeconds)) }
        }
        return MQTTWill(topic: topic, payload: payload, qos: qos.wire, retain: retain, properties: properties)
    }
}
