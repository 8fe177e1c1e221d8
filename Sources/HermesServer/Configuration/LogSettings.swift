// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
package import Logging

/// The log.
package struct LogSettings: Sendable, Hashable {
    /// The lowest level of the lines that are written.
    package var level = Logger.Level.info
    package var format = LogFormat.logfmt

    package init() {}
}

extension LogSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .choice(
            \.level,
            "log.level",
            "The lowest level of the log lines that are written."
        ),
        .choice(
            \.format,
            "log.format",
            "The format of log lines."
        ),
    ]
}
