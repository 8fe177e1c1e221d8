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

    package var isAnonymousAllowed = true
    /// Whether anonymous access is allowed even where other machines can reach the server.
    package var isAnonymousAllowedOnPublic = false
    /// The path of the file with the topic rules; nil if only the built-in rules apply.
    package var rulesPath: String?
    /// The settings for tokens of other issuers; nil if only the server's own tokens are accepted.
    package var tokens: Tokens?

    package init() {}

    package init(rulesPath: String? = nil, tokens: Tokens? = nil) {
        self.rulesPath = rulesPath
        self.tokens = tokens
    }
}

extension AccessSettings: SettingFields {
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

    private var rules: String {
        get { rulesPath ?? "" }
        set { rulesPath = newValue.isEmpty ? nil : newValue }
    }

    package static let fields: [SettingField<Self>] = [
        .flag(
            \.isAnonymousAllowed,
            "access.anonymous",
            "Whether room viewers and MQTT clients may connect without an account, and QSIOP devices without a token."
        ),
        .flag(
            \.isAnonymousAllowedOnPublic,
            "access.anonymousOnPublic",
            "Whether anonymous access is also allowed on addresses that other machines can reach. If false, the server "
                + "refuses to start when such an address would have anonymous access."
        ),
        .path(
            \.rules,
            "access.rules",
            isEmptyAllowed: true,
            "The file with the rules for MQTT topics (docs/access.md). It is read again on SIGHUP and when it changes."
        ),
        SettingField(
            \.tokens,
            [keys.descriptor, algorithms.descriptor, audience.descriptor, issuer.descriptor],
            read: { (values: SettingValues) throws(SettingsError) in try readTokens(values) }
        ),
    ]

    private static func readTokens(_ values: SettingValues) throws(SettingsError) -> Tokens? {
        let keysPath = try values.value(of: Self.keys)
        let audience = try values.value(of: Self.audience)
        let issuer = try values.value(of: Self.issuer)
        let algorithms = Set(try values.value(of: Self.algorithms))
        guard !keysPath.isEmpty else { return nil }
        return Tokens(
            keysPath: keysPath,
            algorithms: algorithms,
            audience: audience.isEmpty ? nil : audience,
            issuer: issuer.isEmpty ? nil : issuer
        )
    }
}
