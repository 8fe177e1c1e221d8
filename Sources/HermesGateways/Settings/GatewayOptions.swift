// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The settings of one protocol, without the settings of its listeners.
package protocol GatewayOptions: SettingFields, Hashable {
    /// Whether clients may connect without an account, if `access.anonymous` allows it.
    var isAnonymousAllowed: Bool { get }

    /// Changes the options so that clients without an account are refused.
    mutating func requireAccount()
}

/// The options of a protocol that has no settings and whose clients always log in.
package struct NoOptions: GatewayOptions {
    package static let fields: [SettingField<Self>] = []

    package init() {}

    package var isAnonymousAllowed: Bool { false }

    package func requireAccount() {}
}
