// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The address of the STUN listener, for direct links between clients.
package struct STUNSettings: Sendable, Hashable {
    package var isEnabled: Bool
    /// The IP address or host name to listen on.
    package var host: String
    /// The UDP port; 0 lets the system choose a free port.
    package var port: Int

    package init(isEnabled: Bool = false, host: String = "127.0.0.1", port: Int = STUNListener.defaultPort) {
        self.isEnabled = isEnabled
        self.host = host
        self.port = port
    }
}

extension STUNSettings {
    private static let defaults = STUNSettings()

    private static let enabled = Setting.flag(
        "listeners.stun.enabled",
        default: defaults.isEnabled,
        "Whether the server answers STUN Binding requests. The answer tells a client the UDP address from which its "
            + "packets reach the server. Clients need this address for direct links."
    )
    private static let host = Setting.text(
        "listeners.stun.host",
        default: defaults.host,
        maxBytes: 255,
        kind: "address",
        "The address to listen on. 0.0.0.0 or :: means all addresses."
    )
    private static let port = Setting.number(
        "listeners.stun.port",
        default: defaults.port,
        in: 0...65_535,
        "The UDP port. With 0, the system chooses a free port."
    )

    /// The settings below `listeners.stun`.
    package static let settings: [SettingDescriptor] = [enabled.descriptor, host.descriptor, port.descriptor]

    package init(_ values: SettingValues) throws(SettingsError) {
        self.init(
            isEnabled: try values.value(of: Self.enabled),
            host: try values.value(of: Self.host),
            port: try values.value(of: Self.port)
        )
    }
}
