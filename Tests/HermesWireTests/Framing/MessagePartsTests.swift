// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesWire

struct MessagePartsTests {
    /// Encodes a field that contains bytes.
    private func field(_ number: UInt64, _ bytes: [UInt8]) -> [UInt8] {
        func varint(_ value: UInt64) -> [UInt8] {
            value < 0x80 ? [UInt8(value)] : [UInt8(value & 0x7F) | 0x80] + varint(value >> 7)
        }
        return varint(number << 3 | 2) + varint(UInt64(bytes.count)) + bytes
    }

    /// `statistics.networks` or `send.content.attributes` with empty elements. Each is a part of two bytes, the
    /// shortest possible part.
    private func dense(_ name: String, _ count: Int) -> ByteBuffer {
        func parts(_ number: UInt64) -> [UInt8] { Array(repeatElement(field(number, []), count: count).joined()) }
        let isNetworks = name == "networks"
        return ByteBuffer(bytes: isNetworks ? field(24, parts(2)) : field(12, field(3, parts(15))))
    }

    @Test(arguments: ["networks", "attributes"]) func `each element is a part`(name: String) throws {
        let bytes = dense(name, 1_000)
        let outer = name == "networks" ? 1 : 2
        #expect(MessageParts.count(Hermes_V1_Packet.self, wire: bytes) == 1_000 + outer)
        let packet = try Hermes_V1_Packet(wire: bytes)
        #expect(
            name == "networks" ? packet.statistics.networks.count == 1_000 : packet.send.content.attributes.count == 1
        )
    }

    @Test(arguments: ["networks", "attributes"]) func `a message of many parts is refused before it is parsed`(
        name: String
    ) throws {
        let bytes = dense(name, 450_000)
        #expect(
            MessageParts.count(Hermes_V1_Packet.self, wire: bytes) == MessageParts.max + 1,
            "it is not counted further"
        )
        #expect(throws: WireError.self) { try Hermes_V1_Packet(wire: bytes) }
        #expect(throws: WireError.self) { try DelimitedFrame(body: bytes).packet() }
        #expect(try Hermes_V1_Packet(wire: bytes, maxParts: nil) != Hermes_V1_Packet())
    }

    @Test(arguments: [10, 1_000, 450_000]) func `parts are told before parsing and once`(count: Int) throws {
        let bytes = dense("networks", count)
        let expected = MessageParts.count(Hermes_V1_Packet.self, wire: bytes)
        var told: [Int] = []
        _ = try? DelimitedFrame(body: bytes).packet { told.append($0) }
        #expect(told == [expected])
        let json = ByteBuffer(string: "[" + String(repeating: "{},", count: count))
        told = []
        #expect(throws: WireError.self) { try DelimitedFrame(body: json, isJSON: true).packet { told.append($0) } }
        #expect(told == [MessageParts.count(json: json)])
    }

    @Test func `text and bytes are one part whatever they hold`() throws {
        let inner = dense("networks", 30_000)
        let packet = Hermes_V1_Packet.with {
            $0.send.content.custom = .with {
                $0.type = "app/protobuf"
                $0.data = Data(inner.readableBytesView)
            }
        }
        #expect(MessageParts.count(Hermes_V1_Packet.self, wire: try packet.wireBuffer()) < 10)
    }

    @Test func `names values and elements of JSON are parts`() throws {
        func networks(_ count: Int) -> ByteBuffer {
            let elements = Array(repeating: "{}", count: count).joined(separator: ",")
            return ByteBuffer(string: "{\"statistics\":{\"networks\":[\(elements)]}}")
        }
        let json = networks(100)
        // The parts are two objects, two colons, an array, a hundred objects and 99 commas.
        #expect(MessageParts.count(json: json) == 2 + 2 + 1 + 100 + 99)
        #expect(try Hermes_V1_Packet(wireJSON: json).statistics.networks.count == 100)
        #expect(throws: WireError.self) { try Hermes_V1_Packet(wireJSON: networks(5_000)) }
    }

    @Test func `punctuation in texts of JSON is no part`() throws {
        let text = String(repeating: "a,b:[{\\\",", count: 5_000)
        let json = ByteBuffer(string: "{\"send\":{\"content\":{\"text\":\"\(text)\"}}}")
        #expect(MessageParts.count(json: json) == 6)
        #expect(try Hermes_V1_Packet(wireJSON: json).send.content.text.count == 9 * 5_000 - 5_000)
    }

    @Test func `bytes that are no message are counted up to the error`() {
        #expect(MessageParts.count(Hermes_V1_Packet.self, wire: ByteBuffer(repeating: 0xFF, count: 1_000)) <= 1)
        #expect(MessageParts.count(Hermes_V1_Packet.self, wire: ByteBuffer(repeating: 0x0A, count: 1_000)) <= 1_000)
    }
}
