// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Verifies tokens from other issuers (JWT).
package protocol TokenVerifier: Sendable {
    /// Whether a password has the form of such a token.
    func isToken(_ text: String) -> Bool

    /// Checks the signature, the times, the audience and the issuer of a token.
    ///
    /// - Throws: `.invalidToken`; the message does not reveal the expected values.
    func verify(_ text: String, now: Timestamp) async throws(HermesError) -> VerifiedToken
}

/// The contents of a valid token.
package struct VerifiedToken: Sendable, Hashable {
    /// The token's subject.
    package var subject: String
    /// The topics that the token allows; nil if the token does not restrict the topics.
    package var claims: TopicClaims?
    package var expiresAt: Timestamp?

    package init(subject: String, claims: TopicClaims? = nil, expiresAt: Timestamp? = nil) {
        self.subject = subject
        self.claims = claims
        self.expiresAt = expiresAt
    }
}
