// Hermes
// SPDX-License-Identifier: Apache-2.0

#if Pages
import Foundation
import Testing

@testable import HermesServer

/// The code that compresses and decompresses the pages. `PagesTests` decompresses the pages themselves.
@Suite struct GzipTests {
    /// Compressed data from zlib 1.2.13, with the decompressed text.
    static let vectors = [
        ("H4sIAAAAAAACAwMAAAAAAAAAAAA=", ""),
        // This block is stored, not compressed.
        ("H4sIAAAAAAAEAwETAOz/aGVsbG8sIGhlbGxvLCBoZWxsb5+hygkTAAAA", "hello, hello, hello"),
        // This block uses the fixed codes.
        ("H4sIAAAAAAACA8tIzcnJ11HIQKIAn6HKCRMAAAA=", "hello, hello, hello"),
        // This block has copies that read the bytes that they have just written.
        ("H4sIAAAAAAACA0tMHAWjYBQMdwAAA9o4mugDAAA=", String(repeating: "a", count: 1000)),
    ]

    @Test(arguments: vectors) func `each kind of block is unpacked`(base64: String, text: String) throws {
        let data = try #require(Data(base64Encoded: base64))
        #expect(try Gzip.unpacked(Array(data)) == Array(text.utf8))
    }

    @Test(arguments: vectors.map(\.0) + [WebFile.all.map(\.gzipBase64).min { $0.count < $1.count } ?? ""])
    func `cut data is refused`(base64: String) throws {
        let data = try #require(Data(base64Encoded: base64))
        for count in 0..<data.count {
            #expect(throws: Gzip.Malformed.self) { try Gzip.unpacked(Array(data.prefix(count))) }
        }
        #expect(throws: Gzip.Malformed.self) { try Gzip.unpacked(Array(data) + [0]) }
    }

    /// Some bits of the header have no meaning. The checksum protects the other bits.
    @Test(arguments: vectors.map(\.0) + [WebFile.all.map(\.gzipBase64).min { $0.count < $1.count } ?? ""])
    func `changed data is refused, or the change means nothing`(base64: String) throws {
        let data = Array(try #require(Data(base64Encoded: base64)))
        let content = try Gzip.unpacked(data)
        for bit in 0..<data.count * 8 {
            var changed = data
            changed[bit / 8] ^= 1 << (bit % 8)
            if let other = try? Gzip.unpacked(changed) { #expect(other == content, "bit \(bit)") }
        }
    }

    @Test func `the length that data claims takes no memory`() throws {
        // The last four bytes state a length of 4 GiB.
        let data = try #require(Data(base64Encoded: Self.vectors[2].0))
        #expect(throws: Gzip.Malformed.self) { try Gzip.unpacked(data.dropLast(4) + [0xff, 0xff, 0xff, 0xff]) }
        #expect(throws: Gzip.Malformed.self) { try Gzip.unpacked([]) }
    }

    @Test(arguments: ["", "hello", String(repeating: "a page, ", count: 10_000)])
    func `what is packed is shorter and can be unpacked`(text: String) throws {
        let packed = try #require(Gzip.packed(text.utf8))
        #expect(try Gzip.unpacked(packed) == Array(text.utf8))
        #expect(packed.starts(with: [0x1f, 0x8b, 8]))
        #expect(text.utf8.count < 1_000 || packed.count < text.utf8.count / 10)
    }

    @Test func `what is too long is not packed`() {
        #expect(Gzip.packed(repeatElement(0, count: Gzip.maxBytes + 1)) == nil)
    }
}
#endif
