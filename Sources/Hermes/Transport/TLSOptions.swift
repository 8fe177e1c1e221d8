// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The TLS options of a connection.
public struct TLSOptions: Hashable, Sendable {
    /// A PEM file with the trusted certificate authorities; nil: the system's.
    public var certificateAuthorityFile: String?
    /// The name that the server's certificate must contain; nil: the host.
    public var serverName: String?
    /// A PEM file with pinned certificates. The server must have the public key of one of them, in addition to all
    /// other checks; nil: no pinning. A renewed certificate with the same key passes; add the next key before the
    /// server uses it.
    public var pinnedCertificatesFile: String?
    /// Whether the server's certificate is checked. Switch this off only for experiments.
    public var verifiesServer: Bool
    /// A PEM file with the client's certificate and its chain; nil: none.
    public var certificateFile: String?
    /// A PEM file with the private key of that certificate.
    public var privateKeyFile: String?

    /// Creates options.
    ///
    /// - Parameters:
    ///   - certificateAuthorityFile: a PEM file with the trusted certificate authorities.
    ///   - serverName: the name that the server's certificate must contain.
    ///   - pinnedCertificatesFile: a PEM file with pinned certificates.
    ///   - verifiesServer: whether the server's certificate is checked.
    public init(
        certificateAuthorityFile: String? = nil,
        serverName: String? = nil,
        pinnedCertificatesFile: String? = nil,
        verifiesServer: Bool = true
    ) {
        self.certificateAuthorityFile = certificateAuthorityFile
        self.serverName = serverName
        self.pinnedCertificatesFile = pinnedCertificatesFile
        self.verifiesServer = verifiesServer
    }
}
