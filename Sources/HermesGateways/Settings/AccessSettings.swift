// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The access rules: who may connect, and how that is decided.
package struct AccessSettings: Sendable, Hashable {
    /// The signature algorithms of JSON Web Tokens.
    package enum TokenAlgorithm: String, CaseIterable, Sendable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
    }

    /// Tokens of other issuers.
    package struct Tokens: Sendable, Hashable {
        /// A PEM public key, a secret for HS256, or a JWKS.
        package var keysPath: String
        package var algorithms: Set<TokenAlgorithm>
        /// The value that `aud` must contain; nil: any.
        package var audience: String?
        /// The value that `iss` must equal; nil: any.
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
    /// Whether anonymous access is allowed even where other machines reach the server.
    package var isAnonymousAllowedOnPublic: Bool
    /// The file of the topic rules; nil: only the built-in ones.
    package var rulesPath: String?
    /// Nil: only the server's own tokens.
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
