// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The positions of the parts of a received PUBLISH, found without creating strings or slices.
///
/// The initializer checks the lengths, the flags and the packet identifier. It checks neither the topic's text nor the
/// properties; code that reads them must check them. ``MQTTPublish`` checks everything.
package struct MQTTPublishHead: Sendable {
    package let flags: UInt8
    /// The topic's index in the frame's buffer. ``payloadStart`` is an index in the same buffer.
    package let topicStart: Int
    package let topicBytes: Int
    /// The packet identifier; 0 with QoS 0.
    package let packetID: UInt16
    /// The size of the properties without their length prefix, in bytes; 0 in 3.1.1.
    package let propertyBytes: Int
    /// The size of the properties' length prefix, in bytes; 0 in 3.1.1.
    package let lengthBytes: Int
    package let payloadStart: Int

    package var qos: MQTTQoS { MQTTQoS(rawValue: flags >> 1 & 0b11) ?? .atMostOnce }
    package var isRetained: Bool { flags & 0b0001 != 0 }

    /// - Throws: the errors of ``MQTTPacket/init(_:version:)``.
    package init(_ frame: MQTTPublishFrame, version: MQTTVersion) throws(MQTTPacketError) {
        let bytes = frame.bytes
        let start = bytes.readerIndex
        let end = bytes.writerIndex
        var index = start + frame.headerBytes
        guard let header = bytes.getInteger(at: start, as: UInt8.self),
            let topicBytes = bytes.getInteger(at: index, as: UInt16.self)
        else { throw .malformed("the topic name is missing") }
        flags = header & 0x0F
        guard flags & 0b0110 != 0b0110 else { throw .malformed("the QoS is 3 [MQTT-3.3.1-4]") }
        guard flags & 0b1110 != 0b1000 else {
            throw .malformed("a QoS 0 message is marked as duplicate [MQTT-3.3.1-2]")
        }
        topicStart = index + 2
        self.topicBytes = Int(topicBytes)
        index = topicStart + Int(topicBytes)
        if flags & 0b0110 != 0 {
            guard let id = bytes.getInteger(at: index, as: UInt16.self) else {
                throw .malformed("the packet identifier is missing")
            }
            guard id != 0 else { throw .protocolError("a packet identifier is 0 [MQTT-2.2.1-3]") }
            packetID = id
            index += 2
        } else {
            packetID = 0
        }
        if version == .v5 {
            guard case .value(let length, let prefix) = MQTTVariableByteInteger.peek(bytes, at: index) else {
                throw .malformed("the property length is not a variable byte integer (1.5.5)")
            }
            propertyBytes = length
            lengthBytes = prefix
            index += prefix + length
        } else {
            propertyBytes = 0
            lengthBytes = 0
        }
        guard index <= end else { throw .malformed("the packet is shorter than its lengths say") }
        payloadStart = index
    }
}
