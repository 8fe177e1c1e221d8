// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesGateways

extension ServerSettings {
    /// One sentence about each setting that is allowed but probably not intended. `check-config` and the start of the
    /// server report these sentences.
    var warnings: [String] { [clearTextWarning, controlSocketWarning].compactMap(\.self) + authorityWarnings }

    /// A warning about listeners that other machines can reach and that receive passwords without TLS.
    private var clearTextWarning: String? {
        let open = enabledListeners.filter { listener in
            hasLogins(listener.name) && listener.settings.tls == nil && !listener.settings.isLoopback
                && !isBehindProxy(listener)
        }
        guard let first = open.first else { return nil }
        let places = open.map { "listeners.\($0.name) (\($0.settings.address))" }.joined(separator: ", ")
        return "passwords cross the network in clear text on \(places); enable TLS (listeners.\(first.name).tls), or "
            + "put a proxy with TLS in front"
    }

    /// Whether clients of a listener log in with passwords or keys. The console needs no warning: it refuses to start
    /// without TLS on an address that other machines can reach.
    private func hasLogins(_ name: String) -> Bool {
        switch kind(ofListener: name).gateway {
        case "http": api.isEnabled || webSocket.isEnabled
        case "impb", "delimited", "mqtt": true
        default: false
        }
    }

    private func isBehindProxy(_ listener: EnabledListener) -> Bool {
        listener.settings.proxyProtocol != .off || listener.name == "http" && !http.trustedProxies.isEmpty
    }

    /// A warning about a data directory whose path leaves no room for the name of the control socket.
    private var controlSocketWarning: String? {
        let path = ControlSocket.path(in: data.directory)
        let limit = ControlClient.maxPathBytes
        guard data.storeKind == .sqlite, path.utf8.count > limit else { return nil }
        return "data.directory is too long for the control socket: \"\(path)\" has more than \(limit) bytes; commands "
            + "such as \"hermes user\" cannot reach the running server"
    }

    private var authorityWarnings: [String] {
        enabledListeners.compactMap { listener in
            guard let tls = listener.settings.tls, tls.clientAuthorityPath != nil, tls.clientCertificates == .none
            else { return nil }
            let prefix = "listeners.\(listener.name).tls"
            return "\(prefix).clientAuthority has no effect, because \(prefix).clientCertificates is none: the server "
                + "requests no certificates"
        }
    }
}
