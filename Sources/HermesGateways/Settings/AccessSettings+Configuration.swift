// Hermes
// SPDX-License-Identifier: Apache-2.0

extension AccessSettings {
    private static let anonymous = Setting.flag(
        "access.anonymous",
        default: true,
        "Whether a room viewer or an MQTT client needs no account and a QSIOP device no token."
    )
    private static let anonymousOnPublic = Setting.flag(
        "access.anonymousOnPublic",
        default: false,
        "Must be true for anonymous access on an address that other machines reach."
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
        "File with a PEM public key, a secret for HS256, or a JWKS: JSON Web Tokens are taken as MQTT passwords."
    )
    private static let algorithms = Setting<[TokenAlgorithm]>.choices(
        "access.jwt.algorithms",
        default: TokenAlgorithm.allCases,
        "How JSON Web Tokens may be signed; each key is used with its own algorithm alone."
    )
    private static let audience = Setting.text(
        "access.jwt.audience",
        default: "",
        maxBytes: 255,
        isEmptyAllowed: true,
        "What a JSON Web Token must name as its audience (aud); empty: anything."
    )
    private static let issuer = Setting.text(
        "access.jwt.issuer",
        default: "",
        maxBytes: 255,
        isEmptyAllowed: true,
        "What a JSON Web Token must name as its issuer (iss); empty: anything."
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
