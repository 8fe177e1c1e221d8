// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore

/// A PUBLISH, encoded except for its packet identifier.
struct MQTTOutgoing: Hashable, Sendable {
    let qos: MQTTQoS
    var frame: MQTTFrame
    /// The packet identifier's offset in the body; nil at QoS 0.
    private let packetIDIndex: Int?

    private static let duplicateFlag: UInt8 = 0b1000

    /// Encodes a message.
    ///
    /// - Throws: WireError `.notEncodable` or `.frameTooLong`.
    init(_ message: MQTTMessage, version: MQTTVersion) throws(WireError) {
        qos = message.qos.wire
        frame = try MQTTPacket.publish(message.wire(version)).frame(version: version)
        // The identifier follows the topic and its length.
        packetIDIndex = qos == .atMostOnce ? nil : frame.body.readerIndex + 2 + message.topic.utf8.count
    }

    /// Returns the frame with this packet identifier, marked as a duplicate or not.
    func numbered(_ packetID: UInt16, isDuplicate: Bool) -> MQTTFrame {
        guard let packetIDIndex else { return frame }
        var body = frame.body
        body.setInteger(packetID, at: packetIDIndex)
        return MQTTFrame(header: isDuplicate ? frame.header | Self.duplicateFlag : frame.header, body: body)
    }
}
