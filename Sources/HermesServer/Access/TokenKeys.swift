// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import Foundation
import HermesCore
import HermesGateways

/// The keys for verifying tokens.
struct TokenKeys: Sendable {
    struct Named: Sendable {
        let identifier: String?
        let key: TokenKey
    }

    /// The reason why a file contains no usable keys, in words for people.
    struct Refusal: Error, CustomStringConvertible {
        let description: String
    }

    /// The largest size of the file, in bytes.
    static let maxBytes = 1 << 20
    /// The smallest length of a secret, in bytes (RFC 7518, section 3.2).
    static let minSecretBytes = 32
    /// The largest number of keys.
    static let maxKeys = 100

    let keys: [Named]

    /// Reads a file of PEM public keys or certificates, or a JWKS. Any other content must be a secret.
    static func load(_ path: String) throws -> TokenKeys {
        let data: Data
        do { data = try BoundedFile.read(path, atMost: maxBytes + 1) } catch {
            throw Refusal(description: "it cannot be read: \(error)")
        }
        guard data.count <= maxBytes else { throw Refusal(description: "it is larger than \(maxBytes) bytes") }
        return try TokenKeys(data)
    }

    init(_ data: Data) throws {
        let isText = String(validating: data, as: UTF8.self) != nil
        let first = isText ? data.first { !$0.isWhiteSpace } : nil
        if data.range(of: Data("-----BEGIN ".utf8)) != nil {
            keys = try Self.pem(String(decoding: data, as: UTF8.self))
        } else if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
            keys = try Self.keySet(data)
        } else if let mistake = TokenSecret.mistake(in: data) {
            throw Refusal(description: "it is neither a PEM public key nor a JWKS, and looks like \(mistake)")
        } else {
            // Editors end a text with a line break; binary secrets may end with any byte.
            let secret = isText ? Data(data.reversed().drop(while: \.isWhiteSpace).reversed()) : data
            keys = [Named(identifier: nil, key: try Self.secret(secret))]
        }
        guard !keys.isEmpty else { throw Refusal(description: "it holds no key for HS256, RS256 or ES256") }
        guard keys.count <= Self.maxKeys else { throw Refusal(description: "it holds more than \(Self.maxKeys) keys") }
    }

    /// Returns the keys that may have signed a token with this algorithm and this key identifier (`kid`).
    func candidates(_ algorithm: AccessSettings.TokenAlgorithm, identifier: String?) -> [Named] {
        keys.filter { named in
            guard named.key.algorithm == algorithm else { return false }
            guard let identifier, let own = named.identifier else { return true }
            return own.utf8.elementsEqual(identifier.utf8)
        }
    }

    private static func secret(_ bytes: Data) throws -> TokenKey {
        guard bytes.count >= minSecretBytes else {
            throw Refusal(description: "a secret for HS256 must have \(minSecretBytes) bytes or more")
        }
        return .secret(SymmetricKey(data: bytes))
    }

    private static func pem(_ text: String) throws -> [Named] {
        var keys: [Named] = []
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
            guard let key = TokenKey(pem: pem) else {
                throw Refusal(
                    description:
                        "the PEM block at line \(line) is neither an RSA key of 2048 bits or more nor a P-256 key"
                )
            }
            keys.append(Named(identifier: nil, key: key))
        }
        return keys
    }

    private struct KeySet: Decodable {
        let keys: [Entry]
    }

    /// One key of a JWKS (RFC 7517). Keys of unsupported types, and keys that are not for signatures, are skipped.
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

    private static func keySet(_ data: Data) throws -> [Named] {
        guard let set = try? JSONDecoder().decode(KeySet.self, from: data) else {
            throw Refusal(description: "it is not a JWKS")
        }
        var keys: [Named] = []
        for entry in set.keys where entry.use == nil || entry.use == "sig" {
            do {
                if let key = try key(entry) { keys.append(Named(identifier: entry.kid, key: key)) }
            } catch let refusal as Refusal {
                throw refusal
            } catch {
                throw Refusal(description: "the key \"\(entry.kid ?? "")\" is not usable: \(error)")
            }
        }
        return keys
    }

    private static func key(_ entry: Entry) throws -> TokenKey? {
        switch (entry.kty, entry.alg ?? "") {
        case ("RSA", "RS256"), ("RSA", ""):
            guard let modulus = entry.n, let exponent = entry.e else {
                throw Refusal(description: "an RSA key lacks n or e")
            }
            return .rsa(try _RSA.Signing.PublicKey(n: number(modulus, "n"), e: number(exponent, "e")))
        case ("EC", "ES256"), ("EC", ""):
            guard entry.crv == "P-256" else { return nil }
            guard let x = entry.x, let y = entry.y else { throw Refusal(description: "an EC key lacks x or y") }
            // An uncompressed point (SEC 1, section 2.3.3).
            return .p256(try P256.Signing.PublicKey(x963Representation: Data([4]) + number(x, "x") + number(y, "y")))
        case ("oct", "HS256"), ("oct", ""):
            guard let secret = entry.k.flatMap({ JSONWebToken.decode($0.utf8) }) else {
                throw Refusal(description: "an oct key lacks k")
            }
            return try Self.secret(secret)
        case (_, _):
            return nil
        }
    }

    private static func number(_ text: String, _ name: String) throws -> Data {
        guard let number = JSONWebToken.decode(text.utf8) else {
            throw Refusal(description: "\(name) of a key is not base64url")
        }
        return number
    }
}

extension UInt8 {
    fileprivate var isWhiteSpace: Bool {
        self == UInt8(ascii: " ") || self == UInt8(ascii: "\n") || self == UInt8(ascii: "\r")
            || self == UInt8(ascii: "\t")
    }
}
