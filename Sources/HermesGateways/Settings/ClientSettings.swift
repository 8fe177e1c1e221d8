// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The settings of the services that the server offers to the client SDK in addition to the protocols.
package struct ClientSettings: Sendable, Hashable {
    /// Whether the server suggests heartbeat intervals to clients. The server derives them from other clients in
    /// networks of the same name.
    package var sharesHeartbeats: Bool

    package init(sharesHeartbeats: Bool = false) { self.sharesHeartbeats = sharesHeartbeats }
}

extension ClientSettings {
    private static let defaults = ClientSettings()

    private static let sharesHeartbeats = Setting<Bool>.flag(
        "clients.heartbeatPriors",
        default: defaults.sharesHeartbeats,
        "Whether the server sends clients the heartbeat interval that other clients have learned in networks of the "
            + "same kind."
    )

    static let settings: [SettingDescriptor] = [sharesHeartbeats.descriptor]

    init(_ values: SettingValues) throws(SettingsError) {
        self.init(sharesHeartbeats: try values.value(of: Self.sharesHeartbeats))
    }
}
