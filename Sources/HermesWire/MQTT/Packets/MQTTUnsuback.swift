// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// UNSUBACK: the answer to UNSUBSCRIBE, with one outcome for each topic filter in MQTT 5.0 and none in 3.1.1 (3.11).
package struct MQTTUnsuback: Hashable, Sendable {
    package var packetID: UInt16
    package var reasons: [MQTTReasonCode]
    package var properties: MQTTProperties

    package init(packetID: UInt16, reasons: [MQTTReasonCode] = [], properties: MQTTProperties = []) {
        self.packetID = packetID
        self.reasons = reasons
        self.properties = properties
    }
}

extension MQTTUnsuback {
    init(from body: inout ByteBuffer, version: MQTTVersion) throws(MQTTPacketError) {
        packetID = try body.readMQTTPacketID()
        reasons = []
        properties = []
        guard version == .v5 else { return }
        properties = try MQTTProperties(from: &body, in: .packet(.unsuback))
        while let code = body.readInteger(as: UInt8.self) {
            let reason = MQTTReasonCode(rawValue: code)
            guard reason.isAllowed(in: .unsuback) else { throw .malformed("an UNSUBACK has no code \(code)") }
            reasons.append(reason)
        }
    }

    func write(into body: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        guard packetID != 0 else { throw WireError(.notEncodable, "a packet identifier is not 0 [MQTT-2.2.1-3]") }
        body.writeInteger(packetID)
        guard version == .v5 else { return }
        try properties.write(into: &body)
        for reason in reasons { body.writeInteger(reason.rawValue) }
    }
}
