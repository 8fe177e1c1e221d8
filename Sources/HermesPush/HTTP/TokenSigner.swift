// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import Foundation
import HermesCore

/// Signs the JSON Web Tokens by which push services identify the operator (RFC 7515, compact serialization).
struct TokenSigner: Sendable {
    enum Key: Sendable {
        /// ES256 (RFC 7518, section 3.4).
        case p256(P256.Signing.PrivateKey)
        /// RS256 (RFC 7518, section 3.3).
        case rsa(_RSA.Signing.PrivateKey)
    }

    private struct Header: Encodable {
        let alg: String
        let typ = "JWT"
        let kid: String?
    }

    let key: Key
    /// The key's name in the header; nil if there is none.
    var keyID: String?

    /// Signs a token with these claims.
    func token(_ claims: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let algorithm =
            switch key {
            case .p256: "ES256"
            case .rsa: "RS256"
            }
        let header = try encoder.encode(Header(alg: algorithm, kid: keyID)).base64URL
        let signed = try header + "." + encoder.encode(claims).base64URL
        let bytes = Data(signed.utf8)
        let signature =
            switch key {
            case .p256(let key): try key.signature(for: bytes).rawRepresentation
            case .rsa(let key): try key.signature(for: bytes, padding: .insecurePKCS1v1_5).rawRepresentation
            }
        return signed + "." + signature.base64URL
    }
}
