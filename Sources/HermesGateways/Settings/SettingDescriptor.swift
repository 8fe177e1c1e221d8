// Hermes
// SPDX-License-Identifier: Apache-2.0

/// What is known about one setting before anybody gives it a value: from this come parsing, `check-config`, the
/// annotated `docs/hermes.yaml` and `docs/configuration.md`.
package struct SettingDescriptor: Sendable {
    /// The dotted key, for example `listeners.impb.port`.
    package let key: String
    /// What kind of value, for people: "whole number", "duration".
    package let kind: String
    /// What is allowed, for people: "1 to 65,535".
    package let allowed: String
    /// The default as it would be written in the file.
    package let defaultText: String
    /// One line that says what it does.
    package let summary: String
    /// Never shown in logs, errors or `check-config`.
    package let isSecret: Bool
    /// Whether a text is a value of this setting.
    let accepts: @Sendable (String) -> Bool

    /// The components of the key.
    package var path: [String] { key.split(separator: ".").map(String.init) }

    /// The name of the environment variable: `HERMES_LISTENERS_IMPB_PORT`.
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
