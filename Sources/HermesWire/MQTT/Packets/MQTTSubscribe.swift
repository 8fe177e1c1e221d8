// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// SUBSCRIBE: a client asks for publications (3.8).
package struct MQTTSubscribe: Hashable, Sendable {
    package var packetID: UInt16
    /// The topic filters and their options; at least one filter [MQTT-3.8.3-2].
    package var subscriptions: [MQTTSubscription]
    package var properties: MQTTProperties

    package init(packetID: UInt16, subscriptions: [MQTTSubscription], properties: MQTTProperties = []) {
        self.packetID = packetID
        self.subscriptions = subscriptions
        self.properties = properties
    }
}

/// A topic filter and its subscription options (3.8.3.1).
package struct MQTTSubscription: Hashable, Sendable {
    /// When the server delivers retained messages for a new subscription.
    package enum RetainHandling: UInt8, Hashable, Sendable, CaseIterable {
        case sendAlways = 0
        case sendIfNew = 1
        case doNotSend = 2
    }

    package var filter: String
    package var maximumQoS: MQTTQoS
    /// Whether the server leaves out the client's own publications; false in 3.1.1.
    package var noLocal: Bool
    /// Whether forwarded messages keep their retain flag; false in 3.1.1.
    package var retainAsPublished: Bool
    package var retainHandling: RetainHandling

    package init(
        filter: String,
        maximumQoS: MQTTQoS = .atMostOnce,
        noLocal: Bool = false,
        retainAsPublished: Bool = false,
        retainHandling: RetainHandling = .sendAlways
    ) {
        self.filter = filter
        self.maximumQoS = maximumQoS
        self.noLocal = noLocal
        self.retainAsPublished = retainAsPublished
        self.retainHandling = retainHandling
    }
}

extension MQTTSubscribe {
    init(from body: inout ByteBuffer, version: MQTTVersion) throws(MQTTPacketError) {
        var list = try MQTTFilterList(of: .subscribe, from: &body, version: version)
        packetID = list.packetID
        properties = list.properties
        subscriptions = []
        for _ in 0..<list.count { subscriptions.append(try list.nextSubscription()) }
    }

    func write(into body: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        guard packetID != 0 else { throw WireError(.notEncodable, "a packet identifier is not 0 [MQTT-2.2.1-3]") }
        body.writeInteger(packetID)
        if version == .v5 { try properties.write(into: &body) }
        for subscription in subscriptions { try subscription.write(into: &body, version: version) }
    }
}

extension MQTTSubscription {
    private enum Flag {
        static let noLocal: UInt8 = 0b0000_0100
        static let retainAsPublished: UInt8 = 0b0000_1000
        static let reserved: UInt8 = 0b1100_0000
        static let qosOnly: UInt8 = 0b0000_0011
    }

    init(from body: inout ByteBuffer, version: MQTTVersion) throws(MQTTPacketError) {
        filter = try body.readMQTTFilter()
        let options = try body.readMQTTByte("the subscription options")
        let reserved = version == .v5 ? Flag.reserved : ~Flag.qosOnly
        guard options & reserved == 0 else { throw .malformed("reserved subscription options are set [MQTT-3.8.3-5]") }
        guard let qos = MQTTQoS(rawValue: options & Flag.qosOnly) else {
            throw .malformed("the maximum QoS is 3 [MQTT-3.8.3-4]")
        }
        guard let handling = RetainHandling(rawValue: options >> 4 & 0b11) else {
            throw .protocolError("the retain handling is 3 (3.8.3.1)")
        }
        maximumQoS = qos
        noLocal = options & Flag.noLocal != 0
        retainAsPublished = options & Flag.retainAsPublished != 0
        retainHandling = handling
        guard !noLocal || !filter.utf8.starts(with: MQTTTopic.sharePrefix.utf8) else {
            throw .protocolError("no-local is set on a shared subscription [MQTT-3.8.3-4]")
        }
    }

    func write(into body: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        try body.writeMQTTString(filter)
        var options = maximumQoS.rawValue
        if version == .v5 {
            options |= (noLocal ? Flag.noLocal : 0) | (retainAsPublished ? Flag.retainAsPublished : 0)
            options |= retainHandling.rawValue << 4
        }
        body.writeInteger(options)
    }
}
