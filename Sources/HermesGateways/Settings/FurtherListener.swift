// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// A listener that an operator adds to the predefined listeners, for example with `listeners.factory.protocol: mqtt`.
package struct FurtherListener: Sendable, Hashable {
    /// The name in the configuration.
    package var name: String
    /// The ``Gateway/name`` of the protocol.
    package var gateway: String
    package var settings: ListenerSettings

    package init(name: String, gateway: String, settings: ListenerSettings) {
        self.name = name
        self.gateway = gateway
        self.settings = settings
    }
}

extension FurtherListener {
    /// The names that other listeners use.
    private static let otherNames = Set(GatewaySettings.listenerNames + ["http", "console", "stun"])

    /// Whether a text is a valid listener name: a lower-case letter, then lower-case letters and digits, 32 characters
    /// at most. It must not be the name of another listener.
    package static func isName(_ text: some StringProtocol) -> Bool {
        guard let first = text.utf8.first, (0x61...0x7A).contains(first), text.utf8.count <= 32 else { return false }
        let isPlain = text.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) }
        return isPlain && !otherNames.contains(String(text))
    }

    /// Returns the name of the further listener that an unknown key belongs to, if this listener has no protocol;
    /// otherwise nil. Also returns nil if the name is similar to the name of another listener.
    static func nameWithoutProtocol(_ key: String, _ keys: some Collection<String>) -> String? {
        let path = key.split(separator: ".", omittingEmptySubsequences: false)
        guard path.count > 1, path[0] == "listeners", isName(path[1]) else { return nil }
        let name = String(path[1])
        guard !keys.contains("listeners.\(name).protocol") else { return nil }
        return SettingsError.nearest(to: name, among: otherNames) == nil ? name : nil
    }

    private static func protocolKey(_ name: String) -> Setting<String> {
        // A name without this setting is not a listener, so the default is never used.
        .choice(
            "listeners.\(name).protocol",
            of: GatewayCatalog.all.map { $0.name },
            default: MQTTGateway.name,
            "The protocol to serve. This setting adds a listener with this name."
        )
    }

    private static func keys(_ name: String) -> ListenerSettings.Keys {
        ListenerSettings.Keys(
            name,
            title: "this",
            port: 0,
            features: [.gateway, .certificateIdentity, .anonymous]
        )
    }

    /// Returns the settings of a further listener with this name.
    package static func settings(of name: String) -> [SettingDescriptor] {
        [protocolKey(name).descriptor] + keys(name).all
    }

    /// Returns the further listeners that the values describe, sorted by name.
    static func all(in values: SettingValues) throws(SettingsError) -> [FurtherListener] {
        let names = values.given.keys.compactMap { key -> String? in
            let path = key.split(separator: ".")
            guard path.count == 3, path[0] == "listeners", path[2] == "protocol", isName(path[1]) else { return nil }
            return String(path[1])
        }
        var all: [FurtherListener] = []
        for name in names.sorted() {
            let gateway = try values.value(of: protocolKey(name))
            let settings = try ListenerSettings(values, keys(name))
            guard values.given["listeners.\(name).port"] != nil else {
                throw SettingsError(problems: ["listeners.\(name) needs listeners.\(name).port; 0: a free port"])
            }
            if settings.tls?.isIdentityFromCertificate == true,
                GatewayCatalog.gateway(named: gateway)?.listenerFeatures.contains(.certificateIdentity) != true
            {
                let takers = GatewayCatalog.all.filter { $0.listenerFeatures.contains(.certificateIdentity) }
                throw SettingsError(problems: [
                    "listeners.\(name).tls.identityFromCertificate is for listeners of "
                        + "\(takers.map { $0.title }.joined(separator: ", ")) alone"
                ])
            }
            all.append(FurtherListener(name: name, gateway: gateway, settings: settings))
        }
        return all
    }
}

extension SettingSources {
    /// Returns the names of the listeners with a key `protocol` in any source, sorted. Their settings must be loaded
    /// together with all other settings.
    package func furtherListeners() -> [String] {
        var names: Set<String> = []
        for argument in arguments where argument.hasPrefix("--listeners.") {
            let path = argument.dropFirst(2).prefix { $0 != "=" }.split(separator: ".")
            if path.count == 3, path[2] == "protocol" { names.insert(String(path[1])) }
        }
        for variable in environment.keys where variable.hasPrefix("HERMES_LISTENERS_") {
            let words = variable.split(separator: "_", omittingEmptySubsequences: false)
            if words.count == 4, words[3] == "PROTOCOL" { names.insert(words[2].lowercased()) }
        }
        names.formUnion(namesInFile())
        return names.filter { FurtherListener.isName($0) }.sorted()
    }
}
