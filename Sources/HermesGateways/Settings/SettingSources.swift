// Hermes
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Foundation
package import HermesCore
import Yams

/// The sources of the settings' values, in order of precedence: command line, environment (`HERMES_…`), file.
package struct SettingSources: Sendable {
    /// The environment variables that the commands use. They begin with `HERMES_` but are not settings.
    static let commandVariables: Set<String> = ["HERMES_API_KEY", "HERMES_CONFIG", "HERMES_PASSWORD"]
    /// The variables of the build and of the tests. No message mentions them.
    static let buildVariables: Set<String> = ["HERMES_BIN", "HERMES_DEV", "HERMES_STRICT"]
    /// The prefix of the variables that the programs in `Interop` use.
    static let otherPrefix = "HERMES_INTEROP_"

    /// The size of the largest settings file, in bytes.
    package static let maxFileBytes = 1 << 20

    /// The arguments of `hermes serve`: `--listeners.impb.port 7000` or `--listeners.impb.port=7000`.
    package var arguments: [String]
    package var environment: [String: String]
    /// The path of a YAML file; nil for none.
    package var file: String?

    package init(arguments: [String] = [], environment: [String: String] = [:], file: String? = nil) {
        self.arguments = arguments
        self.environment = environment
        self.file = file
    }

    /// Reads all sources, and checks every value against its setting. An unknown key is also a problem.
    /// - Throws: one error with all problems.
    package func load(_ settings: [SettingDescriptor]) throws(SettingsError) -> SettingValues {
        var problems: [String] = []
        let fromArguments = argumentEntries(settings, &problems)
        let fromFile = fileEntries(settings, &problems)
        checkEnvironment(settings, &problems)
        let sources: [(provider: any ConfigProvider, origin: (SettingDescriptor) -> String)] = [
            (Self.provider("command line", fromArguments.mapValues(\.text)), { _ in "command line" }),
            (
                EnvironmentVariablesProvider(environmentVariables: environment).prefixKeys(with: "hermes"),
                { $0.environmentName }
            ),
            (Self.provider("file", fromFile.mapValues(\.text)), { fromFile[$0.key]?.origin ?? "file" }),
        ]
        var values = SettingValues()
        for setting in settings {
            let key = AbsoluteConfigKey(setting.path)
            for source in sources {
                guard
                    let found = try? source.provider.value(forKey: key, type: .string).value,
                    case .string(let text) = found.content
                else { continue }
                values.given[setting.key] = .init(text: text, origin: source.origin(setting))
                break
            }
        }
        problems += values.problems(with: settings)
        guard problems.isEmpty else { throw SettingsError(problems: problems) }
        return values
    }

    private static func provider(_ name: String, _ texts: [String: String]) -> InMemoryProvider {
        var values: [AbsoluteConfigKey: ConfigValue] = [:]
        for (key, text) in texts {
            let path = key.split(separator: ".").map(String.init)
            values[AbsoluteConfigKey(path)] = ConfigValue(.string(text), isSecret: false)
        }
        return InMemoryProvider(name: name, values: values)
    }

    private func argumentEntries(
        _ settings: [SettingDescriptor],
        _ problems: inout [String]
    ) -> [String: SettingValues.Given] {
        var entries: [String: SettingValues.Given] = [:]
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument.hasPrefix("--") else {
                problems.append("\"\(argument)\" is not understood; give a setting as --KEY VALUE")
                continue
            }
            let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let key = String(parts[0])
            // If the value is missing, the next option must not be mistaken for the value.
            let isValueNext = rest.first.map { !$0.hasPrefix("--") } ?? false
            guard let value = parts.count == 2 ? String(parts[1]) : isValueNext ? rest.popFirst() : nil else {
                problems.append("--\(key) needs a value")
                continue
            }
            guard settings.contains(where: { $0.key == key }) else {
                problems.append(Self.unknown("--\(key)", "--", key, settings.map(\.key)))
                continue
            }
            entries[key] = .init(text: value, origin: "command line")
        }
        return entries
    }

    private func checkEnvironment(_ settings: [SettingDescriptor], _ problems: inout [String]) {
        let names = Set(settings.map(\.environmentName)).union(Self.commandVariables)
        for (name, value) in environment.sorted(by: { $0.key < $1.key })
        where name.hasPrefix("HERMES_") && !names.contains(name) && !Self.buildVariables.contains(name)
            && !name.hasPrefix(Self.otherPrefix) && !Self.isOfKubernetes(name, value)
        {
            problems.append(Self.unknown("\(name) in the environment", "", name, names.sorted()))
        }
    }

    /// Whether a variable is one of those that Kubernetes sets in the pods of a namespace to describe a Service with
    /// the name `hermes` (kubernetes.io, "Discovering services").
    private static func isOfKubernetes(_ name: String, _ value: String) -> Bool {
        // Kubernetes gives an address such as "tcp://10.0.0.1:80". A user who mistakes the name for a setting gives a
        // number.
        if name == "HERMES_PORT" { return value.contains("://") }
        if name == "HERMES_SERVICE_HOST" || name == "HERMES_SERVICE_PORT" { return true }
        if name.hasPrefix("HERMES_SERVICE_PORT_") { return true }
        let prefix = "HERMES_PORT_"
        guard name.hasPrefix(prefix) else { return false }
        let words = name.dropFirst(prefix.count).split(separator: "_", omittingEmptySubsequences: false)
        guard words.count == 2 || words.count == 3 && ["PROTO", "PORT", "ADDR"].contains(words[2]) else {
            return false
        }
        return UInt16(words[0]) != nil && ["TCP", "UDP", "SCTP"].contains(words[1])
    }

    private func fileEntries(
        _ settings: [SettingDescriptor],
        _ problems: inout [String]
    ) -> [String: SettingValues.Given] {
        guard let file else { return [:] }
        let data: Data
        do {
            data = try BoundedFile.read(file, maxBytes: Self.maxFileBytes)
        } catch {
            problems.append("the configuration file \"\(AbsolutePath.of(file))\" cannot be read: \(error)")
            return [:]
        }
        let root: Node?
        do {
            root = try Yams.compose(yaml: String(decoding: data, as: UTF8.self))
        } catch {
            problems.append("\"\(file)\" is not YAML: \(error)")
            return [:]
        }
        guard let root, root.null == nil else { return [:] }
        guard let mapping = root.mapping else {
            problems.append("\"\(file)\" must hold keys and values, such as \"log:\" and below it \"  level: debug\"")
            return [:]
        }
        var reader = SettingFileReader(file: file, keys: Set(settings.map(\.key)))
        reader.read(mapping, below: "")
        problems += reader.problems
        return reader.entries
    }

    /// Returns the names of the file's sections below `listeners` that have a key `protocol`.
    func namesInFile() -> [String] {
        guard let file, let data = try? BoundedFile.read(file, maxBytes: Self.maxFileBytes),
            let listeners = try? Yams.compose(yaml: String(decoding: data, as: UTF8.self))?.mapping?["listeners"]?
                .mapping
        else { return [] }
        return listeners.compactMap { name, node in
            node.mapping?["protocol"] == nil ? nil : name.scalar?.string
        }
    }

    /// Returns the problem with an unknown setting. Its value is left out, because it may be a secret.
    static func unknown(_ place: String, _ prefix: String, _ key: String, _ keys: some Collection<String>) -> String {
        let problem = "unknown setting \(place)"
        if let name = FurtherListener.nameWithoutProtocol(key, keys) {
            return "\(problem): the listener \(name) needs listeners.\(name).protocol"
        }
        // If the key is a section with only one setting, the hint names this setting. For example, the hint for
        // `data` is `data.directory`.
        let inner = keys.filter { $0.hasPrefix(key + ".") || $0.hasPrefix(key + "_") }
        let nearest = inner.count == 1 ? inner.first : SettingsError.nearest(to: key, among: keys)
        let hint = nearest.map { "; did you mean \(prefix)\($0)?" }
        return problem + (hint ?? "; \"hermes check-config --print-annotated\" prints all settings")
    }
}

/// Flattens a YAML mapping to dotted keys.
private struct SettingFileReader {
    let file: String
    let keys: Set<String>
    var entries: [String: SettingValues.Given] = [:]
    var problems: [String] = []

    init(file: String, keys: Set<String>) {
        self.file = file
        self.keys = keys
    }

    /// Reads a mapping. The depth of the recursion is bounded, because only sections with known keys are entered.
    mutating func read(_ mapping: Node.Mapping, below prefix: String) {
        for (keyNode, node) in mapping {
            let key = prefix + (keyNode.scalar?.string ?? "?")
            let place = "\(file), line \(keyNode.mark?.line ?? 0)"
            let isSection = keys.contains { $0.hasPrefix(key + ".") }
            if isSection, let inner = node.mapping {
                read(inner, below: key + ".")
            } else if isSection, node.null != nil {
                continue
            } else if !keys.contains(key) {
                let allowed = isSection ? "\(key) holds further keys, not a value" : nil
                let problem = SettingSources.unknown("\(key) (\(place))", "", key, keys)
                problems.append(allowed.map { "\($0) (\(place))" } ?? problem)
            } else if let scalar = node.scalar {
                entries[key] = .init(text: scalar.string, origin: place)
            } else {
                problems.append("\(key) (\(place)) must be a single value")
            }
        }
    }
}
