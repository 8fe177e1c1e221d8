// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

/// The server's process: its threads, and its end.
package struct ProcessSettings: Sendable, Hashable {
    /// How long a stopping server waits for its clients to leave.
    package var shutdownDeadline = Duration.seconds(10)
    /// The number of threads that serve connections; 0 means one thread per core.
    package var eventLoops = 0

    package init() {}
}

extension ProcessSettings: SettingFields {
    package static let fields: [SettingField<Self>] = [
        .duration(
            \.shutdownDeadline,
            "shutdown.deadline",
            in: .milliseconds(100) ... .seconds(600),
            "How long a stopping server waits for its clients to leave before it closes their connections."
        ),
        .number(
            \.eventLoops,
            "eventLoops",
            in: 0...1024,
            "The number of threads that serve connections. With 0, there is one thread for each core."
        ),
    ]
}
