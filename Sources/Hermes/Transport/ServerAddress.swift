// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The address of a server, and how to connect to it.
public struct ServerAddress: Hashable, Sendable {
    /// A name or an IP address.
    public var host: String
    /// The TCP port.
    public var port: Int
    /// Other endpoints of the same server or of servers like it. They are tried in order when those before fail or take
    /// longer than a second; the first that answers counts.
    public var alternatives: [Endpoint]
    /// Encryption; nil: none.
    public var tls: TLSOptions?
    /// The time limit for opening the connection.
    public var connectTimeout: Duration

    /// Creates an address.
    ///
    /// - Parameters:
    ///   - host: a name or an IP address.
    ///   - port: the TCP port.
    ///   - alternatives: other endpoints, tried when the first does not answer.
    ///   - tls: encryption; nil: none.
    ///   - connectTimeout: the time limit for opening the connection.
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

        /// Parses `host:port` or `[IPv6 address]:port`; nil if the text is neither, or longer than a name may be.
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

extension ServerAddress {
    /// Parses the address of a WebSocket: `ws://host[:port][/path]` or `wss://…`.
    ///
    /// - Returns: the server and the path, by default `/ws`; nil if the text is not such an address.
    static func ofWebSocket(_ text: String) -> (server: ServerAddress, path: String)? {
        // The rest is sent in a request unchanged.
        guard text.utf8.count <= 2048, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://")
        else { return nil }
        let isEncrypted: Bool
        switch text[..<colon].lowercased() {
        case "ws": isEncrypted = false
        case "wss": isEncrypted = true
        default: return nil
        }
        let rest = text[colon...].dropFirst(3)
        let authority = rest.prefix { $0 != "/" }
        let path = rest.dropFirst(authority.count)
        guard !authority.contains(where: { "@?#".contains($0) }), !path.contains("#") else { return nil }
        let port = isEncrypted ? 443 : 80
        guard let endpoint = Endpoint(String(authority)) ?? Endpoint("\(authority):\(port)") else { return nil }
        let tls = isEncrypted ? TLSOptions() : nil
        return (ServerAddress(host: endpoint.host, port: endpoint.port, tls: tls), path.isEmpty ? "/ws" : String(path))
    }
}
