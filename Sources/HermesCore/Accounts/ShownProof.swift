// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What a login showed. What it wants to leave for later, such as a new device or a push token, is stored only while
/// this is still good: the store asks within the commit.
package enum ShownProof: Sendable, Hashable {
    case token(TokenHash)
    /// The password, by the hash that it was compared with.
    case password(PasswordHash)
    /// Nothing that a new password revokes: a claim, the word of others, or the operator.
    case other

    /// The token, if one was shown.
    package var token: TokenHash? {
        if case .token(let token) = self { token } else { nil }
    }

    /// - Parameters:
    ///   - present: the stored password.
    ///   - isTokenKnown: whether the account has ``token``.
    /// - Returns: nil if it is still good.
    package func refusal(password present: PasswordHash, isTokenKnown: Bool) -> HermesError? {
        switch self {
        case .token: isTokenKnown ? nil : StoreRefusals.tokenRevoked
        case .password(let shown): shown == present ? nil : StoreRefusals.passwordChanged
        case .other: nil
        }
    }
}
