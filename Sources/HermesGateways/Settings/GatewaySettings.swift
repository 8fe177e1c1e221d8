// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The configuration of the gateways.
package struct GatewaySettings: Sendable {
    /// The predefined listeners of the protocols in ``GatewayCatalog``, by name.
    private var predefined: [String: ListenerSettings] = [:]
    /// The listeners that the operator added.
    package var further: [FurtherListener] = []
    /// The options of the protocols, by the protocol's name. A protocol that is missing here has its default options.
    private var options: [String: any GatewayOptions] = [:]
    package var stun = STUNSettings()
    package var limits = ConnectionLimits()
    package var access = AccessSettings()
    package var clients = ClientSettings()

    /// Creates the default settings.
    package init() {
        for (_, keys) in Self.catalog { predefined[keys.name] = ListenerSettings(defaultsOf: keys) }
    }

    /// The predefined listener with this name; nil if there is none.
    package subscript(listener name: String) -> ListenerSettings? {
        get { predefined[name] }
        set { predefined[name] = newValue }
    }

    /// The options of a protocol.
    package subscript<G: Gateway>(_ gateway: G.Type) -> G.Options {
        get { options[G.name] as? G.Options ?? G.Options() }
        set { options[G.name] = newValue }
    }

    /// Whether MQTT clients may connect without an account.
    package var isAnonymousAllowed: Bool { access.isAnonymousAllowed }

    /// Changes the settings so that all protocols refuse clients without an account.
    package mutating func requireAccounts() {
        access.isAnonymousAllowed = false
        for gateway in GatewayCatalog.all { requireAccount(gateway) }
    }

    private mutating func requireAccount<G: Gateway>(_ gateway: G.Type) { self[gateway].requireAccount() }

    /// All listeners, with their names in the configuration and the ``Gateway/name`` of their protocols.
    package var listeners: [(name: String, gateway: String, settings: ListenerSettings)] {
        var listeners: [(name: String, gateway: String, settings: ListenerSettings)] = []
        var sockets = listeners
        for (gateway, keys) in Self.catalog {
            guard let settings = predefined[keys.name] else { continue }
            listeners.append((keys.name, gateway.name, settings))
            guard let path = settings.furtherSocketPath else { continue }
            var socket = ListenerSettings(port: 0, unixSocketPath: path)
            socket.isAnonymousAllowed = settings.isAnonymousAllowed
            sockets.append(("\(keys.name).unixSocket", gateway.name, socket))
        }
        return listeners + sockets + further.map { ($0.name, $0.gateway, $0.settings) }
    }
}

extension GatewaySettings: SettingGroup {
    /// The predefined listeners with their protocols.
    private static let catalog: [(gateway: any Gateway.Type, keys: ListenerSettings.Keys)] =
        GatewayCatalog.all.flatMap { gateway in gateway.listeners.map { (gateway, $0) } }

    /// The names of all predefined listeners.
    static let listenerNames = catalog.map(\.keys.name)

    /// All settings of the gateways.
    package static let settings: [SettingDescriptor] = {
        var all: [SettingDescriptor] = []
        for (_, keys) in catalog { all += keys.all }
        all += STUNSettings.settings + ConnectionLimits.settings + AccessSettings.settings
        for gateway in GatewayCatalog.all { all += settings(of: gateway) }
        return all + ClientSettings.settings
    }()

    private static func settings<G: Gateway>(of gateway: G.Type) -> [SettingDescriptor] { G.Options.settings }

    /// - Throws: for a value that is not allowed, and for values that do not fit together: an incomplete TLS
    ///   configuration, or anonymous access on a public address.
    package init(_ values: SettingValues) throws(SettingsError) {
        for (_, keys) in Self.catalog { predefined[keys.name] = try ListenerSettings(values, keys) }
        stun = try STUNSettings(values)
        limits = try ConnectionLimits(values)
        access = try AccessSettings(values)
        for gateway in GatewayCatalog.all { try read(gateway, values) }
        clients = try ClientSettings(values)
        further = try FurtherListener.all(in: values)
        if !access.isAnonymousAllowed { requireAccounts() }
        try refuseAnonymousOnPublic()
    }

    private mutating func read<G: Gateway>(_ gateway: G.Type, _ values: SettingValues) throws(SettingsError) {
        self[gateway] = try G.Options(values)
    }

    private func isAnonymousAllowed<G: Gateway>(by gateway: G.Type) -> Bool {
        G.listenerFeatures.contains(.anonymous) && self[gateway].isAnonymousAllowed
    }

    private func refuseAnonymousOnPublic() throws(SettingsError) {
        guard access.isAnonymousAllowed, !access.isAnonymousAllowedOnPublic else { return }
        for (name, gateway, listener) in listeners where listener.isEnabled && !listener.isLoopback {
            guard listener.isAnonymousAllowed, let gateway = GatewayCatalog.gateway(named: gateway),
                isAnonymousAllowed(by: gateway)
            else { continue }
            if let tls = listener.tls, tls.isIdentityFromCertificate, tls.clientCertificates == .required { continue }
            throw SettingsError(problems: [
                "listeners.\(name).host = \"\(listener.host)\" can be reached by other machines while access.anonymous "
                    + "is true; set access.anonymous: false, or access.anonymousOnPublic: true if that is what you want"
            ])
        }
    }
}

extension GatewaySettings: Equatable {
    package static func == (left: Self, right: Self) -> Bool {
        left.predefined == right.predefined && left.further == right.further && left.stun == right.stun
            && left.limits == right.limits && left.access == right.access && left.clients == right.clients
            && GatewayCatalog.all.allSatisfy { areOptionsEqual($0, left, right) }
    }

    private static func areOptionsEqual<G: Gateway>(_ gateway: G.Type, _ left: Self, _ right: Self) -> Bool {
        left[gateway] == right[gateway]
    }
}
