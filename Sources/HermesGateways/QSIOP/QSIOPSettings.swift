// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The rules of the QSIOP port.
package struct QSIOPSettings: GatewayOptions {
    /// Whether a report needs a token in addition to the `userid`.
    package var isTokenRequired: Bool

    package init(isTokenRequired: Bool) { self.isTokenRequired = isTokenRequired }

    package init() { self.init(isTokenRequired: false) }

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
    private static let defaults = QSIOPSettings()

    private static let requireToken = Setting.flag(
        "qsiop.requireToken",
        default: defaults.isTokenRequired,
        "Whether a device must send an access token of its account. If false, the user id is enough."
    )

    /// The settings below `qsiop`.
    package static let settings: [SettingDescriptor] = [requireToken.descriptor]

    package init(_ values: SettingValues) throws(SettingsError) {
        self.init(isTokenRequired: try values.value(of: Self.requireToken))
    }
}
