// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Who may come in, and what decides it.
package struct AccessSettings: Sendable, Hashable {
    /// How a JSON Web Token is signed.
    package enum TokenAlgorithm: String, CaseIterable, Sendable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
    }

    /// Tokens that somebody else issues.
    package struct Tokens: Sendable, Hashable {
        /// A PEM public key, a secret for HS256, or a JWKS.
        package var keysPath: String
        package var algorithms: Set<TokenAlgorithm>
        /// What `aud` must hold; nil: anything.
        package var audience: String?
        /// What `iss` must be; nil: anything.
        package var issuer: String?

        package init(
            keysPath: String,
            algorithms: Set<TokenAlgorithm> = Set(TokenAlgorithm.allCases),
            audience: String? = nil,
            issuer: String? = nil
        ) {
            self.keysPath = keysPath
            self.algorithms = algorithms
            self.audience = audience
            self.issuer = issuer
        }
    }

    package var isAnonymousAllowed: Bool
    /// Anonymous access also where other machines reach the server.
    package var isAnonymousAllowedOnPublic: Bool
    /// The file of the topic rules; nil: the built-in ones alone.
    package var rulesPath: String?
    /// Nil: no tokens but the server's own.
    package var tokens: Tokens?

    package init(
        isAnonymousAllowed: Bool = true,
        isAnonymousAllowedOnPublic: Bool = false,
        rulesPath: String? = nil,
        tokens: Tokens? = nil
    ) {
        self.isAnonymousAllowed = isAnonymousAllowed
        self.isAnonymousAllowedOnPublic = isAnonymousAllowedOnPublic
        self.rulesPath = rulesPath
        self.tokens = tokens
    }
}
