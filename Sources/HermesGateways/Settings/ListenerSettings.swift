// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where one protocol listens.
package struct ListenerSettings: Sendable, Hashable {
    /// Whether connections begin with a header of the proxy before the server that tells the client's address.
    package enum ProxyProtocol: String, CaseIterable, Sendable {
        case off
        case v2
    }

    package var isEnabled: Bool
    /// An IP address or host name.
    package var host: String
    /// 0: a free one, chosen by the system.
    package var port: Int
    /// The path of a Unix socket, in place of host and port.
    package var unixSocketPath: String?
    /// Nil: in the clear.
    package var tls: TLSSettings?
    package var proxyProtocol: ProxyProtocol
    /// False: nobody comes in here without an account, though that is allowed elsewhere.
    package var isAnonymousAllowed = true

    package init(
        isEnabled: Bool = true,
        host: String = "127.0.0.1",
        port: Int,
        unixSocketPath: String? = nil,
        tls: TLSSettings? = nil,
        proxyProtocol: ProxyProtocol = .off
    ) {
        self.isEnabled = isEnabled
        self.host = host
        self.port = port
        self.unixSocketPath = unixSocketPath
        self.tls = tls
        self.proxyProtocol = proxyProtocol
    }

    /// Whether only programs on this machine reach it.
    package var isLoopback: Bool {
        if unixSocketPath != nil { return true }
        let host = host.lowercased()
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

/// The files TLS needs; read again on SIGHUP.
package struct TLSSettings: Sendable, Hashable {
    /// Whether clients show certificates.
    package enum ClientCertificates: String, CaseIterable, Sendable {
        /// They are not asked for one.
        case none
        /// One that is shown must be good.
        case optional
        case required
    }

    /// PEM, the server's certificate first, then its chain.
    package var certificatePath: String
    /// PEM.
    package var privateKeyPath: String
    package var clientCertificates: ClientCertificates
    /// PEM, the authorities that sign clients' certificates; nil: those of the system.
    package var clientAuthorityPath: String?
    /// PEM, lists of the clients' certificates that were taken back; nil: none was.
    package var revocationListPath: String?
    /// Whether the common name of a client's certificate is its user name.
    package var isIdentityFromCertificate: Bool

    package init(
        certificatePath: String,
        privateKeyPath: String,
        clientCertificates: ClientCertificates = .none,
        clientAuthorityPath: String? = nil,
        revocationListPath: String? = nil,
        isIdentityFromCertificate: Bool = false
    ) {
        self.certificatePath = certificatePath
        self.privateKeyPath = privateKeyPath
        self.clientCertificates = clientCertificates
        self.clientAuthorityPath = clientAuthorityPath
        self.revocationListPath = revocationListPath
        self.isIdentityFromCertificate = isIdentityFromCertificate
    }
}
