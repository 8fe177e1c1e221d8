// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways

/// Writes the list of settings as files for people: `docs/hermes.yaml` and `docs/configuration.md`.
package enum ConfigurationText {
    /// Returns a configuration file with all defaults.
    package static func annotatedFile() -> String {
        var text = """
            # Every setting of Hermes with its default. Leave out the settings that you do not change. To use this file, run
            # `hermes serve --config hermes.yaml`. To check it, run `hermes check-config --config hermes.yaml`. `hermes serve`
            # needs no settings file.
            # Written by scripts/generate-docs from the server's own list of settings.

            """
        var open: [String] = []
        for setting in ServerSettings.all {
            let path = setting.path
            let sections = path.dropLast()
            var depth = 0
            while depth < min(open.count, sections.count), open[depth] == sections[depth] { depth += 1 }
            if depth == 0 { text += "\n" }
            for level in depth..<sections.count {
                text += indent(level) + "\(sections[level]):\n"
            }
            open = Array(sections)
            let level = sections.count
            text += indent(level) + "# \(setting.summary)\n"
            text += indent(level) + "# \(capitalized(setting.kind)): \(setting.allowed).\n"
            text += indent(level) + "\(path[level]): \(yaml(setting.defaultText))\n"
        }
        return text
    }

    private static func capitalized(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }

    /// The names of the protocols that a further listener may serve, except MQTT.
    private static let otherProtocols = GatewayCatalog.all.map { $0.name }.filter { $0 != MQTTGateway.name }.sorted()
        .joined(separator: ", ")

    /// Returns the reference of all settings, as Markdown.
    package static func reference() -> String {
        var text = """
            # Configuration

            Every setting has a default that works on a laptop; `hermes serve` needs no file. A setting can be given in three
            places. If it is given in more than one of them, the first place in this list counts:

            1. the command line: `hermes serve --listeners.impb.port 7000`
            2. the environment: `HERMES_LISTENERS_IMPB_PORT=7000`
            3. a YAML file, given with `--config FILE` or `HERMES_CONFIG`; [hermes.yaml](hermes.yaml) contains every setting

            If a setting is unknown or a value is invalid, the server does not start. It exits with code 78 and a message that names
            the setting. For an invalid value, the message also names the allowed values. It shows the invalid value, unless this
            value may be a secret. For an unknown setting, the message suggests a similar setting if there is one.
            `hermes check-config` checks the configuration without starting the server. `hermes check-config --show` prints the
            values in force and their sources. Both `hermes check-config` and `hermes serve` warn about settings that are allowed
            but probably not intended.

            Sizes and durations are written with a unit: `64 KiB`, `10 s`.

            A relative path is relative to the working directory of the server, even if the path is in a YAML file in another
            directory. A path must not be `~` or begin with `~/`.

            A protocol may have further listeners. Each of them needs a protocol, a port and an unused name. A name begins with a
            lower-case letter, contains only lower-case letters and digits, and has at most 32 characters. The other settings of a
            further listener are those of `listeners.mqtt`, without `unixSocket`. `tls.identityFromCertificate` is allowed only for
            MQTT. `anonymous` has no effect for Delimited and IMPB. For example:

                listeners:
                  factory:
                    protocol: mqtt        # or \(otherProtocols)
                    host: 192.0.2.10
                    port: 8884
                    anonymous: false      # anonymous clients are refused here
                    tls:
                      certificate: factory.pem
                      privateKey: factory.key

            As a variable, the first of these settings is `HERMES_LISTENERS_FACTORY_PROTOCOL=mqtt`.

            `scripts/generate-docs` writes this page from the server's own list of settings.

            """
        var section = ""
        for setting in ServerSettings.all {
            let path = setting.path
            let name = path.count > 1 ? path[0] == "listeners" ? "listeners.\(path[1])" : path[0] : "other"
            if name != section {
                section = name
                text += "\n## \(name)\n\n| Setting | Default | Allowed | Meaning |\n| --- | --- | --- | --- |\n"
            }
            let value = setting.defaultText.isEmpty ? "none" : "`\(setting.defaultText)`"
            text += "| `\(setting.key)`<br>`\(setting.environmentName)` | \(value) | \(setting.allowed) | "
            text += "\(setting.summary) |\n"
        }
        return text
    }

    /// Returns the values in force and their sources, one line per setting.
    static func effective(_ values: SettingValues, of settings: [SettingDescriptor]) -> String {
        inForce(values, of: settings).map { "\($0.key): \(yaml($0.text))  # \($0.origin)\n" }.joined()
    }

    /// Returns the values in force and their sources.
    static func inForce(_ values: SettingValues, of settings: [SettingDescriptor]) -> [ConfiguredValue] {
        settings.map { setting in
            let given = values.given[setting.key]
            let text = setting.isSecret && given != nil ? "…" : given?.text ?? setting.defaultText
            return ConfiguredValue(key: setting.key, text: text, origin: given?.origin ?? "default")
        }
    }

    private static func indent(_ level: Int) -> String { String(repeating: "  ", count: level) }

    private static func yaml(_ text: String) -> String {
        let isPlain = text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || " ./_-".contains($0)) }
        return isPlain && !text.isEmpty ? text : "\"\(text)\""
    }
}

/// A setting's value in force.
package struct ConfiguredValue: Sendable, Hashable {
    package let key: String
    /// The value; "…" if it is a secret that was given.
    package let text: String
    /// The source of the value: "default", "command line", a variable, or a line of a file.
    package let origin: String
}
