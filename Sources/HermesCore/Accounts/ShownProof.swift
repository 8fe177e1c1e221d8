// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The proof that a login showed. Lasting changes of the login, such as a new device or a push token, are stored only
/// while this proof is valid: the store checks it within the commit.
package enum ShownProof: Sendable, Hashable {
    case token(TokenHash)
    /// The password, by the hash that it was compared with.
    case password(PasswordHash)
    /// A proof that a new password does not revoke: a claim, a third party's statement, or the operator.
    case other

    /// The token, if one was shown.
    package var token: TokenHash? {
        if case .token(let token) = self { token } else { nil }
    }

    /// - Parameters:
    ///   - present: the stored password.
    ///   - isTokenKnown: whether the account has ``token``.
    /// - Returns: nil if the proof is still valid.
    package func refusal(password present: PasswordHash, isTokenKnown: Bool) -> HermesError? {
        switch self {
        case .token: isTokenKnown ? nil : StoreRefusals.tokenRevoked
        case .password(let shown): shown == present ? nil : StoreRefusals.passwordChanged
        case .other: nil
        }
    }
}
