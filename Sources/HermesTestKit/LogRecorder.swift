// Hermes
// SPDX-License-Identifier: Apache-2.0

package import Logging
import Synchronization

/// Collects the metadata of log lines.
package final class LogRecorder: Sendable {
    private struct Handler: LogHandler {
        let recorder: LogRecorder
        var metadataProvider: Logger.MetadataProvider?
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { recorder.lines.withLock { $0.append(event.metadata ?? [:]) } }
    }

    private let lines = Mutex<[Logger.Metadata]>([])

    package init() {}

    /// The metadata of each line so far.
    package var all: [Logger.Metadata] { lines.withLock { $0 } }

    /// Returns a logger whose lines of this level and above are collected.
    package func logger(_ level: Logger.Level) -> Logger {
        Logger(label: "test") { _ in Handler(recorder: self, logLevel: level) }
    }
}
