// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import Foundation

/// A folder for files with keys and rules.
struct TemporaryFiles {
    let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "hermes-access-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    /// Writes a file and returns its path.
    @discardableResult
    func write(_ name: String, _ text: String) throws -> String {
        let path = directory.appending(path: name)
        try Data(text.utf8).write(to: path, options: .atomic)
        return path.path
    }

    func remove() { try? FileManager.default.removeItem(at: directory) }
}

/// Makes tokens like an issuer, without the library that verifies them.
struct TokenIssuer {
    let rsa: _RSA.Signing.PrivateKey
    let ecdsa = P256.Signing.PrivateKey()
    let secret = String(repeating: "s3cret", count: 6)

    init() throws { rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048) }

    static func base64(_ bytes: some Sequence<UInt8>) -> String {
        Data(bytes).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    private func signed(
        _ payload: String,
        _ header: String,
        _ sign: (Data) throws -> any Sequence<UInt8>
    ) rethrows -> String {
        let text = Self.base64(Data(header.utf8)) + "." + Self.base64(Data(payload.utf8))
        return text + "." + Self.base64(Data(try sign(Data(text.utf8))))
    }

    func hs256(_ payload: String, header: String = #"{"alg":"HS256"}"#, secret: String? = nil) -> String {
        signed(payload, header) { text in
            Data(
                HMAC<SHA256>.authenticationCode(
                    for: text,
                    using: SymmetricKey(data: Data((secret ?? self.secret).utf8))
                )
            )
        }
    }

    func rs256(_ payload: String, header: String = #"{"alg":"RS256"}"#) throws -> String {
        try signed(payload, header) { try rsa.signature(for: $0, padding: .insecurePKCS1v1_5).rawRepresentation }
    }

    func es256(_ payload: String, header: String = #"{"alg":"ES256"}"#) throws -> String {
        try signed(payload, header) { try ecdsa.signature(for: $0).rawRepresentation }
    }

    func none(_ payload: String, algorithm: String = "none") -> String {
        Self.base64(Data(#"{"alg":"\#(algorithm)"}"#.utf8)) + "." + Self.base64(Data(payload.utf8)) + "."
    }

    /// A JWKS with all three keys.
    func keySet() throws -> String {
        let point = ecdsa.publicKey.rawRepresentation
        let primitives = try rsa.publicKey.getKeyPrimitives()
        func text(_ bytes: some Sequence<UInt8>) -> String { Self.base64(bytes) }
        return """
            {"keys": [
              {"kty": "RSA", "kid": "r", "n": "\(text(primitives.modulus))", "e": "\(text(primitives.publicExponent))"},
              {"kty": "EC", "kid": "e", "crv": "P-256", "alg": "ES256", "x": "\(text(point.prefix(32)))",
               "y": "\(text(point.suffix(32)))"},
              {"kty": "oct", "kid": "h", "alg": "HS256", "k": "\(text(Data(secret.utf8)))"},
              {"kty": "OKP", "kid": "o", "crv": "Ed25519", "x": "AAAA"},
              {"kty": "RSA", "kid": "x", "use": "enc", "n": "AAAA", "e": "AQAB"}
            ]}
            """
    }
}
