// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

/// Packets that the standard forbids. Each is named after the statement that forbids it.
@Suite struct MQTTMalformedTests {
    struct Bad: Sendable, CustomTestStringConvertible {
        let name: String
        /// The whole packet, in hexadecimal digits.
        let hex: String
        let version: MQTTVersion
        let reason: MQTTReasonCode

        init(_ name: String, _ hex: String, _ version: MQTTVersion, _ reason: MQTTReasonCode) {
            self.name = name
            self.hex = hex
            self.version = version
            self.reason = reason
        }

        var testDescription: String { name }
    }

    static let bad: [Bad] = [
        Bad("MQTT-3.1.2-1 protocol name", "100c00044d5155540402003c0000", .v311, .malformedPacket),
        Bad("MQTT-3.1.2-2 version 3.1", "100e00064d51497364700302003c0000", .v311, .unsupportedProtocolVersion),
        Bad("MQTT-3.1.2-2 level 6", "100c00044d5154540602003c0000", .v311, .unsupportedProtocolVersion),
        Bad("MQTT-3.1.2-3 reserved flag", "100c00044d5154540403003c0000", .v311, .malformedPacket),
        Bad("MQTT-3.1.2-11 will QoS without will", "100c00044d515454040a003c0000", .v311, .malformedPacket),
        Bad("MQTT-3.1.2-12 will QoS 3", "101200044d515454041e003c0000000174000178", .v311, .malformedPacket),
        Bad("MQTT-3.1.2-13 will retain without will", "100c00044d5154540422003c0000", .v311, .malformedPacket),
        Bad("MQTT-3.1.2-22 password without user name", "100f00044d5154540442003c0000000178", .v311, .malformedPacket),
        Bad("MQTT-1.5.4-1 client id not UTF-8", "100e00044d5154540402003c0002c328", .v311, .malformedPacket),
        Bad("MQTT-1.5.4-1 surrogate", "100f00044d5154540402003c0003eda080", .v311, .malformedPacket),
        Bad("MQTT-1.5.4-2 null character", "100d00044d5154540402003c000100", .v311, .malformedPacket),
        Bad("client id longer than the packet", "100c00044d5154540402003c0009", .v311, .malformedPacket),
        Bad("bytes behind CONNECT", "100d00044d5154540402003c000000", .v311, .malformedPacket),
        Bad("MQTT-3.3.1-2 duplicate QoS 0", "3803000174", .v311, .malformedPacket),
        Bad("MQTT-3.3.1-4 QoS 3", "36050001740001", .v311, .malformedPacket),
        Bad("MQTT-3.3.2-2 wildcard in a name", "300400022f23", .v311, .topicNameInvalid),
        Bad("MQTT-4.7.3-1 empty name", "30020000", .v311, .protocolError),
        Bad("MQTT-2.2.1-3 packet identifier 0", "32050001740000", .v311, .protocolError),
        Bad("MQTT-3.3.2-8 topic alias 0", "3008000174032300 0078".replacing(" ", with: ""), .v5, .topicAliasInvalid),
        Bad("empty name without alias", "3003000000", .v5, .protocolError),
        Bad("MQTT-3.8.3-2 no filter", "82020001", .v311, .protocolError),
        Bad("MQTT-3.8.3-5 reserved option", "8206000100017404", .v311, .malformedPacket),
        Bad("MQTT-3.8.3-4 QoS 3", "8206000100017403", .v311, .malformedPacket),
        Bad("retain handling 3", "820700010000017430", .v5, .protocolError),
        Bad("no-local on a shared subscription", "8210000100000a2473686172652f672f7404", .v5, .protocolError),
        Bad("subscription identifier 0", "820900010 20b0000017400".replacing(" ", with: ""), .v5, .protocolError),
        Bad("MQTT-3.10.3-2 no filter", "a2020001", .v311, .protocolError),
        Bad("PUBACK with an unknown reason", "4003000155", .v5, .protocolError),
        Bad("property twice", "e00c000a11000000011100000001", .v5, .protocolError),
        Bad("property that is not the packet's", "e005000322000a", .v5, .protocolError),
        Bad("unknown property", "e00400020500", .v5, .malformedPacket),
        Bad("properties longer than the packet", "e0020005", .v5, .malformedPacket),
        Bad("AUTH in 3.1.1", "f000", .v311, .malformedPacket),
        Bad("PINGREQ with a body", "c00100", .v311, .malformedPacket),
    ]

    @Test func `a packet has only so many filters`() throws {
        for (count, isTaken) in [(MQTTPacket.maxFilters, true), (MQTTPacket.maxFilters + 1, false)] {
            let filters = Array(repeating: "a", count: count)
            let subscribe = MQTTSubscribe(packetID: 1, subscriptions: filters.map { MQTTSubscription(filter: $0) })
            let packets = [
                MQTTPacket.subscribe(subscribe), .unsubscribe(MQTTUnsubscribe(packetID: 1, filters: filters)),
            ]
            for packet in packets {
                let frame = try packet.frame(version: .v5)
                do throws(MQTTPacketError) {
                    _ = try MQTTPacket(fromClient: frame, version: .v5)
                    #expect(isTaken, "\(packet.type)")
                } catch {
                    #expect(!isTaken && error.reason == .quotaExceeded, "\(packet.type)")
                }
            }
        }
    }

    @Test func `a client's packet has only so many properties`() throws {
        let most = MQTTPacket.maxClientProperties
        func properties(_ count: Int) -> MQTTProperties {
            MQTTProperties(Array(repeating: .userProperty("", ""), count: count))
        }
        func check(_ packet: MQTTPacket, isTaken: Bool) throws {
            let frame = try packet.frame(version: .v5)
            // A subscriber accepts more properties, because a broker adds its own.
            if packet.type == .publish { #expect(try MQTTPacket(frame, version: .v5) == packet) }
            do throws(MQTTPacketError) {
                _ = try MQTTPacket(fromClient: frame, version: .v5)
                #expect(isTaken, "\(packet.type)")
            } catch {
                #expect(!isTaken, "\(packet.type)")
                #expect(error.reason == .quotaExceeded)
            }
        }
        for (count, isTaken) in [(most, true), (most + 1, false)] {
            let list = properties(count)
            try check(.publish(MQTTPublish(topic: "a", payload: ByteBuffer(), properties: list)), isTaken: isTaken)
            try check(.puback(MQTTAcknowledgement(packetID: 1, properties: list)), isTaken: isTaken)
            try check(.disconnect(MQTTDisconnect(properties: list)), isTaken: isTaken)
            try check(.connect(MQTTConnect(version: .v5, clientID: "a", properties: list)), isTaken: isTaken)
        }
        // The properties of the will also count.
        let will = MQTTWill(topic: "a", payload: ByteBuffer(), properties: properties(most))
        let connect = MQTTConnect(version: .v5, clientID: "a", will: will, properties: properties(1))
        try check(.connect(connect), isTaken: false)
    }

    @Test(arguments: bad)
    func `is refused with the reason that tells why`(_ bad: Bad) throws {
        var buffer = ByteBuffer(bytes: [UInt8](hex: bad.hex))
        var decoder = MQTTFrameDecoder()
        let frame = try #require(try decoder.next(from: &buffer))
        #expect(buffer.readableBytes == 0)
        let error = #expect(throws: MQTTPacketError.self) { try MQTTPacket(frame, version: bad.version) }
        #expect(error?.reason == bad.reason)
    }

    @Test(arguments: [
        ("0000", WireError.Code.unknownType), ("8000", .badMagic), ("6000", .badMagic), ("1100", .badMagic),
        ("30ffffffff01", .badLength), ("30ffffff7f", .frameTooLong),
    ])
    func `a fixed header that cannot be closes the connection`(hex: String, code: WireError.Code) {
        expectError(code, for: [UInt8](hex: hex), behind: [0xC0, 0], from: MQTTFrameDecoder())
    }

    @Test(arguments: [
        ("a/b", true), ("+/b", true), ("a/+/#", true), ("#", true), ("/", true), ("", false), ("a/#/b", false),
        ("a+", false), ("+a", false), ("a#", false), ("#a", false), ("a/b#", false), ("$share/g/a/+", true),
        ("$share//a", false), ("$share/g", false), ("$share/g/", false), ("$share/+/a", false), ("$SYS/#", true),
    ])
    func `filters are checked level by level, and a packet with another one is malformed`(
        filter: String,
        isValid: Bool
    ) throws {
        #expect(MQTTTopic.isValidFilter(filter) == isValid)
        for version in MQTTVersion.allCases {
            let packets: [MQTTPacket] = [
                .subscribe(MQTTSubscribe(packetID: 1, subscriptions: [MQTTSubscription(filter: filter)])),
                .unsubscribe(MQTTUnsubscribe(packetID: 1, filters: [filter])),
            ]
            for packet in packets {
                let frame = try packet.frame(version: version)
                if isValid {
                    #expect(try MQTTPacket(frame, version: version) == packet)
                } else {
                    let error = #expect(throws: MQTTPacketError.self) { try MQTTPacket(frame, version: version) }
                    #expect(error?.reason == .malformedPacket)
                }
            }
        }
    }
}
