// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways

extension ServerSettings {
    /// A listener that is on, with its name in the configuration.
    typealias EnabledListener = (name: String, settings: ListenerSettings)

    /// The listeners on TCP ports and Unix sockets that the server opens.
    var enabledListeners: [EnabledListener] {
        var all: [EnabledListener] = gateways.listeners.map { ($0.name, $0.settings) }
        all.append(("http", http.listener))
        if WebPages.areBuiltIn, data.storeKind == .sqlite { all.append(("console", console.listener)) }
        return all.filter(\.settings.isEnabled)
    }

    /// Refuses settings with which nobody could reach the server.
    func refuseNoListener() throws(SettingsError) {
        guard enabledListeners.isEmpty else { return }
        throw SettingsError(problems: [
            "no listener is enabled; enable one of listeners.….enabled, for example listeners.mqtt.enabled: true"
        ])
    }

    /// Refuses two listeners that need the same port or the same Unix socket.
    func refuseSharedAddresses() throws(SettingsError) {
        let all = enabledListeners
        var problems: [String] = []
        for (index, first) in all.enumerated() {
            for second in all.dropFirst(index + 1) where first.settings.collides(with: second.settings) {
                problems.append(
                    "\(Self.addressKey(first)) and \(Self.addressKey(second)) need the same address: "
                        + "\(first.settings.address) and \(second.settings.address); change one of them"
                )
            }
        }
        guard problems.isEmpty else { throw SettingsError(problems: problems) }
    }

    private static func addressKey(_ listener: EnabledListener) -> String {
        listener.settings.unixSocketPath == nil ? "listeners.\(listener.name).port" : "listeners.\(listener.name)"
    }
}

extension ListenerSettings {
    /// The address for people: host and port, or the path of a Unix socket.
    var address: String { unixSocketPath ?? (host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)") }

    /// Whether the system can open only one of two listeners. Host names are compared as texts, because a name is
    /// resolved only when its listener starts.
    func collides(with other: ListenerSettings) -> Bool {
        if let path = unixSocketPath { return path == other.unixSocketPath }
        guard other.unixSocketPath == nil, port != 0, port == other.port else { return false }
        let (one, another) = (host.lowercased(), other.host.lowercased())
        return one == another || Self.isCovered(one, by: another) || Self.isCovered(another, by: one)
    }

    /// Whether a wildcard address includes an address of its own family. The operating system decides whether `::`
    /// also includes IPv4 addresses.
    private static func isCovered(_ host: String, by wildcard: String) -> Bool {
        switch wildcard {
        case "0.0.0.0":
            let parts = host.split(separator: ".", omittingEmptySubsequences: false)
            return parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
        case "::":
            return host.contains(":")
        default:
            return false
        }
    }
}
