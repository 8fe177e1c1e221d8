// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The address of the STUN listener, for direct links between clients.
package struct STUNSettings: Sendable, Hashable {
    package var isEnabled = false
    /// The IP address or host name to listen on.
    package var host = "127.0.0.1"
    /// The UDP port; 0 lets the system choose a free port.
    package var port = STUNListener.defaultPort

    package init() {}
}

extension STUNSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .flag(
            \.isEnabled,
            "listeners.stun.enabled",
            "Whether the server answers STUN Binding requests. The answer tells a client the UDP address from which "
                + "its packets reach the server. Clients need this address for direct links."
        ),
        .text(
            \.host,
            "listeners.stun.host",
            maxBytes: 255,
            kind: "address",
            "The address to listen on. 0.0.0.0 or :: means all addresses."
        ),
        .number(
            \.port,
            "listeners.stun.port",
            in: 0...65_535,
            "The UDP port. With 0, the system chooses a free port."
        ),
    ]
}
