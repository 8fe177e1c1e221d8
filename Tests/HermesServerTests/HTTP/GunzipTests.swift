// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import HermesServer

/// What unpacks the pages. `PagesTests` unpacks blocks with codes of their own: the pages themselves.
@Suite struct GunzipTests {
    /// Written by zlib 1.2.13.
    static let vectors = [
        ("H4sIAAAAAAACAwMAAAAAAAAAAAA=", ""),
        // Stored, not compressed.
        ("H4sIAAAAAAAEAwETAOz/aGVsbG8sIGhlbGxvLCBoZWxsb5+hygkTAAAA", "hello, hello, hello"),
        // With the fixed codes.
        ("H4sIAAAAAAACA8tIzcnJ11HIQKIAn6HKCRMAAAA=", "hello, hello, hello"),
        // Copies that reach into what they write.
        ("H4sIAAAAAAACA0tMHAWjYBQMdwAAA9o4mugDAAA=", String(repeating: "a", count: 1000)),
    ]

    @Test(arguments: vectors) func `each kind of block is unpacked`(base64: String, text: String) throws {
        let data = try #require(Data(base64Encoded: base64))
        #expect(try Gunzip.bytes(of: Array(data)) == Array(text.utf8))
    }

    @Test(arguments: vectors.map(\.0) + [WebFile.all.map(\.gzipBase64).min { $0.count < $1.count } ?? ""])
    func `cut data is refused`(base64: String) throws {
        let data = try #require(Data(base64Encoded: base64))
        for count in 0..<data.count {
            #expect(throws: Gunzip.Malformed.self) { try Gunzip.bytes(of: Array(data.prefix(count))) }
        }
        #expect(throws: Gunzip.Malformed.self) { try Gunzip.bytes(of: Array(data) + [0]) }
    }

    /// A changed bit may go unnoticed, for the check sum is not looked at, but it never crashes.
    @Test(arguments: vectors.map(\.0) + [WebFile.all.map(\.gzipBase64).min { $0.count < $1.count } ?? ""])
    func `changed data ends`(base64: String) throws {
        let data = Array(try #require(Data(base64Encoded: base64)))
        for bit in 0..<(data.count - 8) * 8 {
            var changed = data
            changed[bit / 8] ^= 1 << (bit % 8)
            _ = try? Gunzip.bytes(of: changed)
        }
    }
}
