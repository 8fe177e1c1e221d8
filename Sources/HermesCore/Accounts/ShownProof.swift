// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The proof that a login showed. A login may make changes that outlast it, such as a new device or a push token. Such
/// changes are stored only while the proof is valid; the store checks this within the commit.
package enum ShownProof: Sendable, Hashable {
    case token(TokenHash)
    /// The password, represented by the stored hash that it matched.
    case password(PasswordHash)
    /// A proof that a new password does not invalidate: a claim, a third party's statement, or an action of the
    /// operator.
    case other

    /// The hash of the shown token; nil if the proof is not a token.
    package var token: TokenHash? {
        if case .token(let token) = self { token } else { nil }
    }

    /// - Parameters:
    ///   - present: the password hash that is stored now.
    ///   - isTokenKnown: whether ``token`` still belongs to the account.
    /// - Returns: the error if the proof is no longer valid; otherwise nil.
    package func refusal(password present: PasswordHash, isTokenKnown: Bool) -> HermesError? {
        switch self {
        case .token: isTokenKnown ? nil : StoreRefusals.tokenRevoked
        case .password(let shown): shown == present ? nil : StoreRefusals.passwordChanged
        case .other: nil
        }
    }
}
