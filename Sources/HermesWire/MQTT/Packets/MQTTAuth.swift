// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// AUTH: a step of enhanced authentication; MQTT 5.0 only (3.15).
package struct MQTTAuth: Hashable, Sendable {
    package var reason: MQTTReasonCode
    package var properties: MQTTProperties

    package init(reason: MQTTReasonCode = .success, properties: MQTTProperties = []) {
        self.reason = reason
        self.properties = properties
    }
}

extension MQTTAuth {
    init(from body: inout ByteBuffer) throws(MQTTPacketError) {
        self.init()
        guard body.readableBytes > 0 else { return }
        reason = MQTTReasonCode(rawValue: try body.readMQTTByte("the reason code"))
        guard reason.isAllowed(in: .auth) else { throw .protocolError("an AUTH has no reason code \(reason.rawValue)") }
        guard body.readableBytes > 0 else { return }
        properties = try MQTTProperties(from: &body, in: .packet(.auth))
    }

    func write(into body: inout ByteBuffer) throws(WireError) {
        guard reason != .success || !properties.isEmpty else { return }
        body.writeInteger(reason.rawValue)
        try properties.write(into: &body)
    }
}
