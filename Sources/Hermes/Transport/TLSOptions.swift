// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOSSL

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The TLS options of a connection.
///
/// ```swift
/// let options = TLSOptions(
///     pinnedCertificates: .text(serverCertificate),
///     certificate: .data(clientCertificate),
///     privateKey: .text(pemFromKeyChain)
/// )
/// let server = ServerAddress(host: "chat.example.com", port: 9000, security: .tls(options))
/// ```
public struct TLSOptions: Hashable, Sendable {
    /// Certificates or a private key.
    public enum Source: Hashable, Sendable {
        /// A PEM file.
        case file(String)
        /// PEM text.
        case text(String)
        /// PEM data, or a single certificate or key in DER.
        case data(Data)
    }

    /// The trusted certificate authorities; nil if the client trusts the system's authorities.
    package var trustedCertificates: Source?
    /// The name that the server's certificate must contain; nil if it is the host.
    package var serverName: String?
    /// The pinned certificates; nil if there is no pinning. The server's public key must be the key of one of them.
    package var pinnedCertificates: Source?
    /// Whether the server's certificate is checked.
    package var verifiesServer: Bool
    /// The client's certificate and its chain; nil if there is none.
    package var certificate: Source?
    /// The private key of the client's certificate; nil if it is in the same source as the certificate.
    package var privateKey: Source?

    /// Creates options.
    ///
    /// - Parameters:
    ///   - trustedCertificates: the trusted certificate authorities; nil to trust the system's authorities.
    ///   - serverName: the name that the server's certificate must contain; nil if it is the host.
    ///   - pinnedCertificates: the pinned certificates; nil for no pinning. In addition to all other checks, the
    ///     server's public key must be the key of one of these certificates. A renewed certificate with the same key
    ///     passes. Before the server uses a new key, add a certificate with this key.
    ///   - verifiesServer: whether the server's certificate is checked. Switch this off only for experiments.
    ///   - certificate: the client's certificate and its chain; nil if there is none.
    ///   - privateKey: the private key of the client's certificate; nil if it is in the same source as the
    ///     certificate.
    public init(
        trustedCertificates: Source? = nil,
        serverName: String? = nil,
        pinnedCertificates: Source? = nil,
        verifiesServer: Bool = true,
        certificate: Source? = nil,
        privateKey: Source? = nil
    ) {
        self.trustedCertificates = trustedCertificates
        self.serverName = serverName
        self.pinnedCertificates = pinnedCertificates
        self.verifiesServer = verifiesServer
        self.certificate = certificate
        self.privateKey = privateKey
    }
}

extension TLSOptions.Source {
    /// Returns the certificates of the source.
    func certificates() throws -> [NIOSSLCertificate] {
        switch self {
        case .file(let path): try NIOSSLCertificate.fromPEMFile(path)
        case .text(let text): try NIOSSLCertificate.fromPEMBytes(Array(text.utf8))
        case .data(let data) where Self.isPEM(data): try NIOSSLCertificate.fromPEMBytes(Array(data))
        case .data(let data): [try NIOSSLCertificate(bytes: Array(data), format: .der)]
        }
    }

    /// Returns the private key of the source.
    func privateKey() throws -> NIOSSLPrivateKey {
        switch self {
        case .file(let path): try NIOSSLPrivateKey(file: path, format: .pem)
        case .text(let text): try NIOSSLPrivateKey(bytes: Array(text.utf8), format: .pem)
        case .data(let data): try NIOSSLPrivateKey(bytes: Array(data), format: Self.isPEM(data) ? .pem : .der)
        }
    }

    /// The name of the source for error messages. These messages never show the contents.
    var name: String {
        switch self {
        case .file(let path): path
        case .text, .data: "the given text or data"
        }
    }

    private static func isPEM(_ data: Data) -> Bool { String(decoding: data, as: UTF8.self).contains("-----BEGIN ") }
}
