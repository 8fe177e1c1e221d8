// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// Random packets that are valid in a version, with all fields of this version.
extension SeededGenerator {
    mutating func packet(_ type: MQTTPacketType, _ version: MQTTVersion) -> MQTTPacket {
        switch type {
        case .connect: .connect(connect(version))
        case .connack: .connack(connack(version))
        case .publish: .publish(publish(version))
        case .puback: .puback(acknowledgement(version, [.success, .noMatchingSubscribers, .quotaExceeded]))
        case .pubrec: .pubrec(acknowledgement(version, [.success, .packetIdentifierInUse]))
        case .pubrel: .pubrel(acknowledgement(version, [.success, .packetIdentifierNotFound]))
        case .pubcomp: .pubcomp(acknowledgement(version, [.success, .packetIdentifierNotFound]))
        case .subscribe:
            .subscribe(
                MQTTSubscribe(
                    packetID: packetID(),
                    subscriptions: some { $0.subscription(version) },
                    properties: properties(version, [.subscriptionIdentifier(number(1...268_435_455))])
                )
            )
        case .suback:
            .suback(
                MQTTSuback(
                    packetID: packetID(),
                    reasons: some { $0.pick([.success, .grantedQoS1, .grantedQoS2, .unspecifiedError]) },
                    properties: properties(version, [.reasonString(string())])
                )
            )
        case .unsubscribe:
            .unsubscribe(
                MQTTUnsubscribe(packetID: packetID(), filters: some { $0.topic() }, properties: properties(version, []))
            )
        case .unsuback:
            .unsuback(
                MQTTUnsuback(
                    packetID: packetID(),
                    reasons: version == .v5 ? some { $0.pick([.success, .noSubscriptionExisted]) } : [],
                    properties: properties(version, [.reasonString(string())])
                )
            )
        case .pingreq: .pingreq
        case .pingresp: .pingresp
        case .disconnect:
            .disconnect(
                version == .v311
                    ? MQTTDisconnect()
                    : MQTTDisconnect(
                        reason: pick([.success, .serverShuttingDown, .disconnectWithWill]),
                        properties: properties(version, [.serverReference(string()), .sessionExpiryInterval(7)])
                    )
            )
        case .auth:
            .auth(
                MQTTAuth(
                    reason: pick([.success, .continueAuthentication, .reauthenticate]),
                    properties: properties(
                        version,
                        [.authenticationMethod(string()), .authenticationData(body(0...9))]
                    )
                )
            )
        }
    }

    private mutating func connect(_ version: MQTTVersion) -> MQTTConnect {
        let userName = Bool.random(using: &self) ? string() : nil
        let mayHavePassword = version == .v5 || userName != nil
        let will = MQTTWill(
            topic: topic(),
            payload: body(0...20),
            qos: pick(MQTTQoS.allCases),
            retain: Bool.random(using: &self),
            properties: properties(version, [.willDelayInterval(9), .payloadFormatIndicator(true)] + message())
        )
        return MQTTConnect(
            version: version,
            clientID: string(),
            cleanStart: Bool.random(using: &self),
            keepAlive: UInt16.random(in: 0 ... .max, using: &self),
            will: Bool.random(using: &self) ? will : nil,
            userName: userName,
            password: mayHavePassword && Bool.random(using: &self) ? body(0...20) : nil,
            properties: properties(
                version,
                [
                    .sessionExpiryInterval(.max), .receiveMaximum(1), .maximumPacketSize(1), .topicAliasMaximum(0),
                    .requestProblemInformation(false), .requestResponseInformation(true),
                    .authenticationMethod(string()), .authenticationData(body(0...9)),
                ]
            )
        )
    }

    private mutating func connack(_ version: MQTTVersion) -> MQTTConnack {
        let reason: MQTTReasonCode = pick([.success, .notAuthorized, .badUserNameOrPassword, .serverUnavailable])
        return MQTTConnack(
            sessionPresent: reason == .success && Bool.random(using: &self),
            reason: reason,
            properties: properties(
                version,
                [
                    .assignedClientIdentifier(string()), .serverKeepAlive(30), .responseInformation(string()),
                    .maximumQoS(.atLeastOnce), .retainAvailable(true), .wildcardSubscriptionAvailable(false),
                    .subscriptionIdentifierAvailable(true), .sharedSubscriptionAvailable(true),
                    .serverReference(string()), .reasonString(string()), .topicAliasMaximum(10),
                ]
            )
        )
    }

    private mutating func publish(_ version: MQTTVersion) -> MQTTPublish {
        let qos = pick(MQTTQoS.allCases)
        return MQTTPublish(
            topic: topic(),
            payload: body(0...300),
            qos: qos,
            packetID: qos == .atMostOnce ? nil : packetID(),
            retain: Bool.random(using: &self),
            isDuplicate: qos != .atMostOnce && Bool.random(using: &self),
            properties: properties(
                version,
                message() + [.topicAlias(3), .subscriptionIdentifier(1), .subscriptionIdentifier(number(1...20_000))]
            )
        )
    }

    private mutating func acknowledgement(_ version: MQTTVersion, _ reasons: [MQTTReasonCode]) -> MQTTAcknowledgement {
        version == .v311
            ? MQTTAcknowledgement(packetID: packetID())
            : MQTTAcknowledgement(
                packetID: packetID(),
                reason: pick(reasons),
                properties: properties(version, [.reasonString(string())])
            )
    }

    private mutating func subscription(_ version: MQTTVersion) -> MQTTSubscription {
        version == .v311
            ? MQTTSubscription(filter: topic(), maximumQoS: pick(MQTTQoS.allCases))
            : MQTTSubscription(
                filter: topic(),
                maximumQoS: pick(MQTTQoS.allCases),
                noLocal: Bool.random(using: &self),
                retainAsPublished: Bool.random(using: &self),
                retainHandling: pick(MQTTSubscription.RetainHandling.allCases)
            )
    }

    /// The properties that a publication and a will share.
    private mutating func message() -> [MQTTProperty] {
        [
            .messageExpiryInterval(UInt32.random(in: 0 ... .max, using: &self)), .contentType(string()),
            .responseTopic(topic()), .correlationData(body(0...30)),
        ]
    }

    /// Some of the candidates and some user properties; no properties in 3.1.1.
    private mutating func properties(_ version: MQTTVersion, _ candidates: [MQTTProperty]) -> MQTTProperties {
        guard version == .v5 else { return [] }
        var list: [MQTTProperty] = []
        for candidate in candidates where Bool.random(using: &self) { list.append(candidate) }
        for _ in 0..<number(0...3) { list.append(.userProperty(string(), string())) }
        list.shuffle(using: &self)
        return MQTTProperties(list)
    }

    private mutating func string() -> String { text(0...12).replacing("\0", with: "_") }
    /// A topic that is also a valid filter, because no level contains a wildcard.
    private mutating func topic() -> String {
        "t/" + string().replacing("+", with: "_").replacing("#", with: "_")
    }
    private mutating func packetID() -> UInt16 { UInt16.random(in: 1 ... .max, using: &self) }
    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }
    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &self)]
    }

    private mutating func some<Element>(_ make: (inout Self) -> Element) -> [Element] {
        (0..<number(1...5)).map { _ in make(&self) }
    }
}
