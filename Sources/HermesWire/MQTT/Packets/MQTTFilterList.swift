// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// A SUBSCRIBE (3.8) or UNSUBSCRIBE (3.10) whose topic filters are parsed one at a time, on request. A packet may have
/// thousands of filters, and parsing one filter takes 1 to 2 microseconds.
package struct MQTTFilterList: Sendable {
    package let packetID: UInt16
    package let properties: MQTTProperties
    /// The number of topic filters, at least 1 [MQTT-3.8.3-2] [MQTT-3.10.3-2] and at most ``MQTTPacket/maxFilters``.
    package let count: Int
    private let version: MQTTVersion
    /// The filters that have not been parsed.
    private var rest: ByteBuffer

    /// - Parameter frame: a client's SUBSCRIBE or UNSUBSCRIBE.
    /// - Throws: the errors of ``MQTTPacket/init(fromClient:version:)``, except errors in a filter's text or options.
    ///   Such an error is thrown when the filter is parsed.
    package init(fromClient frame: MQTTFrame, version: MQTTVersion) throws(MQTTPacketError) {
        var body = frame.body
        let type: MQTTPacketType = frame.type == .unsubscribe ? .unsubscribe : .subscribe
        try self.init(of: type, from: &body, version: version)
        try MQTTPacket.check(propertyCount: properties.list.count, of: type)
    }

    /// Reads the packet identifier and the properties, and counts the filters. Consumes the whole body.
    init(of type: MQTTPacketType, from body: inout ByteBuffer, version: MQTTVersion) throws(MQTTPacketError) {
        packetID = try body.readMQTTPacketID()
        properties = version == .v5 ? try MQTTProperties(from: &body, in: .packet(type)) : []
        self.version = version
        rest = body
        let optionBytes = type == .subscribe ? 1 : 0
        var count = 0
        while let length: UInt16 = body.readInteger() {
            guard Int(length) + optionBytes <= body.readableBytes else {
                throw .malformed("a topic filter or its options are shorter than the length says")
            }
            body.moveReaderIndex(forwardBy: Int(length) + optionBytes)
            count += 1
            try MQTTPacket.check(filterCount: count, of: type)
        }
        guard body.readableBytes == 0 else { throw .malformed("a topic filter has no length") }
        guard count > 0 else {
            throw .protocolError("a \(type) has no topic filter [MQTT-3.8.3-2] [MQTT-3.10.3-2]")
        }
        self.count = count
    }

    /// Parses the next filter of a SUBSCRIBE, with its options. The packet has ``count`` filters.
    ///
    /// - Throws: if the filter is malformed. In that case the whole packet is malformed, because the reason codes of
    ///   SUBACK are only for well-formed filters.
    package mutating func nextSubscription() throws(MQTTPacketError) -> MQTTSubscription {
        try MQTTSubscription(from: &rest, version: version)
    }

    /// Parses the next filter of an UNSUBSCRIBE. The packet has ``count`` filters.
    ///
    /// - Throws: if the filter is malformed. In that case the whole packet is malformed.
    package mutating func nextFilter() throws(MQTTPacketError) -> String { try rest.readMQTTFilter() }
}
