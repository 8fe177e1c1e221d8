// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

extension MQTTProperty {
    /// Reads one property, identifier first.
    init(from body: inout ByteBuffer) throws(MQTTPacketError) {
        // Identifiers are variable byte integers, but all defined ones take one byte (2.2.2.2).
        let number = try body.readMQTTVariableByteInteger("a property's identifier")
        guard let identifier = UInt8(exactly: number).flatMap(Identifier.init(rawValue:)) else {
            throw .malformed("there is no property \(number) (2.2.2.2)")
        }
        switch identifier {
        case .payloadFormatIndicator: self = .payloadFormatIndicator(try body.readMQTTFlag("\(identifier)"))
        case .messageExpiryInterval: self = .messageExpiryInterval(try body.readMQTTFourBytes("\(identifier)"))
        case .contentType: self = .contentType(try body.readMQTTString("\(identifier)"))
        case .responseTopic: self = .responseTopic(try body.readMQTTString("\(identifier)"))
        case .correlationData: self = .correlationData(try body.readMQTTBinary("\(identifier)"))
        case .subscriptionIdentifier:
            self = .subscriptionIdentifier(try body.readMQTTVariableByteInteger("\(identifier)"))
        case .sessionExpiryInterval: self = .sessionExpiryInterval(try body.readMQTTFourBytes("\(identifier)"))
        case .assignedClientIdentifier: self = .assignedClientIdentifier(try body.readMQTTString("\(identifier)"))
        case .serverKeepAlive: self = .serverKeepAlive(try body.readMQTTTwoBytes("\(identifier)"))
        case .authenticationMethod: self = .authenticationMethod(try body.readMQTTString("\(identifier)"))
        case .authenticationData: self = .authenticationData(try body.readMQTTBinary("\(identifier)"))
        case .requestProblemInformation: self = .requestProblemInformation(try body.readMQTTFlag("\(identifier)"))
        case .willDelayInterval: self = .willDelayInterval(try body.readMQTTFourBytes("\(identifier)"))
        case .requestResponseInformation: self = .requestResponseInformation(try body.readMQTTFlag("\(identifier)"))
        case .responseInformation: self = .responseInformation(try body.readMQTTString("\(identifier)"))
        case .serverReference: self = .serverReference(try body.readMQTTString("\(identifier)"))
        case .reasonString: self = .reasonString(try body.readMQTTString("\(identifier)"))
        case .receiveMaximum: self = .receiveMaximum(try body.readMQTTTwoBytes("\(identifier)"))
        case .topicAliasMaximum: self = .topicAliasMaximum(try body.readMQTTTwoBytes("\(identifier)"))
        case .topicAlias: self = .topicAlias(try body.readMQTTTwoBytes("\(identifier)"))
        case .maximumQoS:
            self = .maximumQoS(try body.readMQTTFlag("\(identifier)") ? .atLeastOnce : .atMostOnce)
        case .retainAvailable: self = .retainAvailable(try body.readMQTTFlag("\(identifier)"))
        case .userProperty:
            let name = try body.readMQTTString("\(identifier)")
            self = .userProperty(name, try body.readMQTTString("\(identifier)"))
        case .maximumPacketSize: self = .maximumPacketSize(try body.readMQTTFourBytes("\(identifier)"))
        case .wildcardSubscriptionAvailable:
            self = .wildcardSubscriptionAvailable(try body.readMQTTFlag("\(identifier)"))
        case .subscriptionIdentifierAvailable:
            self = .subscriptionIdentifierAvailable(try body.readMQTTFlag("\(identifier)"))
        case .sharedSubscriptionAvailable:
            self = .sharedSubscriptionAvailable(try body.readMQTTFlag("\(identifier)"))
        }
        try checkValue()
    }

    /// Refuses the values that the standard excludes.
    private func checkValue() throws(MQTTPacketError) {
        switch self {
        case .subscriptionIdentifier(0): throw .protocolError("a subscription identifier is 0 (3.8.2.1.2)")
        case .receiveMaximum(0): throw .protocolError("the receive maximum is 0 (3.1.2.11.3)")
        case .maximumPacketSize(0): throw .protocolError("the maximum packet size is 0 (3.1.2.11.4)")
        case .topicAlias(0): throw MQTTPacketError(.topicAliasInvalid, "a topic alias is 0 [MQTT-3.3.2-8]")
        default: return
        }
    }

    /// Appends the property, identifier first.
    package func write(into buffer: inout ByteBuffer) throws(WireError) {
        buffer.writeInteger(identifier.rawValue)
        switch self {
        case .payloadFormatIndicator(let flag), .requestProblemInformation(let flag),
            .requestResponseInformation(let flag), .retainAvailable(let flag),
            .wildcardSubscriptionAvailable(let flag), .subscriptionIdentifierAvailable(let flag),
            .sharedSubscriptionAvailable(let flag):
            buffer.writeInteger(UInt8(flag ? 1 : 0))
        case .maximumQoS(let qos):
            guard qos < .exactlyOnce else {
                throw WireError(.notEncodable, "for a maximum QoS of 2, omit the property (3.2.2.3.4)")
            }
            buffer.writeInteger(qos.rawValue)
        case .serverKeepAlive(let number), .receiveMaximum(let number), .topicAliasMaximum(let number),
            .topicAlias(let number):
            buffer.writeInteger(number)
        case .messageExpiryInterval(let number), .sessionExpiryInterval(let number), .willDelayInterval(let number),
            .maximumPacketSize(let number):
            buffer.writeInteger(number)
        case .subscriptionIdentifier(let number):
            guard (1...MQTTVariableByteInteger.max).contains(number) else {
                throw WireError(.notEncodable, "a subscription identifier is 1 to 268,435,455, not \(number)")
            }
            MQTTVariableByteInteger.write(number, into: &buffer)
        case .contentType(let string), .responseTopic(let string), .assignedClientIdentifier(let string),
            .authenticationMethod(let string), .responseInformation(let string), .serverReference(let string),
            .reasonString(let string):
            try Self.write(string, into: &buffer)
        case .correlationData(let bytes), .authenticationData(let bytes):
            try buffer.writeMQTTBinary(bytes)
        case .userProperty(let name, let value):
            try Self.write(name, into: &buffer)
            try Self.write(value, into: &buffer)
        }
    }

    /// Writes a text. Other protocols allow U+0000 in a text, but MQTT does not [MQTT-1.5.4-2].
    private static func write(_ text: String, into buffer: inout ByteBuffer) throws(WireError) {
        guard !text.utf8.contains(0) else { throw WireError(.notEncodable, "a property holds U+0000 [MQTT-1.5.4-2]") }
        try buffer.writeMQTTString(text)
    }

    var identifier: Identifier {
        switch self {
        case .payloadFormatIndicator: .payloadFormatIndicator
        case .messageExpiryInterval: .messageExpiryInterval
        case .contentType: .contentType
        case .responseTopic: .responseTopic
        case .correlationData: .correlationData
        case .subscriptionIdentifier: .subscriptionIdentifier
        case .sessionExpiryInterval: .sessionExpiryInterval
        case .assignedClientIdentifier: .assignedClientIdentifier
        case .serverKeepAlive: .serverKeepAlive
        case .authenticationMethod: .authenticationMethod
        case .authenticationData: .authenticationData
        case .requestProblemInformation: .requestProblemInformation
        case .willDelayInterval: .willDelayInterval
        case .requestResponseInformation: .requestResponseInformation
        case .responseInformation: .responseInformation
        case .serverReference: .serverReference
        case .reasonString: .reasonString
        case .receiveMaximum: .receiveMaximum
        case .topicAliasMaximum: .topicAliasMaximum
        case .topicAlias: .topicAlias
        case .maximumQoS: .maximumQoS
        case .retainAvailable: .retainAvailable
        case .userProperty: .userProperty
        case .maximumPacketSize: .maximumPacketSize
        case .wildcardSubscriptionAvailable: .wildcardSubscriptionAvailable
        case .subscriptionIdentifierAvailable: .subscriptionIdentifierAvailable
        case .sharedSubscriptionAvailable: .sharedSubscriptionAvailable
        }
    }
}

extension ByteBuffer {
    /// Reads a byte that must be 0 or 1.
    fileprivate mutating func readMQTTFlag(_ field: @autoclosure () -> String) throws(MQTTPacketError) -> Bool {
        switch try readMQTTByte(field()) {
        case 0: return false
        case 1: return true
        case let other: throw .protocolError("\(field()) is \(other), and only 0 and 1 are allowed")
        }
    }
}
