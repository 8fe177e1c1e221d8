// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The description of one setting. Parsing and `check-config` use it, and the annotated `docs/hermes.yaml` and
/// `docs/configuration.md` are generated from it.
package struct SettingDescriptor: Sendable {
    /// The dotted key, for example `listeners.impb.port`.
    package let key: String
    /// The kind of value, for people: "whole number", "duration".
    package let kind: String
    /// The allowed values, for people: "1 to 65,535".
    package let allowed: String
    /// The default value, as the configuration file would write it.
    package let defaultText: String
    /// A one-line description.
    package let summary: String
    /// Whether the value is hidden in logs, errors and `check-config`.
    package let isSecret: Bool
    /// Whether a text is a valid value.
    let accepts: @Sendable (String) -> Bool

    /// Whether messages about invalid values leave out the value, because it may be a secret.
    var isValueHidden: Bool {
        isSecret || ["key", "password", "secret", "token"].contains { key.lowercased().contains($0) }
    }

    /// The components of the key.
    package var path: [String] { key.split(separator: ".").map(String.init) }

    /// The name of the environment variable, for example `HERMES_LISTENERS_IMPB_PORT`.
    package var environmentName: String {
        var name = "HERMES"
        for component in path {
            name += "_"
            var previous: Character?
            for character in component {
                if let previous, previous.isLowercase, character.isUppercase { name += "_" }
                name += character.uppercased()
                previous = character
            }
        }
        return name
    }
}
