// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways
import NIOCore

/// Decides which web pages may open a WebSocket.
///
/// A browser sends the page's `Origin`; other clients send none and are not checked. If anonymous access is allowed, a
/// page from elsewhere is refused unless its origin is configured. Otherwise every page that is open on this machine
/// could use the server.
struct WebOrigins: Sendable {
    /// The origins from the configuration, in lower case.
    let allowed: Set<String>
    /// Whether clients may connect anonymously.
    let isAnonymousAllowed: Bool
    /// Whether only this machine can reach the port.
    let isLoopback: Bool

    init(_ origins: [String], isAnonymousAllowed: Bool, isLoopback: Bool) {
        allowed = Set(origins.map { $0.lowercased() })
        self.isAnonymousAllowed = isAnonymousAllowed
        self.isLoopback = isLoopback
    }

    /// - Parameters:
    ///   - origins: the `Origin` fields of a request.
    ///   - hosts: the `Host` fields of the request.
    func allow(_ origins: [String], hosts: [String]) -> Bool {
        if origins.isEmpty { return true }
        guard origins.count == 1, let origin = origins.first?.lowercased() else { return false }
        if allowed.contains(origin) { return true }
        if allowed.isEmpty, !isAnonymousAllowed { return true }
        guard let page = Self.authority(ofOrigin: origin) else { return false }
        // A page of this machine is allowed, because programs of this machine can connect without a browser anyway.
        if isLoopback { return Self.isLocal(page.host) }
        // If origins are configured, no others are accepted: DNS rebinding can make a foreign page's origin equal the
        // host.
        guard allowed.isEmpty else { return false }
        return hosts.count == 1 && hosts.first.flatMap { Self.authority($0.lowercased()) } == page
    }

    private struct Authority: Hashable {
        let host: Substring
        /// Nil for the default port of the scheme.
        let port: Substring?
    }

    private static func authority(ofOrigin origin: String) -> Authority? {
        for scheme in ["http://", "https://"] where origin.hasPrefix(scheme) {
            return authority(origin.dropFirst(scheme.count))
        }
        return nil
    }

    private static func authority(_ text: some StringProtocol) -> Authority? {
        let text = Substring(text)
        guard !text.isEmpty, !text.contains(where: { "/?#@, ".contains($0) }) else { return nil }
        var host = text
        var port: Substring?
        if let colon = text.lastIndex(of: ":"), !text[colon...].contains("]") {
            host = text[..<colon]
            port = text[text.index(after: colon)...]
            // A proxy may terminate TLS before the server, so both default ports are equal.
            if port == "80" || port == "443" { port = nil }
        }
        return host.isEmpty ? nil : Authority(host: host, port: port)
    }

    /// Whether a host with an optional port is this machine.
    static func isLocal(authority: String) -> Bool { Self.authority(authority).map { isLocal($0.host) } ?? false }

    private static func isLocal(_ host: Substring) -> Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]" { return true }
        return ListenerSettings(host: String(host), port: 0).isLoopback
    }
}
