// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The settings of the services that the server offers to the client SDK in addition to the protocols.
package struct ClientSettings: Sendable, Hashable {
    /// Whether the server suggests heartbeat intervals to clients. The server derives them from other clients in
    /// networks of the same name.
    package var sharesHeartbeats = false

    package init() {}
}

extension ClientSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .flag(
            \.sharesHeartbeats,
            "clients.heartbeatPriors",
            "Whether the server sends clients the heartbeat interval that other clients have learned in networks of "
                + "the same kind."
        )
    ]
}
