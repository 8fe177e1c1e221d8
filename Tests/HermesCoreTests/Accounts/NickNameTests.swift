// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct NickNameTests {
    @Test(arguments: [
        ("anna", "ANNA"), ("Ångström", "A\u{30A}ngstro\u{308}m"), ("ﬁsh", "fish"), ("Straße", "STRASSE"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"), ("①", "1"), ("❤️", "❤"), ("ＡＢＣ", "abc"),
    ])
    func `are the same`(one: String, other: String) throws {
        #expect(try NickName(one) == NickName(other))
        #expect(try NickName(one).key == NickName(other).key)
    }

    /// The store compares keys byte by byte, but Swift compares strings by canonical equivalence.
    @Test(arguments: [
        ("josé", "jose\u{FE0F}\u{301}"), ("josé", "jose\u{FE0E}\u{301}"), ("josé", "jose\u{301}\u{FE0F}"),
        ("ệ", "e\u{323}\u{FE0F}\u{302}"), ("ệ", "e\u{302}\u{FE0F}\u{323}"), ("각", "\u{1100}\u{FE0F}\u{1161}\u{11A8}"),
    ])
    func `equal names have equal bytes`(one: String, other: String) throws {
        let keys = try [NickName(one).key, NickName(other).key]
        #expect(keys[0].utf8.elementsEqual(keys[1].utf8))
    }

    @Test(arguments: [("anna", "anne"), ("é", "e"), ("ab", "a b")])
    func `are different`(one: String, other: String) throws {
        #expect(try NickName(one) != NickName(other))
    }

    @Test func `is shown as typed`() throws {
        #expect(try NickName("Anna Maria").rawValue == "Anna Maria")
        #expect(try NickName("李小龙").rawValue == "李小龙")
        #expect(try Array(NickName("e\u{301}").rawValue.utf8) == Array("\u{E9}".utf8))
    }

    @Test(arguments: [
        "", " anna", "anna ", "\u{3000}anna", "anna\u{A0}", "an\nna", "an\u{0}na", "a\u{202E}b", "a\u{200B}b",
        "a\u{200D}b",
        "\u{3164}", "\u{FE0F}", "a\u{2028}b", "a\u{E000}b", "a\u{7F}", "\u{FEFF}anna", "a\u{2066}b",
    ])
    func `is refused`(text: String) throws {
        let error = #expect(throws: HermesError.self) { try NickName(text) }
        #expect(error?.code == .invalidArgument)
    }

    @Test(arguments: [
        String(repeating: "a", count: 65), String(repeating: "ﷺ", count: 10), String(repeating: "é", count: 129),
        "a" + String(repeating: "\u{301}", count: 200), String(repeating: "x", count: 1_000_000),
    ])
    func `is refused if it is too long`(text: String) throws {
        let error = #expect(throws: HermesError.self) { try NickName(text) }
        #expect(error?.code == .tooLarge)
    }

    @Test(arguments: [
        "a\u{2800}b", "\u{2800}", "a\u{FFFC}", "a\u{1D159}", "a\u{1680}b", "a  b", "a \u{3000}b", "Strau\u{1E9E}e",
    ])
    func `is refused for a new account only`(text: String) throws {
        _ = try NickName(text)
        let error = #expect(throws: HermesError.self) { try NickName(new: text) }
        #expect(error?.code == .invalidArgument)
    }

    @Test(arguments: ["anna", "Anna Maria", "Straße", "李小龙", "❤️"])
    func `is good for a new account`(text: String) throws {
        #expect(try NickName(new: text) == NickName(text))
    }

    @Test func `limits are inclusive`() throws {
        #expect(try NickName(String(repeating: "a", count: 64)).key.count == 64)
        #expect(try NickName(String(repeating: "😀", count: 64)).rawValue.utf8.count == 256)
    }
}
