// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore

/// A PUBLISH packet for one subscriber.
struct MQTTPublishPacket {
    /// The packet; if ``payload`` is not nil, only the part before the payload.
    var bytes = ByteBuffer()
    /// A long payload that follows ``bytes``, and that subscribers share.
    var payload: ByteBuffer?

    var readableBytes: Int { bytes.readableBytes + (payload?.readableBytes ?? 0) }
}

/// Writes publications as PUBLISH packets.
struct MQTTPublishWriter {
    let version: MQTTVersion
    let qos: QoS
    var packetID: UInt16 = 0
    var isRetained = false
    var isDuplicate = false
    /// Subscription identifiers; version 5.0 only.
    var identifiers: [UInt32] = []
    /// The alias that replaces the topic, or that is being set.
    var alias: UInt16?
    /// Whether the client knows the alias, so that the topic is left out.
    var omitsTopic = false
    /// The present time, for the message's remaining expiry.
    var now: Timestamp

    /// Encodes the form of a packet that all subscribers of one MQTT version share.
    static func shared(
        _ publication: Publication,
        version: MQTTVersion,
        acknowledged: Bool,
        now: Timestamp
    ) -> ByteBuffer {
        var bytes = ByteBuffer()
        // The QoS and the identifier are set for each subscriber.
        let writer = MQTTPublishWriter(version: version, qos: acknowledged ? .atLeastOnce : .atMostOnce, now: now)
        writer.write(publication, into: &bytes)
        return bytes
    }

    /// Appends the packet.
    func write(_ publication: Publication, into buffer: inout ByteBuffer) {
        writeHead(of: publication, reserving: publication.payload.readableBytes, into: &buffer)
        buffer.writeImmutableBuffer(publication.payload)
    }

    /// Returns the packet for one subscriber. A long payload is shared and not copied.
    func packet(_ publication: Publication) -> MQTTPublishPacket {
        var packet = MQTTPublishPacket()
        let payload = publication.payload
        if payload.readableBytes > Connection.shareAbove, payload.isWorthKeeping {
            writeHead(of: publication, reserving: 0, into: &packet.bytes)
            packet.payload = payload
        } else {
            write(publication, into: &packet.bytes)
        }
        return packet
    }

    /// Whether a publication's packet has no properties, is so short that connections do not share its payload, and is
    /// certainly not longer than `maxBytes`.
    static func isPlain(_ publication: Publication, maxBytes: Int) -> Bool {
        publication.details == nil && publication.kind == Publication.plainKind
            && isShort(publication.topic, publication.payload, maxBytes: maxBytes)
    }

    static func isPlain(_ publication: StoredPublication, maxBytes: Int) -> Bool {
        publication.details == nil && isShort(publication.topic, publication.payload, maxBytes: maxBytes)
    }

    private static func isShort(_ topic: TopicName, _ payload: ByteBuffer, maxBytes: Int) -> Bool {
        maxPlainHead + topic.rawValue.utf8.count + payload.readableBytes <= min(maxBytes, Connection.shareAbove)
    }

    /// The largest number of bytes that a packet without properties has in addition to topic and payload: the fixed
    /// header, the topic's length, the identifier and the properties' length.
    private static let maxPlainHead = 5 + 2 + 2 + 1

    /// Appends a packet without properties.
    func writePlain(_ topic: TopicName, _ payload: ByteBuffer, into buffer: inout ByteBuffer) {
        writeHead(topic, payload, nil, reserving: payload.readableBytes, into: &buffer)
        buffer.writeImmutableBuffer(payload)
    }

    /// Appends the packet up to its payload. This does not fail: topics have at most 65,535 bytes, and a publication
    /// that arrived in one packet also fits into one packet.
    ///
    /// - Parameter payloadBytes: the number of bytes to reserve for the payload.
    private func writeHead(of publication: Publication, reserving payloadBytes: Int, into buffer: inout ByteBuffer) {
        let roomType = MQTTTranslation.roomType(of: publication)
        let properties = version == .v5 ? properties(publication.details, roomType) : nil
        writeHead(publication.topic, publication.payload, properties, reserving: payloadBytes, into: &buffer)
    }

    private func writeHead(
        _ topic: TopicName,
        _ payload: ByteBuffer,
        _ properties: ByteBuffer?,
        reserving payloadBytes: Int,
        into buffer: inout ByteBuffer
    ) {
        let topicBytes = omitsTopic ? 0 : topic.rawValue.utf8.count
        var length = 2 + topicBytes + payload.readableBytes
        if qos != .atMostOnce { length += 2 }
        if version == .v5 {
            let propertyBytes = properties?.readableBytes ?? 0
            length += MQTTVariableByteInteger.encodedBytes(propertyBytes) + propertyBytes
        }
        buffer.reserveCapacity(minimumWritableBytes: 5 + length - payload.readableBytes + payloadBytes)
        let flags = (isDuplicate ? 0b1000 : 0) | qos.rawValue << 1 | (isRetained ? 1 : 0)
        buffer.writeInteger(MQTTPacketType.publish.rawValue << 4 | flags)
        MQTTVariableByteInteger.write(min(length, MQTTVariableByteInteger.max), into: &buffer)
        buffer.writeInteger(UInt16(clamping: topicBytes))
        if !omitsTopic { buffer.writeString(topic.rawValue) }
        if qos != .atMostOnce { buffer.writeInteger(packetID) }
        if version == .v5 {
            MQTTVariableByteInteger.write(properties?.readableBytes ?? 0, into: &buffer)
            if let properties { buffer.writeImmutableBuffer(properties) }
        }
    }

    private func properties(_ details: PublicationDetails?, _ roomType: MQTTProperty?) -> ByteBuffer? {
        guard details != nil || roomType != nil || !identifiers.isEmpty || alias != nil else { return nil }
        var list: [MQTTProperty] = details.map { MQTTTranslation.properties(of: $0, now: now) } ?? []
        if let roomType { list.append(roomType) }
        for identifier in identifiers { list.append(.subscriptionIdentifier(Int(identifier))) }
        if let alias { list.append(.topicAlias(alias)) }
        var bytes = ByteBuffer()
        for property in list {
            // Received properties can always be sent, because every length was checked when they were read.
            do throws(WireError) { try property.write(into: &bytes) } catch { assertionFailure("\(error)") }
        }
        return bytes
    }
}
