// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A part of the configuration: some settings, and the values that they have.
package protocol SettingGroup: Sendable {
    /// The descriptions of the group's settings.
    static var settings: [SettingDescriptor] { get }

    /// Creates the values that apply if nothing is configured.
    init()

    /// Reads the values of all settings of the group.
    ///
    /// - Throws: for a value that is not allowed, and for values that do not fit together.
    init(_ values: SettingValues) throws(SettingsError)
}

/// A group with one list that joins each setting to the property that has its value. A setting in this list is
/// documented and accepted. If it is the only setting of its field, it is also read, so it has an effect. If a field
/// has several settings, the function of the field must read each of them.
package protocol SettingFields: SettingGroup {
    /// The group's settings with their properties.
    static var fields: [SettingField<Self>] { get }
}

extension SettingFields {
    package static var settings: [SettingDescriptor] { fields.flatMap { $0.settings } }

    package init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        try read(values)
    }

    /// Reads the values of all fields.
    package mutating func read(_ values: SettingValues) throws(SettingsError) {
        for field in Self.fields { try field.read(values, &self) }
    }
}
