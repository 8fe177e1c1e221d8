// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where a server listens, and how it is reached.
public struct ServerAddress: Hashable, Sendable {
    /// A name or an IP address.
    public var host: String
    /// The TCP port.
    public var port: Int
    /// Encryption; nil: none.
    public var tls: TLSOptions?
    /// How long opening the connection may take.
    public var connectTimeout: Duration

    /// Creates an address.
    ///
    /// - Parameters:
    ///   - host: a name or an IP address.
    ///   - port: the TCP port.
    ///   - tls: encryption; nil: none.
    ///   - connectTimeout: how long opening the connection may take.
    public init(
        host: String = "127.0.0.1",
        port: Int,
        tls: TLSOptions? = nil,
        connectTimeout: Duration = .seconds(10)
    ) {
        self.host = host
        self.port = port
        self.tls = tls
        self.connectTimeout = connectTimeout
    }
}
