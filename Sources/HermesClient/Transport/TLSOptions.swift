// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How a connection is encrypted.
public struct TLSOptions: Hashable, Sendable {
    /// A PEM file with the certificates that may vouch for the server; nil: those of the system.
    public var certificateAuthorityFile: String?
    /// The name that the server's certificate must hold; nil: the host that is connected to.
    public var serverName: String?
    /// A PEM file with certificates of which one must have the server's public key, in addition to all other checks;
    /// nil: any key will do. Renewed certificates that keep their key do not matter; add the next key before it is used.
    public var pinnedCertificatesFile: String?
    /// Whether the server's certificate is checked. Switch this off for experiments only.
    public var verifiesServer: Bool
    /// A PEM file with the client's own certificate, and those that vouch for it; nil: none.
    public var certificateFile: String?
    /// A PEM file with the key of that certificate.
    public var privateKeyFile: String?

    /// Creates options.
    ///
    /// - Parameters:
    ///   - certificateAuthorityFile: a PEM file with the certificates that may vouch for the server.
    ///   - serverName: the name that the server's certificate must hold.
    ///   - pinnedCertificatesFile: a PEM file with certificates of which one must have the server's public key.
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
