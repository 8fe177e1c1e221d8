// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesGateways
import JWTKit

/// The keys for verifying tokens. Each is valid for one algorithm only: a public key is never a secret.
struct TokenKeys: Sendable {
    struct Key: Sendable {
        let identifier: String?
        let algorithm: AccessSettings.TokenAlgorithm
        let verifier: any JWTAlgorithm
    }

    /// The reason why a file contains no usable keys, for people.
    struct Refusal: Error, CustomStringConvertible {
        let description: String
    }

    /// The largest file, in bytes.
    static let maxBytes = 1 << 20
    /// The shortest secret (RFC 7518, section 3.2), in bytes.
    static let minSecretBytes = 32
    /// The largest number of keys.
    static let maxKeys = 100

    let keys: [Key]

    /// Reads a file: PEM public keys or certificates, a JWKS, or else a secret.
    static func load(_ path: String) async throws -> TokenKeys {
        let data: Data
        do { data = try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
            throw Refusal(description: "it cannot be read")
        }
        guard data.count <= maxBytes else { throw Refusal(description: "it is larger than \(maxBytes) bytes") }
        return try await TokenKeys(data)
    }

    init(_ data: Data) async throws {
        let isText = String(validating: data, as: UTF8.self) != nil
        let first = isText ? data.first { !$0.isWhiteSpace } : nil
        if data.range(of: Data("-----BEGIN ".utf8)) != nil {
            keys = try await Self.pem(String(decoding: data, as: UTF8.self))
        } else if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
            keys = try await Self.keySet(data)
        } else if let mistake = TokenSecret.mistake(in: data) {
            throw Refusal(description: "it is neither a PEM public key nor a JWKS, and looks like \(mistake)")
        } else {
            // Editors end a text with a line break; binary secrets may end with any byte.
            let secret = isText ? Data(data.reversed().drop(while: \.isWhiteSpace).reversed()) : data
            keys = [Key(identifier: nil, algorithm: .hs256, verifier: try await Self.secret(secret))]
        }
        guard !keys.isEmpty else { throw Refusal(description: "it holds no key for HS256, RS256 or ES256") }
        guard keys.count <= Self.maxKeys else { throw Refusal(description: "it holds more than \(Self.maxKeys) keys") }
    }

    /// The keys with which a token may be signed.
    func candidates(_ algorithm: AccessSettings.TokenAlgorithm, identifier: String?) -> [Key] {
        keys.filter { key in
            guard key.algorithm == algorithm else { return false }
            guard let identifier, let own = key.identifier else { return true }
            return own.utf8.elementsEqual(identifier.utf8)
        }
    }

    private static func secret(_ bytes: Data) async throws -> any JWTAlgorithm {
        guard bytes.count >= minSecretBytes else {
            throw Refusal(description: "a secret for HS256 must have \(minSecretBytes) bytes or more")
        }
        return try await JWTKeyCollection().add(hmac: HMACKey(from: bytes), digestAlgorithm: .sha256).getKey()
    }

    private static func pem(_ text: String) async throws -> [Key] {
        var keys: [Key] = []
        var line = 1
        let blocks = text.components(separatedBy: "-----BEGIN ")
        for (index, block) in blocks.enumerated().dropFirst() {
            line += blocks[index - 1].count(where: \.isNewline)
            let pem = "-----BEGIN " + block
            guard !block.prefix(40).contains("PRIVATE KEY") else {
                throw Refusal(
                    description: "it holds a private key at line \(line); tokens are checked with the public one"
                )
            }
            let isCertificate = block.hasPrefix("CERTIFICATE")
            if let key = try? isCertificate ? Insecure.RSA.PublicKey(certificatePEM: pem) : .init(pem: pem) {
                let verifier = try await JWTKeyCollection().add(rsa: key, digestAlgorithm: .sha256).getKey()
                keys.append(Key(identifier: nil, algorithm: .rs256, verifier: verifier))
            } else if let key = try? isCertificate ? ES256PublicKey(certificate: pem) : ES256PublicKey(pem: pem) {
                let verifier = try await JWTKeyCollection().add(ecdsa: key).getKey()
                keys.append(Key(identifier: nil, algorithm: .es256, verifier: verifier))
            } else {
                throw Refusal(
                    description:
                        "the PEM block at line \(line) is neither an RSA key of 2048 bits or more nor a P-256 key"
                )
            }
        }
        return keys
    }

    private struct KeySet: Decodable {
        let keys: [Entry]
    }

    /// One key of a JWKS (RFC 7517); keys of other kinds or uses are left out.
    private struct Entry: Decodable {
        let kty: String
        let alg: String?
        let use: String?
        let kid: String?
        let crv: String?
        let n: String?
        let e: String?
        let x: String?
        let y: String?
        let k: String?
    }

    private static func keySet(_ data: Data) async throws -> [Key] {
        guard let set = try? JSONDecoder().decode(KeySet.self, from: data) else {
            throw Refusal(description: "it is not a JWKS")
        }
        var keys: [Key] = []
        for entry in set.keys where entry.use == nil || entry.use == "sig" {
            do {
                if let key = try await key(entry) { keys.append(key) }
            } catch let refusal as Refusal {
                throw refusal
            } catch {
                throw Refusal(description: "the key \"\(entry.kid ?? "")\" is not usable: \(error)")
            }
        }
        return keys
    }

    private static func key(_ entry: Entry) async throws -> Key? {
        switch (entry.kty, entry.alg ?? "") {
        case ("RSA", "RS256"), ("RSA", ""):
            guard let modulus = entry.n, let exponent = entry.e else {
                throw Refusal(description: "an RSA key lacks n or e")
            }
            let key = try Insecure.RSA.PublicKey(modulus: modulus, exponent: exponent)
            let verifier = try await JWTKeyCollection().add(rsa: key, digestAlgorithm: .sha256).getKey()
            return Key(identifier: entry.kid, algorithm: .rs256, verifier: verifier)
        case ("EC", "ES256"), ("EC", ""):
            guard entry.crv == "P-256" else { return nil }
            guard let x = entry.x, let y = entry.y else { throw Refusal(description: "an EC key lacks x or y") }
            let key = try ES256PublicKey(parameters: (x, y))
            let verifier = try await JWTKeyCollection().add(ecdsa: key).getKey()
            return Key(identifier: entry.kid, algorithm: .es256, verifier: verifier)
        case ("oct", "HS256"):
            guard let secret = entry.k.flatMap({ JSONWebToken.decode($0.utf8) }) else {
                throw Refusal(description: "an oct key lacks k")
            }
            return Key(identifier: entry.kid, algorithm: .hs256, verifier: try await Self.secret(secret))
        case (_, _):
            return nil
        }
    }
}

extension UInt8 {
    fileprivate var isWhiteSpace: Bool {
        self == UInt8(ascii: " ") || self == UInt8(ascii: "\n") || self == UInt8(ascii: "\r")
            || self == UInt8(ascii: "\t")
    }
}
