// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where one protocol listens.
package struct ListenerSettings: Sendable, Hashable {
    package var isEnabled: Bool
    /// An IP address or host name.
    package var host: String
    /// 0: a free one, chosen by the system.
    package var port: Int
    /// Nil: in the clear.
    package var tls: TLSSettings?

    package init(isEnabled: Bool = true, host: String = "127.0.0.1", port: Int, tls: TLSSettings? = nil) {
        self.isEnabled = isEnabled
        self.host = host
        self.port = port
        self.tls = tls
    }

    /// Whether only programs on this machine reach it.
    package var isLoopback: Bool {
        let host = host.lowercased()
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }
}

/// The files TLS needs; read again on SIGHUP.
package struct TLSSettings: Sendable, Hashable {
    /// PEM, the server's certificate first, then its chain.
    package var certificatePath: String
    /// PEM.
    package var privateKeyPath: String

    package init(certificatePath: String, privateKeyPath: String) {
        self.certificatePath = certificatePath
        self.privateKeyPath = privateKeyPath
    }
}
