// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// DISCONNECT: the last packet of a connection; a server sends it in MQTT 5.0 only (3.14).
package struct MQTTDisconnect: Hashable, Sendable {
    package var reason: MQTTReasonCode
    package var properties: MQTTProperties

    package init(reason: MQTTReasonCode = .success, properties: MQTTProperties = []) {
        self.reason = reason
        self.properties = properties
    }
}

extension MQTTDisconnect {
    init(from body: inout ByteBuffer, version: MQTTVersion) throws(MQTTPacketError) {
        self.init()
        guard version == .v5, body.readableBytes > 0 else { return }
        reason = MQTTReasonCode(rawValue: try body.readMQTTByte("the reason code"))
        guard reason.isAllowed(in: .disconnect) else {
            throw .protocolError("a DISCONNECT has no reason code \(reason.rawValue)")
        }
        guard body.readableBytes > 0 else { return }
        properties = try MQTTProperties(from: &body, in: .packet(.disconnect))
    }

    func write(into body: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        guard version == .v5, reason != .success || !properties.isEmpty else { return }
        body.writeInteger(reason.rawValue)
        if !properties.isEmpty { try properties.write(into: &body) }
    }
}
