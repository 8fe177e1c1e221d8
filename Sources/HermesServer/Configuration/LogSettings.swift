// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
package import Logging

/// The log.
package struct LogSettings: Sendable, Hashable {
    /// The lowest level of the lines that are written.
    package var level = Logger.Level.info
    package var format = LogFormat.logfmt

    package init() {}
}

extension LogSettings {
    private static let defaults = LogSettings()

    private static let level = Setting<Logger.Level>.choice(
        "log.level",
        default: defaults.level,
        "The lowest level of the log lines that are written."
    )
    private static let format = Setting<LogFormat>.choice(
        "log.format",
        default: defaults.format,
        "The format of log lines."
    )

    static let settings: [SettingDescriptor] = [level.descriptor, format.descriptor]

    init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        level = try values.value(of: Self.level)
        format = try values.value(of: Self.format)
    }
}
