// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// PUBACK, PUBREC, PUBREL and PUBCOMP, which have the same fields (3.4 to 3.7).
package struct MQTTAcknowledgement: Hashable, Sendable {
    package var packetID: UInt16
    /// The outcome; always success in 3.1.1, which has no reason codes.
    package var reason: MQTTReasonCode
    package var properties: MQTTProperties

    package init(packetID: UInt16, reason: MQTTReasonCode = .success, properties: MQTTProperties = []) {
        self.packetID = packetID
        self.reason = reason
        self.properties = properties
    }
}

extension MQTTAcknowledgement {
    init(from body: inout ByteBuffer, type: MQTTPacketType, version: MQTTVersion) throws(MQTTPacketError) {
        packetID = try body.readMQTTPacketID()
        reason = .success
        properties = []
        guard version == .v5, body.readableBytes > 0 else { return }
        reason = MQTTReasonCode(rawValue: try body.readMQTTByte("the reason code"))
        guard reason.isAllowed(in: type) else {
            throw .protocolError("a \(type) has no reason code \(reason.rawValue)")
        }
        guard body.readableBytes > 0 else { return }
        properties = try MQTTProperties(from: &body, in: .packet(type))
    }

    func write(into body: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        guard packetID != 0 else { throw WireError(.notEncodable, "a packet identifier is not 0 [MQTT-2.2.1-3]") }
        body.writeInteger(packetID)
        guard version == .v5, reason != .success || !properties.isEmpty else { return }
        body.writeInteger(reason.rawValue)
        if !properties.isEmpty { try properties.write(into: &body) }
    }
}
