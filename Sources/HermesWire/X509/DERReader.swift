// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Reads DER elements (X.690) one after the other. Supports only what occurs in certificates and revocation lists.
struct DERReader {
    enum Tag {
        static let boolean: UInt8 = 0x01
        static let integer: UInt8 = 0x02
        static let bitString: UInt8 = 0x03
        static let objectIdentifier: UInt8 = 0x06
        static let utcTime: UInt8 = 0x17
        static let generalizedTime: UInt8 = 0x18
        static let sequence: UInt8 = 0x30
        /// The constructed, context-specific tag 0.
        static let explicit0: UInt8 = 0xA0
    }

    struct Element {
        let tag: UInt8
        let content: ArraySlice<UInt8>
        /// The bytes of the whole element, including tag and length.
        let whole: ArraySlice<UInt8>
    }

    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }
    /// The tag of the next element; nil at the end.
    var nextTag: UInt8? { rest.first }

    /// - Throws: if there is no complete element.
    mutating func next() throws(X509Malformation) -> Element {
        let start = rest.startIndex
        guard rest.count >= 2 else { throw X509Malformation() }
        let tag = rest[start]
        // Tags of more than one byte do not occur in certificates and revocation lists.
        guard tag & 0x1F != 0x1F else { throw X509Malformation() }
        var length = Int(rest[start + 1])
        var index = start + 2
        if length >= 0x80 {
            let count = length & 0x7F
            guard (1...4).contains(count), rest.endIndex - index >= count else { throw X509Malformation() }
            length = rest[index..<(index + count)].reduce(0) { $0 << 8 | Int($1) }
            index += count
        }
        guard length <= rest.endIndex - index else { throw X509Malformation() }
        let end = index + length
        defer { rest = rest[end...] }
        return Element(tag: tag, content: rest[index..<end], whole: rest[start..<end])
    }

    /// - Throws: if the next element has another tag.
    mutating func next(_ tag: UInt8) throws(X509Malformation) -> Element {
        let element = try next()
        guard element.tag == tag else { throw X509Malformation() }
        return element
    }

    /// Returns the next element if it has this tag.
    mutating func optional(_ tag: UInt8) throws(X509Malformation) -> Element? {
        nextTag == tag ? try next() : nil
    }
}

/// The error for bytes that are not a certificate or revocation list, or that contain something unsupported.
package struct X509Malformation: Error, Sendable, Hashable {}
