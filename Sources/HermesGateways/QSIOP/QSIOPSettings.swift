// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The rules of the QSIOP port.
package struct QSIOPSettings: GatewayOptions {
    /// Whether a report needs a token in addition to the `userid`.
    package var isTokenRequired = false

    package init() {}

    package init(isTokenRequired: Bool) { self.isTokenRequired = isTokenRequired }

    package var isAnonymousAllowed: Bool { !isTokenRequired }

    package mutating func requireAccount() { isTokenRequired = true }
}

extension GatewaySettings {
    package var device: QSIOPSettings {
        get { self[QSIOPGateway.self] }
        set { self[QSIOPGateway.self] = newValue }
    }
}

extension QSIOPSettings {
    package static let fields: [SettingField<Self>] = [
        .flag(
            \.isTokenRequired,
            "qsiop.requireToken",
            "Whether a device must send an access token of its account. If false, the user id is enough."
        )
    ]
}
