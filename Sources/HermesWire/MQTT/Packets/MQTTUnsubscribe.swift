// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// UNSUBSCRIBE: a client ends subscriptions (3.10).
package struct MQTTUnsubscribe: Hashable, Sendable {
    package var packetID: UInt16
    /// The topic filters; at least one filter [MQTT-3.10.3-2].
    package var filters: [String]
    package var properties: MQTTProperties

    package init(packetID: UInt16, filters: [String], properties: MQTTProperties = []) {
        self.packetID = packetID
        self.filters = filters
        self.properties = properties
    }
}

extension MQTTUnsubscribe {
    init(from body: inout ByteBuffer, version: MQTTVersion) throws(MQTTPacketError) {
        var list = try MQTTFilterList(of: .unsubscribe, from: &body, version: version)
        packetID = list.packetID
        properties = list.properties
        filters = []
        for _ in 0..<list.count { filters.append(try list.nextFilter()) }
    }

    func write(into body: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        guard packetID != 0 else { throw WireError(.notEncodable, "a packet identifier is not 0 [MQTT-2.2.1-3]") }
        body.writeInteger(packetID)
        if version == .v5 { try properties.write(into: &body) }
        for filter in filters { try body.writeMQTTString(filter) }
    }
}
