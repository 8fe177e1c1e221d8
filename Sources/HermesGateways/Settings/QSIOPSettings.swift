// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How the QSIOP port behaves.
package struct QSIOPSettings: Sendable, Hashable {
    /// Whether `userid` alone binds a connection to an account, or a token is needed as well.
    package var isTokenRequired: Bool

    package init(isTokenRequired: Bool = false) { self.isTokenRequired = isTokenRequired }
}
