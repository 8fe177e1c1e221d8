// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import Foundation
import HermesGateways
import NIOSSL

/// A key that checks signatures of JSON Web Tokens (RFC 7518, section 3). Each key is valid for one algorithm only, so
/// a public key is never used as a secret.
enum TokenKey: Sendable {
    /// A secret, for HS256.
    case secret(SymmetricKey)
    /// An RSA key of 2048 bits or more, for RS256.
    case rsa(_RSA.Signing.PublicKey)
    /// A P-256 key, for ES256.
    case p256(P256.Signing.PublicKey)

    var algorithm: AccessSettings.TokenAlgorithm {
        switch self {
        case .secret: .hs256
        case .rsa: .rs256
        case .p256: .es256
        }
    }

    /// Whether `signature` is this key's signature of the bytes `signed`.
    func isValid(_ signature: Data, for signed: Data) -> Bool {
        switch self {
        case .secret(let key):
            HMAC<SHA256>.isValidAuthenticationCode(signature, authenticating: signed, using: key)
        case .rsa(let key):
            key.isValidSignature(
                _RSA.Signing.RSASignature(rawRepresentation: signature),
                for: signed,
                padding: .insecurePKCS1v1_5
            )
        case .p256(let key):
            // Every signature has 64 bytes.
            (try? P256.Signing.ECDSASignature(rawRepresentation: signature))
                .map { key.isValidSignature($0, for: signed) } ?? false
        }
    }

    /// Reads the key from a PEM block. The block is a public key, or a certificate with a public key.
    ///
    /// - Returns: nil if the block holds no key for RS256 or ES256.
    init?(pem: String) {
        if pem.hasPrefix("-----BEGIN CERTIFICATE") {
            guard let certificate = try? NIOSSLCertificate(bytes: Array(pem.utf8), format: .pem),
                let key = try? certificate.extractPublicKey().toSPKIBytes()
            else { return nil }
            self.init(
                rsa: try? _RSA.Signing.PublicKey(derRepresentation: key),
                p256: try? P256.Signing.PublicKey(derRepresentation: key)
            )
        } else {
            self.init(
                rsa: try? _RSA.Signing.PublicKey(pemRepresentation: pem),
                p256: try? P256.Signing.PublicKey(pemRepresentation: pem)
            )
        }
    }

    private init?(rsa: _RSA.Signing.PublicKey?, p256: P256.Signing.PublicKey?) {
        if let rsa {
            self = .rsa(rsa)
        } else if let p256 {
            self = .p256(p256)
        } else {
            return nil
        }
    }
}
