// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways

/// The HTTP port.
package struct HTTPSettings: Sendable, Hashable {
    package var listener = ListenerSettings(defaultsOf: HTTPSettings.keys)
    /// The proxies whose headers give the address of a client.
    package var trustedProxies: [IPNetwork] = []
    /// The time limits of the port. They are not settings; only tests shorten them.
    package var limits = HTTPExchange.Limits()

    package init() {}
}

extension HTTPSettings: SettingFields {
    private static let keys = ListenerSettings.Keys(
        "http",
        title: "HTTP",
        port: 8080,
        features: [.proxied, .anonymous]
    )

    package static let fields: [SettingField<Self>] = [
        .listener(\.listener, keys),
        .networks(
            \.trustedProxies,
            "http.trustedProxies",
            maxCount: 100,
            "The proxies whose X-Forwarded-For and Forwarded headers are trusted. The server ignores these headers if "
                + "anybody else sends them."
        ),
    ]
}
