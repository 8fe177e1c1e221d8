// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// PUBLISH: a message, from a client or from the server (3.3).
package struct MQTTPublish: Hashable, Sendable {
    /// Whether the packet may have been sent before; true with QoS 1 and 2 only [MQTT-3.3.1-2].
    package var isDuplicate: Bool
    package var qos: MQTTQoS
    package var retain: Bool
    /// The topic name; empty only if a topic alias replaces it.
    package var topic: String
    /// The packet identifier, 1 … 65,535, with QoS 1 and 2; otherwise nil.
    package var packetID: UInt16?
    package var properties: MQTTProperties
    /// The payload. In a received packet it is a slice of the read buffer.
    package var payload: ByteBuffer

    package init(
        topic: String,
        payload: ByteBuffer,
        qos: MQTTQoS = .atMostOnce,
        packetID: UInt16? = nil,
        retain: Bool = false,
        isDuplicate: Bool = false,
        properties: MQTTProperties = []
    ) {
        self.isDuplicate = isDuplicate
        self.qos = qos
        self.retain = retain
        self.topic = topic
        self.packetID = packetID
        self.properties = properties
        self.payload = payload
    }
}

extension MQTTPublish {
    private enum Flag {
        static let retain: UInt8 = 0b0001
        static let duplicate: UInt8 = 0b1000
    }

    init(from body: inout ByteBuffer, flags: UInt8, version: MQTTVersion) throws(MQTTPacketError) {
        guard let qos = MQTTQoS(rawValue: flags >> 1 & 0b11) else {
            throw .malformed("the QoS is 3 [MQTT-3.3.1-4]")
        }
        self.qos = qos
        retain = flags & Flag.retain != 0
        isDuplicate = flags & Flag.duplicate != 0
        guard !isDuplicate || qos != .atMostOnce else {
            throw .malformed("a QoS 0 message is marked as duplicate [MQTT-3.3.1-2]")
        }
        topic = try body.readMQTTString("the topic name")
        packetID = qos == .atMostOnce ? nil : try body.readMQTTPacketID()
        properties = version == .v5 ? try MQTTProperties(from: &body, in: .packet(.publish)) : []
        guard MQTTTopic.isValidName(topic) || (topic.isEmpty && properties.topicAlias != nil) else {
            throw MQTTPacketError(
                topic.isEmpty ? .protocolError : .topicNameInvalid,
                "a topic name is empty or has wildcards [MQTT-3.3.2-2] [MQTT-4.7.3-1]"
            )
        }
        payload = body.readSlice(length: body.readableBytes) ?? ByteBuffer()
    }

    /// The lower four bits of the fixed header.
    var flags: UInt8 {
        (isDuplicate ? Flag.duplicate : 0) | qos.rawValue << 1 | (retain ? Flag.retain : 0)
    }

    func write(into body: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        try body.writeMQTTString(topic)
        if qos != .atMostOnce {
            guard let packetID, packetID != 0 else {
                throw WireError(.notEncodable, "a PUBLISH of QoS 1 or 2 needs a packet identifier [MQTT-2.2.1-3]")
            }
            body.writeInteger(packetID)
        }
        if version == .v5 { try properties.write(into: &body) }
        body.writeImmutableBuffer(payload)
    }
}
