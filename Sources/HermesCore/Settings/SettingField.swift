// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A property of a group, together with the settings that decide its value. Most properties have one setting, whose
/// default is the property's initial value.
package struct SettingField<Group: SettingGroup>: Sendable {
    /// The descriptions of the settings.
    package let settings: [SettingDescriptor]
    /// Reads the settings, and sets the property of a group.
    let read: @Sendable (_ values: SettingValues, _ group: inout Group) throws(SettingsError) -> Void

    /// Creates a field whose value follows from several settings.
    ///
    /// - Parameter read: returns the property's value.
    package init<Value: Sendable>(
        _ property: any WritableKeyPath<Group, Value> & Sendable,
        _ settings: [SettingDescriptor],
        read: @escaping @Sendable (SettingValues) throws(SettingsError) -> Value
    ) {
        self.settings = settings
        self.read = { (values: SettingValues, group: inout Group) throws(SettingsError) in
            group[keyPath: property as WritableKeyPath<Group, Value>] = try read(values)
        }
    }

    /// Creates a field with one setting.
    ///
    /// - Parameter make: returns the setting, given its default.
    package init<Value: Sendable>(
        _ property: any WritableKeyPath<Group, Value> & Sendable,
        _ make: (_ value: Value) -> Setting<Value>
    ) {
        let setting = make(Group()[keyPath: property as WritableKeyPath<Group, Value>])
        self.init(property, [setting.descriptor]) { (values: SettingValues) throws(SettingsError) in
            try values.value(of: setting)
        }
    }

    /// Creates a field for a group that is a part of this group.
    package static func group<Part: SettingGroup>(_ property: any WritableKeyPath<Group, Part> & Sendable) -> Self {
        Self(property, Part.settings) { (values: SettingValues) throws(SettingsError) in try Part(values) }
    }
}

/// The fields with one setting, by the kind of the setting. For the parameters, see the functions of ``Setting`` with
/// the same names.
extension SettingField {
    package static func flag(
        _ property: any WritableKeyPath<Group, Bool> & Sendable,
        _ key: String,
        _ summary: String
    ) -> Self {
        Self(property) { value in .flag(key, default: value, summary) }
    }

    package static func number(
        _ property: any WritableKeyPath<Group, Int> & Sendable,
        _ key: String,
        in range: ClosedRange<Int>,
        _ summary: String
    ) -> Self {
        Self(property) { value in .number(key, default: value, in: range, summary) }
    }

    package static func byteCount(
        _ property: any WritableKeyPath<Group, Int> & Sendable,
        _ key: String,
        in range: ClosedRange<Int>,
        _ summary: String
    ) -> Self {
        Self(property) { value in .byteCount(key, default: value, in: range, summary) }
    }

    package static func duration(
        _ property: any WritableKeyPath<Group, Duration> & Sendable,
        _ key: String,
        in range: ClosedRange<Duration>,
        _ summary: String
    ) -> Self {
        Self(property) { value in .duration(key, default: value, in: range, summary) }
    }

    package static func choice<Value: Sendable & CaseIterable & RawRepresentable>(
        _ property: any WritableKeyPath<Group, Value> & Sendable,
        _ key: String,
        _ summary: String
    ) -> Self where Value.RawValue == String {
        Self(property) { value in .choice(key, default: value, summary) }
    }

    package static func choices<Choice: Sendable & CaseIterable & RawRepresentable>(
        _ property: any WritableKeyPath<Group, [Choice]> & Sendable,
        _ key: String,
        _ summary: String
    ) -> Self where Choice.RawValue == String {
        Self(property) { value in .choices(key, default: value, summary) }
    }

    package static func text(
        _ property: any WritableKeyPath<Group, String> & Sendable,
        _ key: String,
        maxBytes: Int,
        isEmptyAllowed: Bool = false,
        kind: String = "text",
        _ summary: String
    ) -> Self {
        Self(property) { value in
            .text(key, default: value, maxBytes: maxBytes, isEmptyAllowed: isEmptyAllowed, kind: kind, summary)
        }
    }

    package static func path(
        _ property: any WritableKeyPath<Group, String> & Sendable,
        _ key: String,
        isEmptyAllowed: Bool = false,
        _ summary: String
    ) -> Self {
        Self(property) { value in .path(key, default: value, isEmptyAllowed: isEmptyAllowed, summary) }
    }

    /// The default of the setting is the empty list. This is also true for the next function.
    package static func texts(
        _ property: any WritableKeyPath<Group, [String]> & Sendable,
        _ key: String,
        maxCount: Int,
        maxBytes: Int,
        _ summary: String
    ) -> Self {
        Self(property) { _ in .texts(key, maxCount: maxCount, maxBytes: maxBytes, summary) }
    }

    package static func origins(
        _ property: any WritableKeyPath<Group, [String]> & Sendable,
        _ key: String,
        maxCount: Int,
        _ summary: String
    ) -> Self {
        Self(property) { _ in .origins(key, maxCount: maxCount, summary) }
    }
}
