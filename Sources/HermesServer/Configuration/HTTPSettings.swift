// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import HermesGateways

/// The HTTP port.
package struct HTTPSettings: Sendable, Hashable {
    package var listener = ListenerSettings(defaultsOf: HTTPSettings.keys)
    /// The proxies whose headers give the address of a client.
    package var trustedProxies: [IPNetwork] = []
    /// The time limits of the port. They are not a setting; only tests shorten them.
    package var limits = HTTPExchange.Limits()

    package init() {}
}

extension HTTPSettings {
    private static let keys = ListenerSettings.Keys(
        "http",
        title: "HTTP",
        port: 8080,
        isEnabled: true,
        features: [.proxied, .anonymous]
    )
    private static let trustedProxies = Setting<[IPNetwork]>.networks(
        "http.trustedProxies",
        maxCount: 100,
        "The proxies whose X-Forwarded-For and Forwarded headers are trusted. The server ignores these headers if "
            + "anybody else sends them."
    )

    static let settings: [SettingDescriptor] = keys.all + [trustedProxies.descriptor]

    init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        listener = try ListenerSettings(values, Self.keys)
        trustedProxies = try values.value(of: Self.trustedProxies)
    }
}
