// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The values that the sources give, with their origins. A setting without a given value has its default.
package struct SettingValues: Sendable {
    /// A value in its written form.
    package struct Given: Sendable, Hashable {
        package let text: String
        /// The origin for people: "hermes.yaml, line 3", "HERMES_LOG_LEVEL", "command line".
        package let origin: String

        package init(text: String, origin: String) {
            self.text = text
            self.origin = origin
        }
    }

    /// The given values, by dotted key.
    package var given: [String: Given]

    /// - Parameter given: the values, by dotted key. Tests and programs that embed the server pass them.
    package init(given: [String: Given] = [:]) { self.given = given }

    /// Returns the given value of a setting, or its default.
    /// - Throws: if the given text is not a valid value.
    package func value<Value>(of setting: Setting<Value>) throws(SettingsError) -> Value {
        let descriptor = setting.descriptor
        let text = given[descriptor.key]?.text ?? descriptor.defaultText
        guard let value = setting.parse(text) else { throw SettingsError(problems: [problem(with: descriptor)]) }
        return value
    }

    /// Returns the problems of the values that are given for these settings, one sentence each.
    package func problems(with settings: [SettingDescriptor]) -> [String] {
        settings.filter { !$0.accepts(given[$0.key]?.text ?? $0.defaultText) }.map(problem(with:))
    }

    private func problem(with descriptor: SettingDescriptor) -> String {
        let origin = given[descriptor.key]?.origin ?? "default"
        let text = given[descriptor.key]?.text ?? descriptor.defaultText
        if descriptor.kind == Setting<String>.pathKind, Setting<String>.isForShell(text) {
            return "\(descriptor.key) (\(origin)) begins with ~, which only a shell replaces; write the whole path"
        }
        let shown = descriptor.isValueHidden ? "…" : text
        return "\(descriptor.key) = \"\(shown)\" (\(origin)) is not an allowed \(descriptor.kind): "
            + "\(descriptor.allowed)"
    }
}
