// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesWire
import NIOCore
import Testing

/// Test vectors that were made with other implementations. There is one file per protocol in `Vectors`.
struct Vectors: Decodable {
    struct Good: Decodable, CustomTestStringConvertible {
        let name: String
        let hex: String
        var seq: UInt32?
        var type: UInt16?
        var op: UInt16?
        var length: Int?
        var props: [String: String]?

        var testDescription: String { name }
    }

    struct Bad: Decodable, CustomTestStringConvertible {
        let name: String
        let hex: String

        var testDescription: String { name }
    }

    let good: [Good]
    let bad: [Bad]

    /// Reads a file of `Vectors`.
    init(_ name: String, testFile: String = #filePath) throws {
        let folder = URL(filePath: testFile).deletingLastPathComponent().deletingLastPathComponent()
        let file = folder.appending(components: "Vectors", "\(name).json")
        self = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file))
    }

    /// Returns the bytes of a valid or invalid vector.
    func bytes(_ name: String) throws -> [UInt8] {
        let hex = good.first { $0.name == name }?.hex ?? bad.first { $0.name == name }?.hex
        return try [UInt8](hex: #require(hex, "no vector \(name)"))
    }
}

extension [UInt8] {
    /// Creates bytes from pairs of hexadecimal digits.
    init(hex: String) {
        self = stride(from: 0, to: hex.utf8.count, by: 2).compactMap { offset in
            let start = hex.index(hex.startIndex, offsetBy: offset)
            return UInt8(hex[start..<hex.index(start, offsetBy: 2)], radix: 16)
        }
    }
}

extension ByteBuffer {
    /// The readable bytes.
    var bytes: [UInt8] { [UInt8](readableBytesView) }
}

extension WireFrame {
    /// Returns the encoded frame.
    func encoded() throws -> [UInt8] {
        var buffer = ByteBuffer()
        try write(into: &buffer)
        return buffer.bytes
    }
}
