// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// SUBACK: the answer to SUBSCRIBE, with one outcome for each topic filter, in the order of the filters (3.9).
package struct MQTTSuback: Hashable, Sendable {
    package var packetID: UInt16
    package var reasons: [MQTTReasonCode]
    package var properties: MQTTProperties

    package init(packetID: UInt16, reasons: [MQTTReasonCode], properties: MQTTProperties = []) {
        self.packetID = packetID
        self.reasons = reasons
        self.properties = properties
    }
}

extension MQTTSuback {
    init(from body: inout ByteBuffer, version: MQTTVersion) throws(MQTTPacketError) {
        packetID = try body.readMQTTPacketID()
        properties = version == .v5 ? try MQTTProperties(from: &body, in: .packet(.suback)) : []
        reasons = []
        while let code = body.readInteger(as: UInt8.self) {
            let reason = MQTTReasonCode(rawValue: code)
            guard reason.isAllowed(in: .suback), version == .v5 || code <= 2 || code == 0x80 else {
                throw .malformed("a SUBACK has no code \(code) [MQTT-3.9.3-2]")
            }
            reasons.append(reason)
        }
    }

    func write(into body: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        guard packetID != 0 else { throw WireError(.notEncodable, "a packet identifier is not 0 [MQTT-2.2.1-3]") }
        body.writeInteger(packetID)
        if version == .v5 { try properties.write(into: &body) }
        for reason in reasons {
            // 3.1.1 has only one failure code.
            body.writeInteger(version == .v311 && reason.isFailure ? 0x80 : reason.rawValue)
        }
    }
}
