// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The address of one protocol's listener.
package struct ListenerSettings: Sendable, Hashable {
    /// Whether connections begin with a PROXY header with the client's address.
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
    /// Nil: no TLS.
    package var tls: TLSSettings?
    package var proxyProtocol: ProxyProtocol
    /// Whether clients may connect here without an account, if that is allowed at all.
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

    /// Whether only programs on this machine can reach it.
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
    /// Whether clients present certificates.
    package enum ClientCertificates: String, CaseIterable, Sendable {
        /// None is requested.
        case none
        /// A presented one must be valid.
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
    /// PEM, revocation lists for clients' certificates; nil: none.
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
