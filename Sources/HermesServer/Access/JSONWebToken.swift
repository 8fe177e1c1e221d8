// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesWire

/// A parsed JSON Web Token (RFC 7515, compact serialization); nothing in it is verified yet.
struct JSONWebToken: Sendable {
    struct Header: Decodable, Sendable {
        let alg: String
        let kid: String?
        /// Extensions that must be understood; none is supported.
        let crit: [String]?
    }

    /// The size of the largest token that is parsed, in bytes.
    static let maxBytes = 8_192

    let header: Header
    let payload: Data
    /// The signed bytes: the first two parts with the dot between them.
    let signed: Data
    let signature: Data

    /// Whether a text has the form of a token. A token has three parts. The first part is the base64url of a text
    /// that begins with `{"`.
    static func hasForm(_ text: String) -> Bool {
        text.hasPrefix("eyJ") && text.utf8.reduce(0) { $0 + ($1 == UInt8(ascii: ".") ? 1 : 0) } == 2
    }

    /// - Returns: nil if the text is not a token.
    init?(_ text: String) {
        guard text.utf8.count <= Self.maxBytes else { return nil }
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3,
            let head = Self.decode(parts[0]), let payload = Self.decode(parts[1]),
            let signature = Self.decode(parts[2]),
            (try? JSONParser.parse([UInt8](head))) != nil,
            let header = try? JSONDecoder().decode(Header.self, from: head)
        else { return nil }
        self.header = header
        self.payload = payload
        self.signature = signature
        signed = Data(text.utf8.dropLast(parts[2].count + 1))
    }

    /// Decodes base64url without padding.
    static func decode(_ text: some Collection<UInt8>) -> Data? {
        var base64: [UInt8] = []
        base64.reserveCapacity(text.count + 3)
        for byte in text {
            switch byte {
            case UInt8(ascii: "-"): base64.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): base64.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: base64.append(byte)
            }
        }
        while base64.count % 4 != 0 { base64.append(UInt8(ascii: "=")) }
        return Data(base64Encoded: Data(base64))
    }
}
