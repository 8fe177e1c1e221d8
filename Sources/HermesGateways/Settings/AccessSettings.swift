// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The access rules: who may connect, and how that is decided.
package struct AccessSettings: Sendable, Hashable {
    /// The signature algorithms of JSON Web Tokens.
    package enum TokenAlgorithm: String, CaseIterable, Sendable {
        case hs256 = "HS256"
        case rs256 = "RS256"
        case es256 = "ES256"
    }

    /// The settings for JSON Web Tokens of other issuers.
    package struct Tokens: Sendable, Hashable {
        /// The path of the file with the keys: a PEM public key, a secret for HS256, or a JWKS.
        package var keysPath: String
        package var algorithms: Set<TokenAlgorithm>
        /// The value that the claim `aud` must contain; nil if any value is accepted.
        package var audience: String?
        /// The value that the claim `iss` must equal; nil if any value is accepted.
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
    /// Whether anonymous access is allowed even where other machines can reach the server.
    package var isAnonymousAllowedOnPublic: Bool
    /// The path of the file with the topic rules; nil if only the built-in rules apply.
    package var rulesPath: String?
    /// The settings for tokens of other issuers; nil if only the server's own tokens are accepted.
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
    private static let defaults = AccessSettings()

    private static let anonymous = Setting.flag(
        "access.anonymous",
        default: defaults.isAnonymousAllowed,
        "Whether room viewers and MQTT clients may connect without an account, and QSIOP devices without a token."
    )
    private static let anonymousOnPublic = Setting.flag(
        "access.anonymousOnPublic",
        default: defaults.isAnonymousAllowedOnPublic,
        "Whether anonymous access is also allowed on addresses that other machines can reach. If false, the server "
            + "refuses to start when such an address would have anonymous access."
    )
    private static let rules = Setting.path(
        "access.rules",
        default: "",
        isEmptyAllowed: true,
        "The file with the rules for MQTT topics (docs/access.md). It is read again on SIGHUP and when it changes."
    )
    private static let keys = Setting.path(
        "access.jwt.keys",
        default: "",
        isEmptyAllowed: true,
        "The file with a PEM public key, a secret for HS256, or a JWKS. If it is given, MQTT clients may use JSON Web "
            + "Tokens as passwords."
    )
    private static let algorithms = Setting<[TokenAlgorithm]>.choices(
        "access.jwt.algorithms",
        default: TokenAlgorithm.allCases,
        "The accepted signature algorithms of JSON Web Tokens. Each key is used only with its own algorithm."
    )
    private static let audience = Setting.text(
        "access.jwt.audience",
        default: "",
        maxBytes: 255,
        isEmptyAllowed: true,
        "The required audience (aud) of JSON Web Tokens. If empty, every audience is accepted."
    )
    private static let issuer = Setting.text(
        "access.jwt.issuer",
        default: "",
        maxBytes: 255,
        isEmptyAllowed: true,
        "The required issuer (iss) of JSON Web Tokens. If empty, every issuer is accepted."
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
