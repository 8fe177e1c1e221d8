// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rules of the QSIOP port.
package struct QSIOPSettings: Sendable, Hashable {
    /// Whether a token is required beside `userid`.
    package var isTokenRequired: Bool

    package init(isTokenRequired: Bool = false) { self.isTokenRequired = isTokenRequired }
}
