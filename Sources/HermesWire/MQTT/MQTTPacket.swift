// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// A control packet of MQTT 3.1.1 or 5.0.
package enum MQTTPacket: Hashable, Sendable {
    case connect(MQTTConnect)
    case connack(MQTTConnack)
    case publish(MQTTPublish)
    case puback(MQTTAcknowledgement)
    case pubrec(MQTTAcknowledgement)
    case pubrel(MQTTAcknowledgement)
    case pubcomp(MQTTAcknowledgement)
    case subscribe(MQTTSubscribe)
    case suback(MQTTSuback)
    case unsubscribe(MQTTUnsubscribe)
    case unsuback(MQTTUnsuback)
    case pingreq
    case pingresp
    case disconnect(MQTTDisconnect)
    case auth(MQTTAuth)

    /// Parses a frame.
    ///
    /// - Parameters:
    ///   - frame: the frame from ``MQTTFrameDecoder``.
    ///   - version: the version in the connection's CONNECT; not used for CONNECT itself.
    /// - Throws: ``MQTTPacketError``; the connection cannot continue.
    package init(_ frame: MQTTFrame, version: MQTTVersion) throws(MQTTPacketError) {
        var body = frame.body
        guard let type = frame.type, type != .auth || version == .v5 else {
            throw .malformed("there is no control packet type \(frame.header >> 4) (2.1.2)")
        }
        switch type {
        case .connect: self = .connect(try MQTTConnect(from: &body))
        case .connack: self = .connack(try MQTTConnack(from: &body, version: version))
        case .publish: self = .publish(try MQTTPublish(from: &body, flags: frame.flags, version: version))
        case .puback: self = .puback(try MQTTAcknowledgement(from: &body, type: type, version: version))
        case .pubrec: self = .pubrec(try MQTTAcknowledgement(from: &body, type: type, version: version))
        case .pubrel: self = .pubrel(try MQTTAcknowledgement(from: &body, type: type, version: version))
        case .pubcomp: self = .pubcomp(try MQTTAcknowledgement(from: &body, type: type, version: version))
        case .subscribe: self = .subscribe(try MQTTSubscribe(from: &body, version: version))
        case .suback: self = .suback(try MQTTSuback(from: &body, version: version))
        case .unsubscribe: self = .unsubscribe(try MQTTUnsubscribe(from: &body, version: version))
        case .unsuback: self = .unsuback(try MQTTUnsuback(from: &body, version: version))
        case .pingreq: self = .pingreq
        case .pingresp: self = .pingresp
        case .disconnect: self = .disconnect(try MQTTDisconnect(from: &body, version: version))
        case .auth: self = .auth(try MQTTAuth(from: &body))
        }
        guard body.readableBytes == 0 else {
            throw .malformed("a \(type) is followed by \(body.readableBytes) bytes that do not belong to it")
        }
    }

    /// The largest number of properties in a client's packet. The standard sets no limit. But a user property, which
    /// may be as short as five bytes on the wire, takes several times as many bytes in memory.
    package static let maxClientProperties = 1_024

    /// The size of an empty user property in bytes. It is the smallest property that may repeat in a client's packet.
    package static let minPropertyBytes = 5

    /// The largest number of topic filters in a SUBSCRIBE or UNSUBSCRIBE. The standard sets no limit, but a filter
    /// takes far more bytes in memory than on the wire.
    package static let maxFilters = 16_384

    static func check(filterCount count: Int, of type: MQTTPacketType) throws(MQTTPacketError) {
        guard count <= maxFilters else {
            throw MQTTPacketError(.quotaExceeded, "a \(type) has more than \(maxFilters) topic filters")
        }
    }

    static func check(propertyCount count: Int, of type: MQTTPacketType) throws(MQTTPacketError) {
        guard count <= maxClientProperties else {
            throw MQTTPacketError(.quotaExceeded, "a \(type) has more than \(maxClientProperties) properties")
        }
    }

    /// Parses a client's frame.
    ///
    /// - Throws: the errors of
    ///   ``init(_:version:)``, and an error if the packet has more properties than ``maxClientProperties``.
    package init(fromClient frame: MQTTFrame, version: MQTTVersion) throws(MQTTPacketError) {
        try self.init(frame, version: version)
        try Self.check(propertyCount: propertyCount, of: type)
    }

    /// The number of properties, including those of a will.
    package var propertyCount: Int {
        switch self {
        case .connect(let packet): packet.properties.list.count + (packet.will?.properties.list.count ?? 0)
        case .connack(let packet): packet.properties.list.count
        case .publish(let packet): packet.properties.list.count
        case .puback(let packet), .pubrec(let packet), .pubrel(let packet), .pubcomp(let packet):
            packet.properties.list.count
        case .subscribe(let packet): packet.properties.list.count
        case .suback(let packet): packet.properties.list.count
        case .unsubscribe(let packet): packet.properties.list.count
        case .unsuback(let packet): packet.properties.list.count
        case .pingreq, .pingresp: 0
        case .disconnect(let packet): packet.properties.list.count
        case .auth(let packet): packet.properties.list.count
        }
    }

    package var type: MQTTPacketType {
        switch self {
        case .connect: .connect
        case .connack: .connack
        case .publish: .publish
        case .puback: .puback
        case .pubrec: .pubrec
        case .pubrel: .pubrel
        case .pubcomp: .pubcomp
        case .subscribe: .subscribe
        case .suback: .suback
        case .unsubscribe: .unsubscribe
        case .unsuback: .unsuback
        case .pingreq: .pingreq
        case .pingresp: .pingresp
        case .disconnect: .disconnect
        case .auth: .auth
        }
    }

    /// Encodes the packet as a frame.
    ///
    /// - Throws: WireError `.notEncodable` if a value has no representation; `.frameTooLong` if the packet takes more
    ///   than 256 MiB.
    package func frame(version: MQTTVersion) throws(WireError) -> MQTTFrame {
        var body = ByteBuffer()
        var flags = type.requiredFlags ?? 0
        switch self {
        case .connect(let packet): try packet.write(into: &body)
        case .connack(let packet): try packet.write(into: &body, version: version)
        case .publish(let packet):
            flags = packet.flags
            try packet.write(into: &body, version: version)
        case .puback(let packet), .pubrec(let packet), .pubrel(let packet), .pubcomp(let packet):
            try packet.write(into: &body, version: version)
        case .subscribe(let packet): try packet.write(into: &body, version: version)
        case .suback(let packet): try packet.write(into: &body, version: version)
        case .unsubscribe(let packet): try packet.write(into: &body, version: version)
        case .unsuback(let packet): try packet.write(into: &body, version: version)
        case .pingreq, .pingresp: break
        case .disconnect(let packet): try packet.write(into: &body, version: version)
        case .auth(let packet): try packet.write(into: &body)
        }
        return MQTTFrame(header: type.rawValue << 4 | flags, body: body)
    }

    /// Appends the packet.
    ///
    /// - Throws: the errors of ``frame(version:)``. If the function throws, it writes nothing.
    package func write(into buffer: inout ByteBuffer, version: MQTTVersion) throws(WireError) {
        try frame(version: version).write(into: &buffer)
    }
}
