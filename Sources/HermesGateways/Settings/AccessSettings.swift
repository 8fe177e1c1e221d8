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

extension AccessSettings {
    private static let anonymous = Setting.flag(
        "access.anonymous",
        default: true,
        "Whether room viewers and MQTT clients may connect without an account, and QSIOP devices without a token."
    )
    private static let anonymousOnPublic = Setting.flag(
        "access.anonymousOnPublic",
        default: false,
        "Must be true to allow anonymous access on an address that other machines can reach."
    )
    private static let rules = Setting.path(
        "access.rules",
        default: "",
        isEmptyAllowed: true,
        "File with rules for MQTT topics (docs/access.md); read again on SIGHUP and when it changes."
    )
    private static let keys = Setting.path(
        "access.jwt.keys",
        default: "",
        isEmptyAllowed: true,
        "File with a PEM public key, a secret for HS256, or a JWKS, to accept JSON Web Tokens as MQTT passwords."
    )
    private static let algorithms = Setting<[TokenAlgorithm]>.choices(
        "access.jwt.algorithms",
        default: TokenAlgorithm.allCases,
        "Accepted signature algorithms of JSON Web Tokens; each key is used only with its own algorithm."
    )
    private static let audience = Setting.text(
        "access.jwt.audience",
        default: "",
        maxBytes: 255,
        isEmptyAllowed: true,
        "The required audience (aud) of JSON Web Tokens; empty: any."
    )
    private static let issuer = Setting.text(
        "access.jwt.issuer",
        default: "",
        maxBytes: 255,
        isEmptyAllowed: true,
        "The required issuer (iss) of JSON Web Tokens; empty: any."
    )

    /// The settings below `access`.
    package static let settings: [SettingDescriptor] = [
        anonymous.descriptor, anonymousOnPublic.descriptor, rules.descriptor, keys.descriptor, algorithms.descriptor,
        audience.descriptor, issuer.descriptor,
    ]

    package init(_ values: SettingValues) throws(SettingsError) {
        let rulesPath = try values.value(of: Self.rules)
        let keysPath = try values.value(of: Self.keys)
        let audience = try values.value(of: Self.audience)
        let issuer = try values.value(of: Self.issuer)
        let algorithms = Set(try values.value(of: Self.algorithms))
        self.init(
            isAnonymousAllowed: try values.value(of: Self.anonymous),
            isAnonymousAllowedOnPublic: try values.value(of: Self.anonymousOnPublic),
            rulesPath: rulesPath.isEmpty ? nil : rulesPath,
            tokens: keysPath.isEmpty
                ? nil
                : Tokens(
                    keysPath: keysPath,
                    algorithms: algorithms,
                    audience: audience.isEmpty ? nil : audience,
                    issuer: issuer.isEmpty ? nil : issuer
                )
        )
    }
}
