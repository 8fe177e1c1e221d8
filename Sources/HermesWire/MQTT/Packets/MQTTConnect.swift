// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// CONNECT: the first packet of a client (3.1).
package struct MQTTConnect: Hashable, Sendable {
    package var version: MQTTVersion
    /// Whether the client wants a new session; called Clean Session in 3.1.1.
    package var cleanStart: Bool
    /// The keep alive in seconds; 0 means no keep alive.
    package var keepAlive: UInt16
    /// The client identifier. If it is empty, the server assigns one.
    package var clientID: String
    package var will: MQTTWill?
    package var userName: String?
    package var password: ByteBuffer?
    package var properties: MQTTProperties

    package init(
        version: MQTTVersion,
        clientID: String,
        cleanStart: Bool = true,
        keepAlive: UInt16 = 60,
        will: MQTTWill? = nil,
        userName: String? = nil,
        password: ByteBuffer? = nil,
        properties: MQTTProperties = []
    ) {
        self.version = version
        self.cleanStart = cleanStart
        self.keepAlive = keepAlive
        self.clientID = clientID
        self.will = will
        self.userName = userName
        self.password = password
        self.properties = properties
    }
}

/// The message that the server publishes when the connection ends without a DISCONNECT (3.1.2.5).
package struct MQTTWill: Hashable, Sendable {
    package var topic: String
    package var payload: ByteBuffer
    package var qos: MQTTQoS
    package var retain: Bool
    package var properties: MQTTProperties

    package init(
        topic: String,
        payload: ByteBuffer,
        qos: MQTTQoS = .atMostOnce,
        retain: Bool = false,
        properties: MQTTProperties = []
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
    }
}

extension MQTTConnect {
    private enum Flag {
        static let reserved: UInt8 = 0b0000_0001
        static let cleanStart: UInt8 = 0b0000_0010
        static let will: UInt8 = 0b0000_0100
        static let willRetain: UInt8 = 0b0010_0000
        static let password: UInt8 = 0b0100_0000
        static let userName: UInt8 = 0b1000_0000
        static let willQoSShift: UInt8 = 3
    }

    init(from body: inout ByteBuffer) throws(MQTTPacketError) {
        version = try Self.readVersion(from: &body)
        let flags = try body.readMQTTByte("the connect flags")
        guard flags & Flag.reserved == 0 else {
            throw .malformed("the reserved connect flag is set [MQTT-3.1.2-3]")
        }
        cleanStart = flags & Flag.cleanStart != 0
        let hasWill = flags & Flag.will != 0
        guard let willQoS = MQTTQoS(rawValue: flags >> Flag.willQoSShift & 0b11) else {
            throw .malformed("the will QoS is 3 [MQTT-3.1.2-12]")
        }
        guard hasWill || (willQoS == .atMostOnce && flags & Flag.willRetain == 0) else {
            throw .malformed("there is no will, but a will QoS or retain [MQTT-3.1.2-11] [MQTT-3.1.2-13]")
        }
        guard version == .v5 || flags & Flag.userName != 0 || flags & Flag.password == 0 else {
            throw .malformed("there is a password but no user name [MQTT-3.1.2-22]")
        }
        keepAlive = try body.readMQTTTwoBytes("the keep alive")
        properties = version == .v5 ? try MQTTProperties(from: &body, in: .packet(.connect)) : []
        clientID = try body.readMQTTString("the client identifier")
        if hasWill {
            let willProperties = version == .v5 ? try MQTTProperties(from: &body, in: .will) : []
            let topic = try body.readMQTTString("the will topic")
            guard MQTTTopic.isValidName(topic) else {
                throw MQTTPacketError(.topicNameInvalid, "the will topic is empty or has wildcards [MQTT-3.3.2-2]")
            }
            will = MQTTWill(
                topic: topic,
                payload: try body.readMQTTBinary("the will payload"),
                qos: willQoS,
                retain: flags & Flag.willRetain != 0,
                properties: willProperties
            )
        }
        if flags & Flag.userName != 0 { userName = try body.readMQTTString("the user name") }
        if flags & Flag.password != 0 { password = try body.readMQTTBinary("the password") }
        // The password becomes a string later, if it is a token or an account's password.
        guard password.map({ StreamSafeText.isSafe($0) }) ?? true else {
            throw .malformed("the password \(StreamSafeText.problem)")
        }
    }

    private static func readVersion(from body: inout ByteBuffer) throws(MQTTPacketError) -> MQTTVersion {
        let name = try body.readMQTTString("the protocol name")
        let level = try body.readMQTTByte("the protocol level")
        switch (name, MQTTVersion(rawValue: level)) {
        case ("MQTT", .some(let version)): return version
        case ("MQTT", nil), ("MQIsdp", _):
            throw MQTTPacketError(
                .unsupportedProtocolVersion,
                "\(name) \(level) is not supported; supported are MQTT 3.1.1 (4) and 5.0 (5) [MQTT-3.1.2-2]"
            )
        default:
            throw .malformed("the protocol is not called MQTT [MQTT-3.1.2-1]")
        }
    }

    func write(into body: inout ByteBuffer) throws(WireError) {
        try body.writeMQTTString("MQTT")
        body.writeInteger(version.rawValue)
        var flags: UInt8 = cleanStart ? Flag.cleanStart : 0
        if let will {
            flags |= Flag.will | will.qos.rawValue << Flag.willQoSShift | (will.retain ? Flag.willRetain : 0)
        }
        if userName != nil { flags |= Flag.userName }
        if password != nil { flags |= Flag.password }
        body.writeInteger(flags)
        body.writeInteger(keepAlive)
        if version == .v5 { try properties.write(into: &body) }
        try body.writeMQTTString(clientID)
        if let will {
            if version == .v5 { try will.properties.write(into: &body) }
            try body.writeMQTTString(will.topic)
            try body.writeMQTTBinary(will.payload)
        }
        if let userName { try body.writeMQTTString(userName) }
        if let password { try body.writeMQTTBinary(password) }
    }
}
