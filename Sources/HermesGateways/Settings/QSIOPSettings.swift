// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rules of the QSIOP port.
package struct QSIOPSettings: Sendable, Hashable {
    /// Whether a token is required beside `userid`.
    package var isTokenRequired: Bool

    package init(isTokenRequired: Bool = false) { self.isTokenRequired = isTokenRequired }
}

extension QSIOPSettings {
    private static let requireToken = Setting.flag(
        "qsiop.requireToken",
        default: false,
        "Whether a device needs a token for an account; if not, the user id is enough."
    )

    /// The settings below `qsiop`.
    package static let settings: [SettingDescriptor] = [requireToken.descriptor]

    /// Without anonymous access a token is always required.
    package init(_ values: SettingValues, isAnonymousAllowed: Bool) throws(SettingsError) {
        let required = try values.value(of: Self.requireToken)
        self.init(isTokenRequired: required || !isAnonymousAllowed)
    }
}
