// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Checks tokens that somebody else has issued (JWT).
package protocol TokenVerifier: Sendable {
    /// Whether a password is such a token at all, by its form; else it is taken for a password.
    func isToken(_ text: String) -> Bool

    /// Checks signature, times, audience and issuer.
    ///
    /// - Throws: `.invalidToken`; the message does not tell an attacker what would have been right.
    func verify(_ text: String, now: Timestamp) async throws(HermesError) -> VerifiedToken
}

/// What a valid token says.
package struct VerifiedToken: Sendable, Hashable {
    /// Who it was issued for.
    package var subject: String
    /// The topics it allows; nil: it says nothing about them.
    package var claims: TopicClaims?
    package var expiresAt: Timestamp?

    package init(subject: String, claims: TopicClaims? = nil, expiresAt: Timestamp? = nil) {
        self.subject = subject
        self.claims = claims
        self.expiresAt = expiresAt
    }
}
