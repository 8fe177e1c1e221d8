// Hermes
// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// The header of the PROXY protocol, version 2, which a proxy sends before the bytes of a connection.
///
/// Source: "The PROXY protocol, versions 1 & 2", haproxy.org, section 2.2.
package struct ProxyHeader: Sendable, Hashable {
    /// The source of the connection.
    package enum Source: Sendable, Hashable {
        /// The connection's peer. It is the source if the proxy itself connects (LOCAL, for example for a health
        /// check), or if the header has no IP address.
        case connection
        case v4(address: [UInt8], port: UInt16)
        case v6(address: [UInt8], port: UInt16)
    }

    /// The reason why bytes are not a PROXY header.
    package enum Malformation: Error, Sendable, Hashable {
        case signature
        case version
        case command
        case transport
        case length
        case extensionLength
    }

    package let source: Source

    package init(source: Source) { self.source = source }

    /// The twelve bytes at the beginning of a header. No other protocol begins with them.
    package static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    /// The longest accepted header, in bytes. It has room for the largest addresses and for more extensions than
    /// proxies send.
    package static let maxBytes = 2_048
    private static let fixedBytes = 16

    /// Removes a header from the front of `bytes`.
    ///
    /// - Returns: the header; nil if more bytes are needed. If the result is nil, nothing was removed.
    /// - Throws: as soon as the bytes cannot become a header.
    package static func next(from bytes: inout ByteBuffer) throws(Malformation) -> ProxyHeader? {
        let view = bytes.readableBytesView
        guard zip(view, signature).allSatisfy({ $0 == $1 }) else { throw .signature }
        guard view.count >= fixedBytes else {
            if view.count > 12 { try check(versionAndCommand: view[view.startIndex + 12]) }
            return nil
        }
        let start = view.startIndex
        let command = view[start + 12]
        try check(versionAndCommand: command)
        let kind = view[start + 13]
        let length = Int(view[start + 14]) << 8 | Int(view[start + 15])
        guard length <= maxBytes - fixedBytes else { throw .length }
        // In a LOCAL header, the kind of address and the block after it are ignored.
        let isLocal = command & 0x0F == 0
        guard let addressBytes = isLocal ? 0 : addressBytes(of: kind) else { throw .transport }
        guard length >= addressBytes else { throw .length }
        guard view.count >= fixedBytes + length else { return nil }
        let block = Array(view[(start + fixedBytes)..<(start + fixedBytes + length)])
        bytes.moveReaderIndex(forwardBy: fixedBytes + length)
        if isLocal { return ProxyHeader(source: .connection) }
        try check(extensions: block[addressBytes...])
        func port(_ index: Int) -> UInt16 { UInt16(block[index]) << 8 | UInt16(block[index + 1]) }
        switch kind {
        case 0x11: return ProxyHeader(source: .v4(address: Array(block[0..<4]), port: port(8)))
        case 0x21: return ProxyHeader(source: .v6(address: Array(block[0..<16]), port: port(32)))
        default: return ProxyHeader(source: .connection)
        }
    }

    private static func check(versionAndCommand byte: UInt8) throws(Malformation) {
        guard byte >> 4 == 2 else { throw .version }
        guard byte & 0x0F <= 1 else { throw .command }
    }

    /// Returns the size of the addresses of a kind, in bytes; nil for datagrams, which do not arrive on a stream, and
    /// for unknown kinds.
    private static func addressBytes(of kind: UInt8) -> Int? {
        switch kind {
        case 0x00: 0
        case 0x11: 12
        case 0x21: 36
        case 0x31: 216
        default: nil
        }
    }

    /// Checks that the extensions are complete. Their values are not used.
    private static func check(extensions: ArraySlice<UInt8>) throws(Malformation) {
        var rest = extensions
        while !rest.isEmpty {
            guard rest.count >= 3 else { throw .extensionLength }
            let length = Int(rest[rest.startIndex + 1]) << 8 | Int(rest[rest.startIndex + 2])
            guard rest.count >= 3 + length else { throw .extensionLength }
            rest = rest.dropFirst(3 + length)
        }
    }
}
