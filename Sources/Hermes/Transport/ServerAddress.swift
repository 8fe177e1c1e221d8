// Hermes
// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The address of a server, and how to connect to it.
///
/// ```swift
/// ServerAddress("chat.example.com:9000")    // TLS
/// ServerAddress("wss://chat.example.com")   // WebSocket over TLS
/// ServerAddress(port: 9000)                 // this machine, in clear text
/// ```
///
/// Connections use TLS. Clear text must be requested explicitly, with ``Security/clearText`` or a scheme such as
/// `tcp://`. It is the default only for connections to this machine (loopback).
public struct ServerAddress: Hashable, Sendable {
    /// The protection of a connection.
    public enum Security: Hashable, Sendable {
        /// TLS with the default options, or clear text if all endpoints are on this machine: `localhost`, 127.0.0.0/8
        /// and ::1.
        case automatic
        /// TLS.
        case tls(TLSOptions)
        /// Clear text: everyone on the network path can read and change the data, passwords included.
        case clearText
    }

    /// A name or an IP address.
    package var host: String
    /// The TCP port.
    package var port: Int
    /// The path of the server's WebSocket, for example "/ws"; nil if the connection uses no WebSocket.
    package var webSocketPath: String?
    /// Other endpoints of the same server or of equivalent servers. They are tried in order. Each is tried if the
    /// earlier endpoints fail or do not answer within a second. The first endpoint that answers is used.
    package var alternatives: [Endpoint]
    /// The protection of the connection.
    package var security: Security
    /// The time limit for opening the connection.
    package var connectTimeout: Duration
    /// Whether the address's scheme stands for MQTT.
    private var hasMQTTScheme = false

    /// Whether a ``HermesClient`` speaks MQTT at this address: the scheme or the last part of the WebSocket's path
    /// stands for MQTT.
    var usesMQTT: Bool {
        hasMQTTScheme || webSocketPath.map { $0.prefix { $0 != "?" }.hasSuffix("/mqtt") } ?? false
    }

    /// Creates an address.
    ///
    /// - Parameters:
    ///   - host: a name or an IP address.
    ///   - port: the TCP port.
    ///   - webSocketPath: the path of the server's WebSocket; nil if the connection uses no WebSocket.
    ///   - alternatives: other endpoints, which are tried in order if the first one does not answer.
    ///   - security: the protection of the connection.
    ///   - connectTimeout: the time limit for opening the connection.
    public init(
        host: String = "127.0.0.1",
        port: Int,
        webSocketPath: String? = nil,
        alternatives: [Endpoint] = [],
        security: Security = .automatic,
        connectTimeout: Duration = .seconds(10)
    ) {
        self.host = host
        self.port = port
        self.webSocketPath = webSocketPath
        self.alternatives = alternatives
        self.security = security
        self.connectTimeout = connectTimeout
    }

    /// Parses an address: `host:port`, or an address with a scheme.
    ///
    /// | scheme | connection | default port |
    /// | --- | --- | --- |
    /// | none | TLS; clear text to this machine | none |
    /// | `hermes://` | TLS; clear text to this machine | 9000 |
    /// | `tcp://` | clear text | none |
    /// | `wss://` | WebSocket over TLS; the default path is `/ws` | 443 |
    /// | `ws://` | WebSocket in clear text | 80 |
    /// | `mqtts://` | MQTT over TLS | 8883 |
    /// | `mqtt://` | MQTT in clear text | 1883 |
    ///
    /// A WebSocket whose path ends with `/mqtt` carries MQTT.
    ///
    /// - Returns: nil if the text is not such an address.
    public init?(_ text: String) {
        // The path is sent unchanged in an HTTP request, so only printable ASCII is allowed.
        guard text.utf8.count <= 2048, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        guard let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else {
            guard let endpoint = Endpoint(text) else { return nil }
            self.init(host: endpoint.host, port: endpoint.port)
            return
        }
        guard let scheme = Scheme(rawValue: text[..<colon].lowercased()) else { return nil }
        let rest = text[colon...].dropFirst(3)
        let authority = rest.prefix { $0 != "/" }
        let path = rest.dropFirst(authority.count)
        guard !authority.contains(where: { "@?#".contains($0) }), !path.contains("#") else { return nil }
        guard scheme.isWebSocket || path.isEmpty else { return nil }
        let withPort = scheme.port.flatMap { Endpoint("\(authority):\($0)") }
        guard let endpoint = Endpoint(String(authority)) ?? withPort else { return nil }
        self.init(
            host: endpoint.host,
            port: endpoint.port,
            webSocketPath: scheme.isWebSocket ? path.isEmpty ? "/ws" : String(path) : nil,
            security: scheme.security
        )
        hasMQTTScheme = scheme == .mqtt || scheme == .mqtts
    }

    private enum Scheme: String {
        case hermes, tcp, wss, ws, mqtts, mqtt

        var isWebSocket: Bool { self == .wss || self == .ws }

        var port: Int? {
            switch self {
            case .hermes: 9000
            case .tcp: nil
            case .wss: 443
            case .ws: 80
            case .mqtts: 8883
            case .mqtt: 1883
            }
        }

        var security: Security {
            switch self {
            case .hermes: .automatic
            case .wss, .mqtts: .tls(TLSOptions())
            case .tcp, .ws, .mqtt: .clearText
            }
        }
    }
}

extension ServerAddress {
    /// A host and a port.
    public struct Endpoint: Hashable, Sendable {
        /// A name or an IP address.
        package var host: String
        /// The TCP port.
        package var port: Int

        /// Creates an endpoint.
        ///
        /// - Parameters:
        ///   - host: a name or an IP address.
        ///   - port: the TCP port.
        public init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        /// Parses `host:port` or `[IPv6 address]:port`; nil if the text is neither, or if it is longer than a name may
        /// be.
        package init?(_ text: String) {
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

        /// The endpoint as `host:port`, with an IPv6 address in brackets.
        package var text: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

        /// Whether the endpoint is on this machine: `localhost`, 127.0.0.0/8 or ::1.
        var isLoopback: Bool {
            // Resolvers must not ask the network for this name (RFC 6761, section 6.3).
            if host.lowercased() == "localhost" { return true }
            let address = try? SocketAddress(ipAddress: host, port: port)
            return address?.ipAddress == "::1" || address?.protocol == .inet && host.hasPrefix("127.")
        }
    }

    /// The host and the port.
    var endpoint: Endpoint { Endpoint(host: host, port: port) }

    /// The TLS options of the connection; nil if it uses clear text.
    var tlsOptions: TLSOptions? {
        switch security {
        case .automatic: ([endpoint] + alternatives).allSatisfy(\.isLoopback) ? nil : TLSOptions()
        case .tls(let options): options
        case .clearText: nil
        }
    }

    /// Whether a server may redirect its clients to this endpoint. A connection that uses clear text because the
    /// server is on this machine must not move to another machine.
    func mayRedirect(to endpoint: Endpoint) -> Bool {
        switch security {
        case .automatic: tlsOptions != nil || endpoint.isLoopback
        case .tls, .clearText: true
        }
    }
}
