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

extension ConsoleSettings: SettingFields {
    private static let keys = ListenerSettings.Keys("console", title: "the console", port: 8090)

    package static let fields: [SettingField<Self>] = [
        .listener(\.listener, keys),
        .duration(
            \.sessions.idle,
            "console.idle",
            in: .seconds(60) ... .seconds(86_400),
            "A login to the console ends when it has not been used for this time."
        ),
        .duration(
            \.sessions.lifetime,
            "console.lifetime",
            in: .seconds(60) ... .seconds(30 * 86_400),
            "A login to the console ends after this time, even if it is in use."
        ),
        .origins(
            \.origins,
            "console.origins",
            maxCount: 16,
            "The origins under which a proxy on this machine offers the console. If the console listens on a loopback "
                + "address, it answers only under these origins and under local names such as localhost."
        ),
    ]

    /// - Throws: for invalid values, and for a console that other machines can reach without TLS.
    package init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        try read(values)
        guard listener.isEnabled, !listener.isLoopback, listener.tls == nil else { return }
        throw SettingsError(problems: [
            "listeners.console.host = \"\(listener.host)\" can be reached by other machines, and the console's logins "
                + "would cross the network in the clear: give listeners.console.tls.certificate and "
                + "listeners.console.tls.privateKey, or listen on 127.0.0.1 behind a proxy or an SSH tunnel"
        ])
    }
}
