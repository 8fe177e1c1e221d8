// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Where a server listens, and how it is reached.
public struct ServerAddress: Hashable, Sendable {
    /// A name or an IP address.
    public var host: String
    /// The TCP port.
    public var port: Int
    /// Other hosts and ports that lead to the same server or to others like it: tried, in their order, when those before
    /// fail or do not answer within a second; the first that answers counts.
    public var alternatives: [Endpoint]
    /// Encryption; nil: none.
    public var tls: TLSOptions?
    /// How long opening the connection may take.
    public var connectTimeout: Duration

    /// Creates an address.
    ///
    /// - Parameters:
    ///   - host: a name or an IP address.
    ///   - port: the TCP port.
    ///   - alternatives: other hosts and ports, tried when the first does not answer.
    ///   - tls: encryption; nil: none.
    ///   - connectTimeout: how long opening the connection may take.
    public init(
        host: String = "127.0.0.1",
        port: Int,
        alternatives: [Endpoint] = [],
        tls: TLSOptions? = nil,
        connectTimeout: Duration = .seconds(10)
    ) {
        self.host = host
        self.port = port
        self.alternatives = alternatives
        self.tls = tls
        self.connectTimeout = connectTimeout
    }
}

extension ServerAddress {
    /// A host and a port.
    public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
        /// A name or an IP address.
        public var host: String
        /// The TCP port.
        public var port: Int

        /// Creates an endpoint.
        public init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        /// Reads `host:port` or `[IPv6 address]:port`; nil if the text is neither, or longer than a name may be.
        public init?(_ text: String) {
            guard text.utf8.count <= 255 + 6, let colon = text.lastIndex(of: ":"),
                let port = UInt16(text[text.index(after: colon)...]), port > 0
            else { return nil }
            var host = text[..<colon]
            if host.hasPrefix("["), host.hasSuffix("]") {
                host = host.dropFirst().dropLast()
            } else if host.contains(":") {
                return nil
            }
            guard !host.isEmpty, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
            self.init(host: String(host), port: Int(port))
        }

        /// `host:port`, an IPv6 address in brackets.
        public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    }

    /// The host and the port.
    var endpoint: Endpoint { Endpoint(host: host, port: port) }
}
