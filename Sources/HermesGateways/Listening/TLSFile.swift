// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
package import NIOSSL

/// Reads the PEM files of a listener's TLS settings. It refuses pipes, and files that are too large, because the
/// server reads the files again after a SIGHUP, while it serves its connections.
package enum TLSFile {
    /// The reason why a file is unusable, with the file's path, for people.
    package struct Unusable: Error, CustomStringConvertible {
        package let description: String
    }

    /// The largest file with certificates or a key, in bytes.
    package static let maxBytes = 1 << 20
    /// The largest file with revocation lists, in bytes.
    package static let maxListBytes = 16 << 20
    /// The largest number of certificates in the server's chain. Clients refuse a chain that is much longer: OpenSSL
    /// accepts 100 KiB of certificates.
    package static let maxChain = 32

    /// Returns the certificates in a file.
    package static func certificates(_ path: String) throws -> [NIOSSLCertificate] {
        try NIOSSLCertificate.fromPEMBytes(bytes(path, maxBytes: maxBytes))
    }

    /// Returns the server's certificate and the certificates of the authorities above it.
    package static func chain(_ path: String) throws -> [NIOSSLCertificate] {
        let chain = try certificates(path)
        guard chain.count <= maxChain else {
            throw Unusable(description: "\"\(path)\": \(tooMany(chain.count))")
        }
        return chain
    }

    /// Returns the private key in a file.
    package static func key(_ path: String) throws -> NIOSSLPrivateKey {
        try NIOSSLPrivateKey(bytes: bytes(path, maxBytes: maxBytes), format: .pem)
    }

    /// Returns the problem with a chain of this many certificates, for people.
    package static func tooMany(_ count: Int) -> String {
        "\(count) certificates; a chain has at most \(maxChain): the server's own certificate and those of the "
            + "authorities above it"
    }

    /// Returns the contents of a file.
    static func bytes(_ path: String, maxBytes: Int) throws(Unusable) -> [UInt8] {
        let data: Data
        do {
            data = try BoundedFile.read(path, maxBytes: maxBytes)
        } catch {
            throw Unusable(description: "\"\(path)\" cannot be read: \(error)")
        }
        guard !data.isEmpty else { throw Unusable(description: "\"\(path)\" is empty") }
        return Array(data)
    }
}
