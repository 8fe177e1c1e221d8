// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@Suite("Protobuf's JSON from the network")
struct MessageJSONTests {
    /// One field of each shape that contains an enum: single, optional, in a message of a oneof, and in a list of
    /// messages.
    static let places: [(String, String)] = [
        (#"{"presence":{"appState":"#, "}}"),
        (#"{"device":{"setPushToken":{"token":"t","service":"#, "}}}"),
        (#"{"group":{"changeMembers":{"groupId":1,"changeRoles":[{"uid":1},{"uid":2,"role":"#, "}]}}}"),
        (#"{"kicked":{"reason":"#, "}}"),
        (#"{"event":{"contact":{"kind":"#, "}}}"),
    ]

    @Test(arguments: places)
    func `an enum number of more than 32 bits is refused`(_ before: String, _ after: String) {
        for number: Int64 in [
            1 << 31, -(1 << 31) - 1, 1 << 32, (1 << 32) + 1, 9_223_372_032_559_808_512, .max, .min,
        ] {
            let error = #expect(throws: WireError.self) {
                try Hermes_V1_Packet(wireJSON: ByteBuffer(string: "\(before)\(number)\(after)"))
            }
            #expect(error?.code == .badBody)
        }
    }

    @Test(arguments: places)
    func `numbers that are not known yet are kept, and can be written`(_ before: String, _ after: String) throws {
        for number in [0, 1, 99, Int(Int32.max), Int(Int32.min), -1] {
            let packet = try Hermes_V1_Packet(wireJSON: ByteBuffer(string: "\(before)\(number)\(after)"))
            #expect(packet.hasEncodableEnums)
            let written = try packet.wireBuffer()
            #expect(try Hermes_V1_Packet(wire: written) == packet)
            #expect(try Hermes_V1_Packet(wireJSON: ByteBuffer(string: packet.jsonString())) == packet)
        }
    }

    @Test
    func `bytes cannot hold such a number`() throws {
        // The bytes are only the presence request with app_state = 2^40 + 1, because a whole Packet would be long.
        var bytes = ByteBuffer(bytes: [0x18])
        var rest: UInt64 = 1 << 40 + 1
        while rest >= 0x80 {
            bytes.writeInteger(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.writeInteger(UInt8(rest))
        let request = try Hermes_V1_PresenceRequest(wire: bytes)
        #expect(request.hasEncodableEnums)
    }

    @Test
    func `what is put together in memory can be looked at, too`() {
        var message = IMPB_C2C_msg()
        message.type = .UNRECOGNIZED(1 << 40)
        #expect(!message.hasEncodableEnums)
        var kicked = Hermes_V1_Packet()
        kicked.kicked.reason = .UNRECOGNIZED(Int.min)
        #expect(!kicked.hasEncodableEnums)
        message.type = .UNRECOGNIZED(Int(Int32.min))
        #expect(message.hasEncodableEnums)
    }

    @Test
    func `nesting without end, other messages and other texts are refused`() {
        let data = String(repeating: #"{"a":"#, count: 100) + "1" + String(repeating: "}", count: 100)
        let deep = #"{"event":{"push":{"title":"t","data":"# + data + "}}}"
        for text in ["", "{", "[]", #"{"id":{}}"#, #"{"ping":{},"pong":{}}"#, #"{"id":"1"} "x""#, deep] {
            #expect(throws: WireError.self) { try Hermes_V1_Packet(wireJSON: ByteBuffer(string: text)) }
        }
    }

    @Test
    func `a number that is too long is refused as such`() throws {
        let text = #"{"id":1,"publish":{"qos":\#(String(repeating: "1", count: 300)).5}}"#
        let error = #expect(throws: WireError.self) { try Hermes_V1_Packet(wireJSON: ByteBuffer(string: text)) }
        #expect(error?.code == .badBody)
        #expect(error?.description.contains("a number has too many digits") == true)
    }

    private static let deep =
        #"{"unknown":"# + String(repeating: #"{"a":"#, count: 40) + "1" + String(repeating: "}", count: 41)

    /// Texts that are not a packet, and the words of the reason.
    static let badTexts: [(String, String)] = [
        (#"[]"#, "a value has the wrong type"),
        (#"{"typing":5}"#, "a value has the wrong type"),
        (#"{"typing":[]}"#, "a value has the wrong type"),
        (#"{"id":1 "ping":{}}"#, "punctuation is missing"),
        (#"{"id",1}"#, "punctuation is missing"),
        (#"{"send":{"to":{"uid":-1}}}"#, "a number is malformed, out of range, or not an integer"),
        (#"{"send":{"to":{"uid":1.5}}}"#, "a number is malformed, out of range, or not an integer"),
        (#"{"send":{"to":{"uid":4294967296}}}"#, "a number is malformed, out of range, or not an integer"),
        (#"{"id":"one"}"#, "a number is malformed, out of range, or not an integer"),
        (#"{"id":{}}"#, "a number is malformed, out of range, or not an integer"),
        (#"{"id":07}"#, "a number begins with a zero"),
        (#"{"publish":{"qos":\#(String(repeating: "1", count: 300)).5}}"#, "a number has too many digits"),
        (#"{"send":{"content":{"text":7}}}"#, "a text, or the base64 of bytes, is malformed or not in quotes"),
        (#"{"send":{"content":{"text":"\ud800"}}}"#, "a text, or the base64 of bytes, is malformed"),
        (#"{"send":{"content":{"custom":{"data":"AA!A"}}}}"#, "a text, or the base64 of bytes, is malformed"),
        (#"{"send":{"content":{"custom":{"data":"!!!!"}}}}"#, "bytes are not in base64"),
        (#"{"typing":{"stopped":1}}"#, "a value is neither true nor false"),
        (#"{"send":{"content":{"attributes":{"a":null}}}}"#, "a map has a null value"),
        (#"{"send":{"content":{"attributes":{"a":"1","a":"2"}}}}"#, "two keys that are equal"),
        (#"{"send":{"content":{"attributes":{"é":"1","e\u0301":"2"}}}}"#, "differ only in Unicode normalization"),
        (#"{"send":{"content":{"attributes":{1:"a"}}}}"#, "a key of a map is not in quotes"),
        ("null", "null stands where a value is required"),
        (#"{"statistics":{"networks":[null]}}"#, "null stands where a value is required"),
        (#"{"ping":{},"send":{}}"#, "two fields of which only one may be set"),
        ("", "it is incomplete"),
        ("{", "it is incomplete"),
        (#"{"send":{"clientId":"#, "it is incomplete"),
        (#"{"unknown":nothing}"#, "a bare word other than true, false and null"),
        (#"{"id":1} x"#, "something follows its end"),
        (deep, "objects are nested more than 32 deep"),
    ]

    @Test(arguments: badTexts)
    func `the reason for a refusal is told in plain words`(_ text: String, _ reason: String) {
        let error = #expect(throws: WireError.self) { try Hermes_V1_Packet(wireJSON: ByteBuffer(string: text)) }
        #expect(error?.code == .badBody)
        let prefix = "the body is not the JSON of a hermes.v1.Packet: "
        #expect(error?.message.hasPrefix(prefix) == true)
        #expect(error?.message.contains(reason) == true)
    }

    @Test
    func `fields and names of a newer version are ignored`() throws {
        let text = #"{"id":"9007199254740993","from":{"a":[{"b":"}]"},[[]],null,1e9]},"presence":{"appState":"NEW"}}"#
        let packet = try Hermes_V1_Packet(wireJSON: ByteBuffer(string: text))
        #expect(packet.id == 9_007_199_254_740_993)
        #expect(packet.presence == Hermes_V1_PresenceRequest())
    }

    @Test
    func `what is skipped nests no deeper than what is read`() throws {
        func text(_ depth: Int, _ open: String, _ close: String) -> ByteBuffer {
            let nested = String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
            return ByteBuffer(string: #"{"new":\#(nested),"id":7}"#)
        }
        #expect(try Hermes_V1_Packet(wireJSON: text(31, #"{"a":"#, "}")).id == 7)
        // Lists are skipped without recursion.
        #expect(try Hermes_V1_Packet(wireJSON: text(500_000, "[", "]"), maxParts: nil).id == 7)
        for depth in [32, 500_000] {
            for (open, close) in [(#"{"a":"#, "}"), (#"{"\"":"#, "}"), (#"{"a":["#, "]}")] {
                let error = #expect(throws: WireError.self) {
                    try Hermes_V1_Packet(wireJSON: text(depth, open, close), maxParts: nil)
                }
                #expect(error?.code == .badBody)
            }
        }
    }

    @Test
    func `bytes that are not UTF-8 are refused, also where the parser would skip them`() {
        for bytes: [UInt8] in [[0xFF], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82]] {
            for field in ["clientId", "unknown"] {
                var text = ByteBuffer(string: #"{"send":{""# + field + #"":""#)
                text.writeBytes(bytes)
                text.writeString(#""}}"#)
                let error = #expect(throws: WireError.self) { try Hermes_V1_Packet(wireJSON: text) }
                #expect(error?.code == .badText)
            }
        }
    }
}
