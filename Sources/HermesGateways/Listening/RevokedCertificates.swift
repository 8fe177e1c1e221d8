// Hermes
// SPDX-License-Identifier: Apache-2.0

import Crypto
import CryptoExtras
import Foundation
package import HermesWire
package import NIOSSL

/// The certificates that their issuers have revoked, from a file of revocation lists.
///
/// A list counts only if one of the configured authorities has signed it. Certificates whose issuer has no list in the
/// file are valid.
package struct RevokedCertificates: Sendable {
    /// The reason why a file is unusable.
    package struct Unusable: Error, CustomStringConvertible {
        package let description: String
    }

    private var serials: [[UInt8]: Set<[UInt8]>] = [:]
    /// The earliest time at which a list becomes outdated, in seconds since 1970.
    private(set) var nextUpdate: Int?

    /// - Parameters:
    ///   - path: a PEM file with lists.
    ///   - authorities: the authorities that may sign the lists.
    package init(path: String, authorities: [NIOSSLCertificate]) throws {
        let lists = try Self.lists(Self.text(path), path)
        for list in lists {
            guard try authorities.contains(where: { try Self.isSigned(list, by: $0) }) else {
                throw Unusable(description: "a list in \"\(path)\" is not signed by any of the client authorities")
            }
            serials[list.issuer, default: []].formUnion(list.serials)
            if let next = list.nextUpdate { nextUpdate = min(nextUpdate ?? next, next) }
        }
    }

    /// Returns the certificates that at least one of two files revokes.
    func union(_ other: RevokedCertificates) -> RevokedCertificates {
        var both = self
        both.serials.merge(other.serials) { $0.union($1) }
        both.nextUpdate = [nextUpdate, other.nextUpdate].compactMap { $0 }.min()
        return both
    }

    /// Whether a certificate is revoked.
    package func contains(_ certificate: CertificateNames) -> Bool {
        serials[certificate.issuer]?.contains(certificate.serial) ?? false
    }

    private static func text(_ path: String) throws(Unusable) -> String {
        let bytes: [UInt8]
        do throws(TLSFile.Unusable) {
            bytes = try TLSFile.bytes(path, maxBytes: TLSFile.maxListBytes)
        } catch {
            throw Unusable(description: error.description)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Unusable(description: "\"\(path)\" is not UTF-8")
        }
        return text
    }

    private static func lists(_ text: String, _ path: String) throws -> [RevocationList] {
        var lists: [RevocationList] = []
        var line = 1
        let parts = text.components(separatedBy: "-----BEGIN X509 CRL-----")
        for (index, part) in parts.enumerated().dropFirst() {
            line += parts[index - 1].count(where: \.isNewline)
            let body = part.components(separatedBy: "-----END X509 CRL-----")[0]
            guard let der = Data(base64Encoded: body, options: .ignoreUnknownCharacters),
                let list = try? RevocationList(der: Array(der))
            else {
                throw Unusable(
                    description: "\"\(path)\" contains a damaged list at line \(line), or one of an unknown kind"
                )
            }
            lists.append(list)
        }
        guard !lists.isEmpty else { throw Unusable(description: "\"\(path)\" holds no \"BEGIN X509 CRL\"") }
        return lists
    }

    private static func isSigned(_ list: RevocationList, by authority: NIOSSLCertificate) throws -> Bool {
        guard let names = try? CertificateNames(der: authority.toDERBytes()), names.subject == list.issuer else {
            return false
        }
        let key = try authority.extractPublicKey().toSPKIBytes()
        return switch list.algorithm {
        case .rsaSHA256, .ecdsaSHA256: verify(list, key, SHA256.hash(data: list.signed))
        case .rsaSHA384, .ecdsaSHA384: verify(list, key, SHA384.hash(data: list.signed))
        case .rsaSHA512, .ecdsaSHA512: verify(list, key, SHA512.hash(data: list.signed))
        }
    }

    private static func verify(_ list: RevocationList, _ key: [UInt8], _ digest: some Digest) -> Bool {
        switch list.algorithm {
        case .rsaSHA256, .rsaSHA384, .rsaSHA512:
            guard let key = try? _RSA.Signing.PublicKey(derRepresentation: key) else { return false }
            let signature = _RSA.Signing.RSASignature(rawRepresentation: list.signature)
            return key.isValidSignature(signature, for: digest, padding: .insecurePKCS1v1_5)
        case .ecdsaSHA256, .ecdsaSHA384, .ecdsaSHA512:
            if let key = try? P256.Signing.PublicKey(derRepresentation: key) {
                guard let signature = try? P256.Signing.ECDSASignature(derRepresentation: list.signature) else {
                    return false
                }
                return key.isValidSignature(signature, for: digest)
            }
            if let key = try? P384.Signing.PublicKey(derRepresentation: key) {
                guard let signature = try? P384.Signing.ECDSASignature(derRepresentation: list.signature) else {
                    return false
                }
                return key.isValidSignature(signature, for: digest)
            }
            guard let key = try? P521.Signing.PublicKey(derRepresentation: key),
                let signature = try? P521.Signing.ECDSASignature(derRepresentation: list.signature)
            else { return false }
            return key.isValidSignature(signature, for: digest)
        }
    }
}
