// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesWire

/// A text that takes quadratic time to compare does not become a string, in any format.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct StreamSafeTextTests {
    /// Combining marks in an order that makes a comparison sort them.
    private static func marks(_ count: Int) -> String {
        String(repeating: "\u{301}", count: count - count / 2) + String(repeating: "\u{323}", count: count / 2)
    }

    private static let most = StreamSafeText.maxRun

    @Test(arguments: [
        ("ASCII", String(repeating: "a", count: 10_000)),
        ("decorated text", String(repeating: "a" + marks(most), count: 100)),
        ("Vietnamese", String(repeating: "e\u{323}\u{302}", count: 1_000)),
        ("Chinese", String(repeating: "李", count: 1_000)), ("Korean", String(repeating: "각", count: 1_000)),
        ("emoji", String(repeating: "👩‍👩‍👧", count: 1_000)), ("Thai", String(repeating: "กำ", count: 1_000)), ("", ""),
    ])
    func `text that people write is safe`(_ name: String, _ text: String) {
        #expect(StreamSafeText.isSafe(text.utf8))
        #expect(StreamSafeText.isSafe(ByteBuffer(string: text)))
        #expect(StreamSafeText.isSafe(json: ByteBuffer(string: text)))
    }

    /// The arguments are marks of two, three and four bytes, a mark that decomposes into two marks, and characters that
    /// are not marks but decompose into two marks.
    @Test(arguments: ["\u{301}", "\u{20D0}", "\u{1D165}", "\u{344}", "\u{F73}", "\u{F75}", "\u{F81}", "\u{3099}"])
    func `a longer run is not, wherever it is`(_ mark: String) {
        for before in ["", "a", "1234567", "12345678", "李"] {
            for (count, isSafe) in [(Self.most, true), (Self.most + 1, false), (10_000, false)] {
                let text = before + String(repeating: mark, count: count)
                #expect(StreamSafeText.isSafe(text.utf8) == isSafe)
                #expect(StreamSafeText.isSafe((text + "a text behind it").utf8) == isSafe)
            }
        }
    }

    @Test(arguments: ["\\u0301", "\\u0F73", "\\uD834\\uDD65", "\\uD834\\udd65", "\u{301}"])
    func `a run of escapes is one, too`(_ mark: String) {
        for (count, isSafe) in [(Self.most / 2, true), (Self.most / 2 + 1, false)] {
            let text = "{\"a\":\"" + String(repeating: "\u{301}" + mark, count: count) + "\"}"
            #expect(StreamSafeText.isSafe(json: ByteBuffer(string: text)) == isSafe)
        }
        let apart = String(repeating: mark + "\\n", count: 1_000) + String(repeating: "\\\\u0301", count: 1_000)
        #expect(StreamSafeText.isSafe(json: ByteBuffer(string: apart)))
    }

    @Test func `bytes that are no text are safe`() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<100 {
            let bytes = (0..<10_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
            #expect(StreamSafeText.isSafe(bytes))
            _ = StreamSafeText.isSafe(json: ByteBuffer(bytes: bytes))
        }
        for cut in ["\u{301}", "\u{20D0}", "\u{1D165}"].map({ Array($0.utf8.dropLast()) }) {
            #expect(StreamSafeText.isSafe(cut))
            #expect(StreamSafeText.isSafe(Array(repeating: cut, count: 1_000).flatMap { $0 }))
        }
        for cut in ["\\", "\\u", "\\u030", "\\uD834", "\\uD834\\uDD6"] {
            #expect(StreamSafeText.isSafe(json: ByteBuffer(string: cut)))
        }
    }

    // MARK: What takes text from the network

    private static func packet(_ text: String) -> Hermes_V1_Packet {
        .with { $0.send.content.attributes = [text: "1"] }
    }

    @Test func `messages are refused before their keys are compared`() throws {
        let long = Self.marks(450_000)
        let safe = try Self.packet(Self.marks(Self.most)).wireBuffer()
        #expect(try Hermes_V1_Packet(wire: safe).send.content.attributes.count == 1)
        // Encoding a message with such a key would take as long as decoding it.
        var field = ByteBuffer()
        field.writeString(long)
        let length = long.utf8.count
        var bytes = ByteBuffer(bytes: [0x0A, 0x80 | UInt8(length & 0x7F), 0x80 | UInt8(length >> 7 & 0x7F)])
        bytes.writeInteger(UInt8(length >> 14))
        bytes.writeBuffer(&field)
        #expect(throws: WireError(.badText, "a text in the hermes.v1.Packet \(StreamSafeText.problem)")) {
            try Hermes_V1_Packet(wire: bytes)
        }
        let json = "{\"send\":{\"content\":{\"attributes\":{\"\(long)\":\"1\"}}}}"
        #expect(throws: WireError(.badText, "a text in the hermes.v1.Packet \(StreamSafeText.problem)")) {
            try Hermes_V1_Packet(wireJSON: ByteBuffer(string: json))
        }
    }

    @Test func `JSON and properties are refused`() throws {
        for mark in ["\u{301}", "\\u0301"] {
            let json = "{\"" + String(repeating: mark, count: 60_000) + "\":1}"
            #expect(throws: JSONParser.Failure.self) { try JSONParser.parse(Array(json.utf8)) }
            let safe = "{\"" + String(repeating: mark, count: Self.most) + "\":1}"
            #expect(throws: Never.self) { try JSONParser.parse(Array(safe.utf8)) }
        }
        #expect(throws: WireError.self) {
            try QSIOPProperties(parsing: ByteBuffer(string: Self.marks(30_000) + ":1\n"))
        }
        #expect(try QSIOPProperties(parsing: ByteBuffer(string: Self.marks(Self.most) + ":1\n")).pairs.count == 1)
    }

    /// MQTT packets with the text in each place that can contain a text.
    private static func packets(_ text: String) -> [MQTTPacket] {
        var connects = [
            MQTTConnect(version: .v5, clientID: text), MQTTConnect(version: .v5, clientID: "a"),
            MQTTConnect(version: .v5, clientID: "a"), MQTTConnect(version: .v5, clientID: "a"),
            MQTTConnect(version: .v5, clientID: "a"),
        ]
        connects[1].userName = text
        connects[2].password = ByteBuffer(string: text)
        connects[3].will = MQTTWill(topic: text, payload: ByteBuffer(), qos: .atMostOnce, retain: false, properties: [])
        connects[4].properties = [.authenticationMethod(text)]
        let publishes = [
            MQTTPublish(topic: text, payload: ByteBuffer(), qos: .atMostOnce),
            MQTTPublish(topic: "t", payload: ByteBuffer(), qos: .atMostOnce, properties: [.userProperty(text, "")]),
            MQTTPublish(topic: "t", payload: ByteBuffer(), qos: .atMostOnce, properties: [.userProperty("", text)]),
            MQTTPublish(topic: "t", payload: ByteBuffer(), qos: .atMostOnce, properties: [.contentType(text)]),
            MQTTPublish(topic: "t", payload: ByteBuffer(), qos: .atMostOnce, properties: [.responseTopic(text)]),
        ]
        let subscription = MQTTSubscription(filter: text, maximumQoS: .atMostOnce)
        return connects.map { .connect($0) } + publishes.map { .publish($0) } + [
            .subscribe(MQTTSubscribe(packetID: 1, subscriptions: [subscription])),
            .unsubscribe(MQTTUnsubscribe(packetID: 1, filters: [text])),
            .disconnect(MQTTDisconnect(reason: .success, properties: [.reasonString(text)])),
        ]
    }

    @Test func `each text of MQTT is refused`() throws {
        for (text, isSafe) in [(Self.marks(Self.most), true), (Self.marks(30_000), false)] {
            for packet in Self.packets(text) {
                let frame = try packet.frame(version: .v5)
                if isSafe {
                    #expect(throws: Never.self) { try MQTTPacket(fromClient: frame, version: .v5) }
                } else {
                    let error = #expect(throws: MQTTPacketError.self) {
                        try MQTTPacket(fromClient: frame, version: .v5)
                    }
                    #expect(error?.reason == .malformedPacket)
                }
            }
        }
    }
}
