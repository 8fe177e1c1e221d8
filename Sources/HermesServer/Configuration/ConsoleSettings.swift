// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import HermesGateways

/// The console for administrators, which has a listener of its own.
package struct ConsoleSettings: Sendable, Hashable {
    package var listener = ListenerSettings(defaultsOf: ConsoleSettings.keys)
    package var sessions = ConsoleSessions.Limits()
    /// The origins under which a proxy offers the console.
    package var origins: [String] = []

    package init() {}
}

extension ConsoleSettings {
    private static let keys = ListenerSettings.Keys("console", title: "the console", port: 8090, isEnabled: true)
    private static let defaults = ConsoleSessions.Limits()
    private static let idle = Setting.duration(
        "console.idle",
        default: defaults.idle,
        in: .seconds(60) ... .seconds(86_400),
        "A login to the console ends when it has not been used for this time."
    )
    private static let lifetime = Setting.duration(
        "console.lifetime",
        default: defaults.lifetime,
        in: .seconds(60) ... .seconds(30 * 86_400),
        "A login to the console ends after this time, even if it is in use."
    )

    private static let proxied = Setting<[String]>.origins(
        "console.origins",
        maxCount: 16,
        "The origins under which a proxy on this machine offers the console. If the console listens on a loopback "
            + "address, it answers only under these origins and under local names such as localhost."
    )

    static let settings: [SettingDescriptor] = keys.all + [idle.descriptor, lifetime.descriptor, proxied.descriptor]

    /// - Throws: for invalid values, and for a console that other machines can reach without TLS.
    init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        listener = try ListenerSettings(values, Self.keys)
        sessions = ConsoleSessions.Limits(
            idle: try values.value(of: Self.idle),
            lifetime: try values.value(of: Self.lifetime)
        )
        origins = try values.value(of: Self.proxied)
        guard listener.isEnabled, !listener.isLoopback, listener.tls == nil else { return }
        throw SettingsError(problems: [
            "listeners.console.host = \"\(listener.host)\" can be reached by other machines, and the console's logins "
                + "would cross the network in the clear: give listeners.console.tls.certificate and "
                + "listeners.console.tls.privateKey, or listen on 127.0.0.1 behind a proxy or an SSH tunnel"
        ])
    }
}
