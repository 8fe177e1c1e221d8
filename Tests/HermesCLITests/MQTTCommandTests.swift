// Hermes
// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import Hermes
import NIOCore
import Testing

@testable import HermesCLI

/// The options of `hermes pub` and `hermes sub`, and their effects.
@Suite struct MQTTCommandTests {
    private static func parse<Command: ParsableCommand>(_ type: Command.Type, _ arguments: String...) throws -> Command
    {
        let command = try HermesCommand.parseAsRoot(MQTTPropertyArguments.joined(arguments))
        return try #require(command as? Command)
    }

    @Test func `the words of -D are joined, all others left alone`() {
        let words = [
            "pub", "-D", "publish", "user-property", "a", "b c", "-D", "will", "content-type", "x", "-r",
        ]
        let joined = MQTTPropertyArguments.joined(words)
        #expect(joined.count == 6)
        #expect(joined.last == "-r")
        #expect(MQTTPropertyArguments.words("a\u{1F}\u{1F}b") == ["a", "", "b"])
        #expect(MQTTPropertyArguments.joined(["room", "-D", "a", "b"]) == ["room", "-D", "a", "b"])
        #expect(MQTTPropertyArguments.joined(["pub", "-D"]) == ["pub", "-D", ""])
    }

    @Test func `options of mosquitto_pub are understood`() throws {
        let command = try Self.parse(
            PubCommand.self,
            "pub",
            "-h",
            "broker",
            "-p",
            "2000",
            "-t",
            "a/b",
            "-m",
            "-5",
            "-q",
            "2",
            "-r",
            "-i",
            "me",
            "-u",
            "ann",
            "-P",
            "-secret",
            "-V",
            "mqttv5",
            "-k",
            "30",
            "-c",
            "-x",
            "-1",
            "--will-topic",
            "gone",
            "--will-payload",
            "bye",
            "--will-qos",
            "1",
            "--will-retain",
            "--cafile",
            "ca.pem",
            "--cert",
            "c.pem",
            "--key",
            "k.pem",
            "--insecure",
            "-D",
            "publish",
            "user-property",
            "a",
            "b",
            "-D",
            "publish",
            "correlation-data",
            "-1",
            "-D",
            "will",
            "will-delay-interval",
            "7",
            "-D",
            "connect",
            "receive-maximum",
            "9"
        )
        let configuration = try command.options.configuration()
        #expect(configuration.server.host == "broker")
        #expect(configuration.server.port == 2000)
        var options = TLSOptions(trustedCertificates: .file("ca.pem"), verifiesServer: false)
        options.certificate = .file("c.pem")
        options.privateKey = .file("k.pem")
        #expect(configuration.server.security == .tls(options))
        #expect(configuration.clientID == "me")
        #expect(!configuration.cleanStart)
        #expect(configuration.sessionExpiry == .seconds(4_294_967_295))
        #expect(configuration.userName == "ann")
        #expect(configuration.password == "-secret")
        #expect(configuration.heartbeat.interval == .seconds(30))
        #expect(configuration.receiveMaximum == 9)
        let will = try #require(configuration.will)
        #expect(will.topic == "gone" && will.text == "bye")
        #expect(will.qos == .atLeastOnce && will.retain)
        #expect(configuration.willDelay == .seconds(7))
        #expect(command.message == "-5")
        let properties = command.options.property.message(.publish)
        #expect(properties.userProperties == [.init("a", "b")])
        #expect(properties.correlationData == ByteBuffer(string: "-1"))
    }

    @Test func `defaults are those of MQTT`() throws {
        let command = try Self.parse(SubCommand.self, "sub", "-t", "a", "-t", "b/#", "-U", "c", "-T", "d", "-C", "3")
        let configuration = try command.options.configuration()
        #expect(configuration.server == ServerAddress(host: "localhost", port: 1883, security: .clearText))
        #expect(configuration.version == .v5)
        #expect(configuration.cleanStart && configuration.sessionExpiry == .zero)
        #expect(command.topic == ["a", "b/#"])
        #expect(
            try Self.parse(SubCommand.self, "sub", "-t", "a", "-p", "8883").options.address.security
                == .tls(TLSOptions())
        )
        #expect(try Self.parse(SubCommand.self, "sub", "-t", "a", "--tls").options.address.port == 8883)
        let old = try Self.parse(SubCommand.self, "sub", "-t", "a", "-V", "311").options.configuration()
        #expect(old.version == .v311 && !old.clientID.isEmpty)
    }

    @Test func `a URL holds server, login and topic`() throws {
        let url = try #require(MQTTURL("mqtts://ann%40x:se%2Fcret@[::1]:99/a/#"))
        #expect(url.usesTLS && url.host == "::1" && url.port == 99 && url.topic == "a/#")
        #expect(url.userName == "ann@x" && url.password == "se/cret")
        for nonsense in ["http://h/a", "mqtt://h", "mqtt:///a", "mqtt://h:0/a", "mqtt://h:x/a", "mqtt://h/", "h/a"] {
            #expect(MQTTURL(nonsense) == nil)
        }
        let options = try Self.parse(PubCommand.self, "pub", "-L", "mqtt://h/a", "-n").options
        #expect(options.urlTopic == "a")
        #expect(options.address == ServerAddress(host: "h", port: 1883, security: .clearText))
    }

    @Test(arguments: [
        ["pub", "-m", "x"], ["pub", "-t", "a"], ["pub", "-t", "a", "-m", "x", "-n"],
        ["pub", "-t", "a", "-n", "-q", "3"],
        ["pub", "-t", "a", "-n", "-c"], ["pub", "-t", "a", "-n", "-V", "4000"],
        ["pub", "-t", "a", "-n", "--will-retain"],
        ["pub", "-t", "a", "-n", "-V", "311", "-D", "publish", "content-type", "x"],
        ["pub", "-t", "a", "-n", "-D", "publish", "user-property", "x"],
        ["pub", "-t", "a", "-n", "-D", "publish", "subscription-identifier", "1"],
        ["pub", "-t", "a", "-n", "-D", "publish", "message-expiry-interval", "x"], ["pub", "-t", "a", "-n", "-D"],
        ["sub"], ["sub", "-t", "a", "-C", "0"], ["sub", "-t", "a", "-W", "0"], ["sub", "-t", "a", "-F", "%z"],
        ["sub", "-t", "a", "-F", "%"], ["sub", "-t", "a", "-F", "@"], ["sub", "-t", "a", "-F", "\\q"],
        ["sub", "-t", "a", "-F", "%99999t"], ["sub", "-t", "a", "-k", "70000"], ["sub", "-L", "mqtt://h/a", "-h", "h"],
        ["sub", "-t", "a", "-x", "-2"], ["sub", "-t", "a", "-D", "subscribe", "subscription-identifier", "0"],
    ])
    func `nonsense is refused`(arguments: [String]) {
        #expect(throws: (any Error).self) {
            try HermesCommand.parseAsRoot(MQTTPropertyArguments.joined(arguments))
        }
    }

    @Test(arguments: [
        ("a/b", "a/b", true), ("a/+", "a/b", true), ("a/+", "a/b/c", false), ("a/#", "a", true), ("#", "a/b", true),
        ("#", "$SYS/x", false), ("$SYS/#", "$SYS/x", true), ("+/b", "/b", true), ("a", "a/b", false),
        ("a/b", "a", false), ("a/+", "a/\u{301}b", true), ("a/#", "a/\u{301}b", true), ("+/#", "$\u{301}/b", false),
        ("\u{E9}", "e\u{301}", false),
    ])
    func `filters match topics`(filter: String, topic: String, matches: Bool) {
        #expect(MQTTTopicMatch.matches(topic, filter) == matches)
    }

    @Test func `lines are cut wherever the bytes come apart`() {
        var splitter = ByteLineSplitter()
        #expect(splitter.feed(Array("a".utf8)).isEmpty)
        #expect(splitter.feed(Array("b\n\nc".utf8)).map { String(buffer: $0) } == ["ab", ""])
        #expect(splitter.finish().map { String(buffer: $0) } == "c")
        #expect(splitter.finish() == nil)
    }
}

/// The output of `hermes sub -F`.
@Suite struct MQTTFormatTests {
    private static let date = Date(timeIntervalSince1970: 1_767_225_600.25)

    private static func message() -> MQTTMessage {
        var message = MQTTMessage(topic: "a/ä", text: "k\"1", qos: .exactlyOnce, retain: true)
        message.properties.userProperties = [.init("n", "1"), .init("n", "2")]
        message.properties.contentType = "text/plain"
        message.properties.correlationData = ByteBuffer(string: "cd")
        message.properties.responseTopic = "r"
        message.properties.expiry = .seconds(60)
        message.properties.isText = true
        return message
    }

    private static func print(_ format: String, _ message: MQTTMessage = message()) throws -> String {
        String(decoding: try MQTTFormat(format).bytes(message, at: date), as: UTF8.self)
    }

    @Test(arguments: [
        ("%t|%p|%q|%r|%m|%l", "a/ä|k\"1|2|1|0|3"), ("%x|%X", "6b2231|6B2231"),
        ("%C|%D|%E|%F|%P|%R", "text/plain|cd|60|1|n:1 n:2|r"),
        ("[%S%A]", "[]"), ("%% @@ \\\\ \\t", "% @ \\ \t"),
        ("%5t|%-5t|%05l|%.1p|%6.2p|%8x|%08x", "  a/ä|a/ä  |00003|k|    k\"|  6b2231|006b2231"),
        ("%.2x", "6b22"), ("%U @Y @N", "1767225600.250000000 \(year) 250000000"), ("%5E|%-5E|", "   60|60   |"),
        ("", ""),
    ])
    func `fields are printed`(format: String, expected: String) throws {
        #expect(try Self.print(format) == expected)
    }

    /// The year in the local time of the machine that runs the test.
    private static var year: String {
        var seconds = time_t(1_767_225_600)
        var parts = tm()
        return localtime_r(&seconds, &parts) == nil ? "" : "\(parts.tm_year + 1900)"
    }

    @Test func `JSON is valid and holds everything`() throws {
        let text = try Self.print("%j")
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(object?["topic"] as? String == "a/ä")
        #expect(object?["payload"] as? String == "k\"1")
        #expect(object?["payloadlen"] as? Int == 3)
        let properties = object?["properties"] as? [String: Any]
        #expect(properties?["content-type"] as? String == "text/plain")
        #expect(properties?["message-expiry-interval"] as? Int == 60)
        #expect((object?["tst"] as? String)?.contains(".250000") == true)
        #expect(throws: ClientFailure.self) { try Self.print("%J") }
        var message = MQTTMessage(topic: "t", text: #"{"a":[1,null]}"#)
        #expect(try Self.print("%J", message).hasSuffix(#""payload":{"a":[1,null]}}"#))
        message.payload = ByteBuffer(bytes: [0xFF, 0x00, 0x0A])
        #expect(try Self.print("%j", message).hasSuffix("\"payload\":\"\u{FFFD}\\u0000\\n\"}"))
    }

    @Test func `payloads are printed as they are`() throws {
        let message = MQTTMessage(topic: "t", payload: ByteBuffer(bytes: [0xFF, 0x00]))
        let plain = MQTTPrinter(format: nil, showsTopic: false, endsLine: true)
        #expect(try plain.bytes(message, at: Self.date) == [0xFF, 0x00, 0x0A])
        let verbose = MQTTPrinter(format: nil, showsTopic: true, endsLine: false)
        #expect(try verbose.bytes(message, at: Self.date) == [0x74, 0x20, 0xFF, 0x00])
    }

    @Test func `at a terminal no message controls the terminal, but a format does`() throws {
        let text = "\u{1B}]0;evil\u{07}\u{1B}[2Jä\tb\nc\u{9B}1m\u{202E}"
        let message = MQTTMessage(topic: "t\u{1B}[1m", text: text)
        let harmless = "\u{FFFD}]0;evil\u{FFFD}\u{FFFD}[2Jä\tb\nc\u{FFFD}1m\u{FFFD}"
        var printer = MQTTPrinter(format: nil, showsTopic: true, endsLine: false)
        #expect(String(decoding: try printer.bytes(message, at: Self.date), as: UTF8.self) == "t\u{1B}[1m " + text)
        printer.isTerminal = true
        #expect(
            String(decoding: try printer.bytes(message, at: Self.date), as: UTF8.self) == "t\u{FFFD}[1m " + harmless
        )
        let format = try MQTTFormat("\\e[1m%p\\e[0m %x")
        let formatted = MQTTPrinter(format: format, showsTopic: false, endsLine: false, isTerminal: true)
        let bytes = try formatted.bytes(MQTTMessage(topic: "t", text: "\u{1B}c"), at: Self.date)
        #expect(String(decoding: bytes, as: UTF8.self) == "\u{1B}[1m\u{FFFD}c\u{1B}[0m 1b63")
    }
}
