// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The properties of one packet, in the packet's order. In MQTT 3.1.1, packets have no properties.
package struct MQTTProperties: Hashable, Sendable, ExpressibleByArrayLiteral {
    package var list: [MQTTProperty]

    package init(_ list: [MQTTProperty] = []) { self.list = list }
    package init(arrayLiteral elements: MQTTProperty...) { list = elements }

    package var isEmpty: Bool { list.isEmpty }

    /// The user properties, in the packet's order [MQTT-3.3.2-18].
    package var userProperties: [(name: String, value: String)] {
        list.compactMap { if case .userProperty(let name, let value) = $0 { (name, value) } else { nil } }
    }

    /// The approximate memory of all properties, in bytes. A packet that stays in memory keeps all its properties.
    package var weight: Int {
        list.reduce(0) { sum, property in
            switch property {
            case .userProperty(let name, let value): sum &+ 64 &+ name.utf8.count &+ value.utf8.count
            case .contentType(let text), .responseTopic(let text), .assignedClientIdentifier(let text),
                .authenticationMethod(let text), .responseInformation(let text), .serverReference(let text),
                .reasonString(let text):
                sum &+ 64 &+ text.utf8.count
            case .correlationData(let data), .authenticationData(let data): sum &+ 64 &+ data.readableBytes
            default: sum &+ 64
            }
        }
    }

    /// Returns the first value that `read` finds, for example `first { if case .receiveMaximum(let count) = $0 { count }
    /// else { nil } }`.
    package func first<Value>(_ read: (MQTTProperty) -> Value?) -> Value? {
        for property in list {
            if let value = read(property) { return value }
        }
        return nil
    }
}

extension MQTTProperties {
    /// The place where properties appear. It determines which properties are allowed (table 2-4).
    enum Place: Hashable {
        case packet(MQTTPacketType)
        case will
    }

    /// The largest number of properties in one place. It is higher for PUBLISH, because a server adds its own
    /// properties and many subscription identifiers to a client's PUBLISH.
    private static func maxCount(in place: Place) -> Int {
        MQTTPacket.maxClientProperties + (place == .packet(.publish) ? 4_096 : 0)
    }

    /// Reads the length of the properties, then the properties.
    ///
    /// The time is linear in the number of bytes. To find duplicates, a bit set records which properties have been
    /// read.
    init(from body: inout ByteBuffer, in place: Place) throws(MQTTPacketError) {
        let length = try body.readMQTTVariableByteInteger("the property length")
        guard var bytes = body.readSlice(length: length) else {
            throw .malformed("the properties are shorter than their length says (2.2.2.1)")
        }
        list = []
        var seen: UInt64 = 0
        while bytes.readableBytes > 0 {
            let property = try MQTTProperty(from: &bytes)
            let identifier = property.identifier
            guard identifier.isAllowed(in: place) else {
                throw .protocolError("\(identifier) is not allowed here (2.2.2.2)")
            }
            let bit = UInt64(1) << UInt64(identifier.rawValue)
            guard seen & bit == 0 || identifier.mayRepeat(in: place) else {
                throw .protocolError("\(identifier) is a duplicate (2.2.2.2)")
            }
            seen |= bit
            guard list.count < Self.maxCount(in: place) else {
                throw MQTTPacketError(.quotaExceeded, "a packet has more than \(Self.maxCount(in: place)) properties")
            }
            list.append(property)
        }
    }

    /// Appends the length of the properties, then the properties.
    func write(into buffer: inout ByteBuffer) throws(WireError) {
        guard !list.isEmpty else {
            buffer.writeInteger(UInt8(0))
            return
        }
        var bytes = ByteBuffer()
        for property in list { try property.write(into: &bytes) }
        guard bytes.readableBytes <= MQTTVariableByteInteger.max else {
            throw .frameTooLong(bytes.readableBytes, limit: MQTTVariableByteInteger.max)
        }
        MQTTVariableByteInteger.write(bytes.readableBytes, into: &buffer)
        buffer.writeImmutableBuffer(bytes)
    }
}

extension MQTTProperty.Identifier {
    /// Whether the property may repeat. A user property may repeat anywhere; a subscription identifier may repeat only
    /// in a PUBLISH (3.3.2.3.8).
    fileprivate func mayRepeat(in place: MQTTProperties.Place) -> Bool {
        self == .userProperty || (self == .subscriptionIdentifier && place == .packet(.publish))
    }

    /// Whether table 2-4 allows the property in this place.
    fileprivate func isAllowed(in place: MQTTProperties.Place) -> Bool {
        switch self {
        case .payloadFormatIndicator, .messageExpiryInterval, .contentType, .responseTopic, .correlationData:
            place == .packet(.publish) || place == .will
        case .subscriptionIdentifier:
            place == .packet(.publish) || place == .packet(.subscribe)
        case .sessionExpiryInterval:
            place == .packet(.connect) || place == .packet(.connack) || place == .packet(.disconnect)
        case .assignedClientIdentifier, .serverKeepAlive, .responseInformation, .maximumQoS, .retainAvailable,
            .wildcardSubscriptionAvailable, .subscriptionIdentifierAvailable, .sharedSubscriptionAvailable:
            place == .packet(.connack)
        case .authenticationMethod, .authenticationData:
            place == .packet(.connect) || place == .packet(.connack) || place == .packet(.auth)
        case .requestProblemInformation, .requestResponseInformation:
            place == .packet(.connect)
        case .willDelayInterval:
            place == .will
        case .serverReference:
            place == .packet(.connack) || place == .packet(.disconnect)
        case .reasonString:
            switch place {
            case .packet(.connack), .packet(.puback), .packet(.pubrec), .packet(.pubrel), .packet(.pubcomp),
                .packet(.suback), .packet(.unsuback), .packet(.disconnect), .packet(.auth):
                true
            default: false
            }
        case .receiveMaximum, .topicAliasMaximum, .maximumPacketSize:
            place == .packet(.connect) || place == .packet(.connack)
        case .topicAlias:
            place == .packet(.publish)
        case .userProperty:
            true
        }
    }
}
