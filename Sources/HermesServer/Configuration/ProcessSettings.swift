// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The server's process: its threads, and its end.
package struct ProcessSettings: Sendable, Hashable {
    /// How long a stopping server waits for its clients to leave.
    package var shutdownDeadline = Duration.seconds(10)
    /// The number of threads that serve connections; 0 means one thread per core.
    package var eventLoops = 0

    package init() {}
}

extension ProcessSettings {
    private static let defaults = ProcessSettings()

    private static let shutdownDeadline = Setting.duration(
        "shutdown.deadline",
        default: defaults.shutdownDeadline,
        in: .milliseconds(100) ... .seconds(600),
        "How long a stopping server waits for its clients to leave before it closes their connections."
    )
    private static let eventLoops = Setting.number(
        "eventLoops",
        default: defaults.eventLoops,
        in: 0...1024,
        "The number of threads that serve connections. With 0, there is one thread for each core."
    )

    static let settings: [SettingDescriptor] = [shutdownDeadline.descriptor, eventLoops.descriptor]

    init(_ values: SettingValues) throws(SettingsError) {
        self.init()
        shutdownDeadline = try values.value(of: Self.shutdownDeadline)
        eventLoops = try values.value(of: Self.eventLoops)
    }
}
