// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// The application's operations, which become publications.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct QSIOPApplicationTests {
    typealias Device = WireClient<QSIOPFrameDecoder>

    private func payload(_ text: String) throws -> String {
        String(buffer: QSIOPApplication.payload(of: try QSIOPProperties(parsing: ByteBuffer(string: text))))
    }

    private func frame(_ topic: String, _ payload: String) throws -> QSIOPFrame? {
        let publication = Publication(
            topic: try #require(TopicName(topic)),
            payload: ByteBuffer(string: payload),
            kind: Publication.plainKind
        )
        var bytes = QSIOPApplication.frame(of: publication)
        return try QSIOPFrameDecoder().decoded(&bytes)
    }

    @Test func `properties become a JSON object of texts`() throws {
        #expect(try payload("") == "{}")
        #expect(try payload("t:21.5\nunit:C\n") == #"{"t":"21.5","unit":"C"}"#)
        // The last value of a key counts, at the position of the first. A line without a colon has an empty value.
        #expect(try payload("a:1\nb:x:y\na:2\nflag") == #"{"a":"2","b":"x:y","flag":""}"#)
        #expect(
            try payload("k\"\\:\u{1}\t\u{e9}") == #"{"k\"\\":"\u0001\t\u00e9"}"#.replacing(#"\u00e9"#, with: "\u{e9}")
        )
        // Keys are compared as bytes. A letter followed by a combining accent differs from one accented letter.
        #expect(try payload("\u{e9}:1\ne\u{301}:2\n").utf8.count == #"{"é":"1","é":"2"}"#.utf8.count + 1)
    }

    @Test func `a JSON object becomes properties`() throws {
        let text = #"{"a":"1","n":1.50,"t":true,"none":null,"list":[1,{"x":null},"a\nb"],"a b=c":"d:e"}"#
        let frame = try #require(try frame("qsiop/7/pager/down/16", text))
        #expect(frame.operation.rawValue == 16)
        let expected = "a:1\nn:1.50\nt:true\nlist:[1,{\"x\":null},\"a\\nb\"]\na b=c:d:e\n"
        #expect(String(buffer: frame.body) == expected)
        #expect(try self.frame("qsiop/7/pager/down/65535", "{}")?.body.readableBytes == 0)
    }

    @Test(arguments: [
        ("qsiop/7/pager/down/15", "{}"), ("qsiop/7/pager/down/016", "{}"),
        ("qsiop/7/pager/down/65536", "{}"), ("qsiop/7/pager/down/x", "{}"), ("qsiop/7/pager/down/", "{}"),
        ("qsiop/7/pager/down/16", ""), ("qsiop/7/pager/down/16", "[]"), ("qsiop/7/pager/down/16", "7"),
        ("qsiop/7/pager/down/16", #"{"a":1"#), ("qsiop/7/pager/down/16", #"{"a":1,"a":2}"#),
        ("qsiop/7/pager/down/16", #"{"a":"# + String(repeating: "[", count: 60_000)),
        ("qsiop/7/pager/down/16", #"{"a":""# + String(repeating: "x", count: 65_535) + #""}"#),
        ("qsiop/7/pager/down/16", #"{"a":"1"}"# + String(repeating: " ", count: 131_072)),
    ])
    func `what is no operation is refused before it is published, and sent to nobody`(
        topic: String,
        payload: String
    ) throws {
        let name = try #require(TopicName(topic))
        #expect(throws: HermesError.self) { try QSIOPApplication.check(name, ByteBuffer(string: payload)) }
        #expect(try frame(topic, payload) == nil)
    }

    @Test(arguments: [
        #"{"a:b":"1"}"#, #"{"a:b":"1","a_b":"2"}"#, #"{"a\nb":"1"}"#, #"{"a\rb":"1"}"#, #"{"a\u0000b":"1"}"#,
        #"{"a":"1\n2"}"#, #"{"a":"1\r2"}"#, #"{"a":"1\u00002"}"#, #"{"a":1,"b:":{}}"#,
    ])
    func `a name or a text that QSIOP cannot carry is refused, not changed`(payload: String) throws {
        let topic = "qsiop/7/pager/down/16"
        let name = try #require(TopicName(topic))
        #expect(throws: HermesError.self) { try QSIOPApplication.check(name, ByteBuffer(string: payload)) }
        #expect(try frame(topic, payload) == nil)
    }

    @Test func `the error names the member that QSIOP cannot carry`() throws {
        let topic = try #require(TopicName("qsiop/7/pager/down/16"))
        let error = #expect(throws: HermesError.self) {
            try QSIOPApplication.check(topic, ByteBuffer(string: #"{"a":"1","b\n:":"2"}"#))
        }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains(#""b\n:""#) == true)
    }

    @Test(arguments: [
        "qsiop/7/pager/16", "qsiop/7/pager/down", "qsiop/7/pager/down/16/x", "x/7/pager/down/16", "qsiop",
    ])
    func `other topics are not looked at`(topic: String) throws {
        try QSIOPApplication.check(try #require(TopicName(topic)), ByteBuffer(string: "anything"))
        #expect(try frame(topic, "{}") == nil)
    }

    @Test func `the longest properties fit into a frame`() throws {
        let value = String(repeating: "x", count: 65_532)
        #expect(try frame("qsiop/7/p/down/16", #"{"a":"\#(value)"}"#)?.body.readableBytes == 65_535)
        #expect(try frame("qsiop/7/p/down/16", #"{"a":"\#(value)x"}"#) == nil)
    }
}

extension QSIOPFrameDecoder {
    fileprivate func decoded(_ bytes: inout ByteBuffer) throws -> QSIOPFrame? {
        var decoder = self
        return try decoder.next(from: &bytes)
    }
}
