// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@Suite("QSIOP properties")
struct QSIOPPropertiesTests {
    private func parse(_ text: String) throws -> QSIOPProperties {
        try QSIOPProperties(parsing: ByteBuffer(string: text))
    }

    private func text(_ properties: QSIOPProperties) -> String {
        var buffer = ByteBuffer()
        properties.write(into: &buffer)
        return String(buffer: buffer)
    }

    @Test
    func `split at the first colon`() throws {
        let properties = try parse("url:http://a/b\n:empty key\nflag\ntime:12:30:00")
        #expect(properties["url"] == "http://a/b")
        #expect(properties[""] == "empty key")
        #expect(properties["flag"] == "")
        #expect(properties["time"] == "12:30:00")
        #expect(properties["none"] == nil)
    }

    @Test
    func `the last of a repeated key counts, the order stays`() throws {
        let properties = try parse("a:1\nb:2\na:3\n")
        #expect(properties["a"] == "3")
        #expect(properties.pairs.map(\.key) == ["a", "b", "a"])
        #expect(text(properties) == "a:1\nb:2\na:3\n")
    }

    @Test
    func `nothing, and empty lines`() throws {
        #expect(try parse("").pairs.isEmpty)
        #expect(try parse("\n\n").pairs.isEmpty)
        #expect(try parse("\na:1\n\n").pairs.count == 1)
    }

    @Test
    func `setting replaces every line of the key`() throws {
        var properties = try parse("a:1\nb:2\na:3\n")
        properties["a"] = "4"
        #expect(text(properties) == "b:2\na:4\n")
        properties["b"] = nil
        #expect(text(properties) == "a:4\n")
    }

    @Test
    func `keys are compared by their bytes`() throws {
        let properties = try parse("\u{E9}:composed\ne\u{301}:decomposed\n")
        #expect(properties["\u{E9}"] == "composed")
        #expect(properties["e\u{301}"] == "decomposed")
    }

    @Test
    func `nothing that is written can pretend to be another line`() throws {
        let properties: QSIOPProperties = ["title": "x\nuserid:1", "a\nb:c": "v", "crlf": "1\r\n2"]
        let again = try parse(text(properties))
        #expect(again.pairs.count == 3)
        #expect(again["userid"] == nil)
        #expect(again["title"] == "x userid:1")
        #expect(again["a_b_c"] == "v")
        #expect(again["crlf"] == "1  2")
    }

    @Test(arguments: ["a:b", ":", "a\nb", "a\rb", "a\r\nb", "a\0b"])
    func `what would be replaced is refused where nothing may be replaced`(_ name: String) throws {
        var properties = QSIOPProperties()
        let error = #expect(throws: WireError.self) { try properties.appendUnchanged(name, "1") }
        #expect(error?.code == .notEncodable)
        if name.utf8.contains(UInt8(ascii: ":")) {
            // Only a name ends at a colon.
            try properties.appendUnchanged("a", name)
            #expect(text(properties) == "a:\(name)\n")
        } else {
            #expect(throws: WireError.self) { try properties.appendUnchanged("a", name) }
            #expect(properties.pairs.isEmpty)
        }
    }

    @Test(arguments: ["a_b", "", "a=b", "a b", "\t", "\u{E9}", "\u{85}\u{2028}"])
    func `what needs no replacement is the same on the wire`(_ name: String) throws {
        var properties = QSIOPProperties()
        try properties.appendUnchanged(name, name)
        let again = try parse(text(properties))
        #expect(again == properties)
        #expect(again[name].map { Array($0.utf8) } == Array(name.utf8))
    }

    @Test(.timeLimit(.minutes(1)))
    func `as many lines as fit, in a moment`() throws {
        let properties = try parse(String(repeating: "a\n", count: 32_767))
        #expect(properties.pairs.count == 32_767)
        #expect(properties["a"] == "")
        #expect(properties["b"] == nil)
    }
}
