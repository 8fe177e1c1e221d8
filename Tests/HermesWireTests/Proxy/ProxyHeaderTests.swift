// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import NIOCore
import Testing

@Suite struct ProxyHeaderTests {
    private static let v4: [UInt8] = [192, 0, 2, 7, 127, 0, 0, 1, 0x30, 0x39, 0x07, 0x5B]
    private static let v6 = [UInt8](repeating: 0xFD, count: 16) + [UInt8](repeating: 1, count: 16) + [1, 2, 3, 4]

    private static func header(_ command: UInt8, _ kind: UInt8, _ block: [UInt8], length: Int? = nil) -> [UInt8] {
        let length = length ?? block.count
        return ProxyHeader.signature + [command, kind, UInt8(length >> 8), UInt8(length & 0xFF)] + block
    }

    private func take(_ bytes: [UInt8]) throws -> (ProxyHeader?, rest: [UInt8]) {
        var buffer = ByteBuffer(bytes: bytes)
        let header = try ProxyHeader.next(from: &buffer)
        return (header, buffer.bytes)
    }

    @Test(arguments: [
        (header(0x21, 0x11, v4), ProxyHeader.Source.v4(address: [192, 0, 2, 7], port: 12_345)),
        (header(0x21, 0x21, v6), .v6(address: [UInt8](repeating: 0xFD, count: 16), port: 0x0102)),
        (header(0x21, 0x11, v4 + [0x04, 0, 2, 9, 9, 0xEA, 0, 0]), .v4(address: [192, 0, 2, 7], port: 12_345)),
        (header(0x20, 0x00, []), .connection), (header(0x20, 0x11, v4), .connection),
        (header(0x20, 0x00, [1, 2, 3]), .connection), (header(0x21, 0x00, []), .connection),
        (header(0x20, 0x41, []), .connection), (header(0x20, 0xFF, [1, 2, 3]), .connection),
        (header(0x20, 0x12, v4), .connection), (header(0x20, 0x21, [1]), .connection),
        (header(0x21, 0x31, [UInt8](repeating: 0, count: 216)), .connection),
    ])
    func `a header is cut from what follows it, also byte by byte`(bytes: [UInt8], source: ProxyHeader.Source) throws {
        let (header, rest) = try take(bytes + [1, 2, 3])
        #expect(header?.source == source)
        #expect(rest == [1, 2, 3])
        for count in bytes.indices {
            let (none, rest) = try take(Array(bytes[..<count]))
            #expect(none == nil)
            #expect(rest == Array(bytes[..<count]), "nothing is taken")
        }
    }

    @Test(arguments: [
        ([0x10], ProxyHeader.Malformation.signature), (Array("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n".utf8), .signature),
        (ProxyHeader.signature.dropLast() + [0x0B], .signature),
        (header(0x11, 0x11, v4), .version), (Array(header(0x31, 0x11, v4)[..<13]), .version),
        (header(0x22, 0x11, v4), .command), (header(0x2F, 0x11, v4), .command),
        (header(0x21, 0x12, v4), .transport), (header(0x21, 0x10, v4), .transport),
        (header(0x21, 0x41, v4), .transport),
        (header(0x21, 0x01, v4), .transport), (header(0x21, 0x11, Array(v4.dropLast())), .length),
        (header(0x21, 0x21, v4), .length), (header(0x21, 0x11, [], length: 65_535), .length),
        (header(0x20, 0x00, [], length: 2_033), .length),
        (header(0x21, 0x11, v4 + [0x04]), .extensionLength), (header(0x21, 0x11, v4 + [0x04, 0, 1]), .extensionLength),
        (header(0x21, 0x11, v4 + [0x04, 0xFF, 0xFF, 1]), .extensionLength),
    ])
    func `what is no header is refused as soon as that is seen`(bytes: [UInt8], reason: ProxyHeader.Malformation) {
        #expect(throws: reason) { try take(bytes) }
    }
}
