// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An application's own message in a push: bytes, usually protobuf, and the name of their type. The server does not
/// interpret the bytes.
package struct TypedMessage: Sendable, Hashable {
    /// The longest name of a type, in bytes.
    package static let maxTypeBytes = 128
    /// The largest message, in bytes.
    package static let maxBytes = 16_384

    /// The full name of the type, for example "shop.OrderShipped".
    package let type: String
    package let bytes: [UInt8]

    package init(type: String, bytes: [UInt8]) {
        self.type = type
        self.bytes = bytes
    }

    var weight: Int { type.utf8.count &+ bytes.count }

    /// - Throws: `.invalidArgument`, `.tooLarge`.
    func check() throws(HermesError) {
        guard Self.isTypeName(type) else {
            throw HermesError(
                .ofValue(type.utf8.count, atMost: Self.maxTypeBytes),
                "the type of the message is a full name like shop.OrderShipped, of at most \(Self.maxTypeBytes) bytes"
            )
        }
        guard bytes.count <= Self.maxBytes else {
            throw HermesError(.tooLarge, "the message is larger than \(Self.maxBytes) bytes")
        }
    }

    /// Whether a text is a full name in protobuf: identifiers with dots between them.
    package static func isTypeName(_ text: String) -> Bool {
        guard (1...maxTypeBytes).contains(text.utf8.count) else { return false }
        return text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { part in
            guard let first = part.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else { return false }
            return part.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
        }
    }
}
