// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesWire

@Suite("JSON")
struct JSONParserTests {
    @Test(arguments: [
        "null", "true", "false", "0", "-0", "12.50", "1e400", "-1.5E-7", "\"\"", "[]", "{}", "[1,[2,{\"a\":null}]]",
        "{\"b\":1,\"a\":[true,false]}", "{\"\u{E9}\":1,\"e\u{301}\":2}", "\"\\\"\\\\\\n\\u0001\"", "\"ä😀\"",
        "123456789012345678901234567890",
    ])
    func `what is JSON is read, and written as it was`(text: String) throws {
        #expect(try JSONParser.parse(Array(text.utf8)).text == text)
    }

    @Test(arguments: [
        "", " ", "nul", "tru", "01", "1.", ".5", "+1", "1e", "-", "NaN", "[1,]", "[1 2]", "{\"a\":1,}", "{a:1}",
        "{\"a\" 1}", "\"", "\"\n\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"",
        "1 2", "[", "{", "{\"a\":1,\"a\":2}", "{\"\u{E9}\":1,\"\\u00e9\":2}", "// a\n1",
    ])
    func `what is none is refused`(text: String) {
        #expect(throws: JSONParser.Failure.self) { try JSONParser.parse(Array(text.utf8)) }
    }

    @Test
    func `texts that are not UTF-8 are refused`() {
        #expect(throws: JSONParser.Failure.self) { try JSONParser.parse([0x22, 0xFF, 0x22]) }
    }

    @Test
    func `escapes are characters`() throws {
        let text = #""\u00e4\ud83d\ude00\/\b\f\r\t""#
        #expect(try JSONParser.parse(Array(text.utf8)).string == "ä😀/\u{8}\u{C}\r\t")
    }

    @Test
    func `depth is bounded`() throws {
        let fits = String(repeating: "[", count: 31) + "1" + String(repeating: "]", count: 31)
        #expect(try JSONParser.parse(Array(fits.utf8)).text == fits)
        let deep = String(repeating: "[", count: 1_000_000)
        #expect(throws: JSONParser.Failure.self) { try JSONParser.parse(Array(deep.utf8)) }
    }

    @Test
    func `whole numbers, however they are written`() throws {
        for (text, number) in [("1", 1), ("1.0", 1), ("1e2", 100), ("1.5", nil), ("1e400", nil)] as [(String, Int64?)] {
            #expect(try JSONParser.parse(Array(text.utf8)).integer == number)
        }
    }
}
