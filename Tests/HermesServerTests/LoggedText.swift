// Hermes
// SPDX-License-Identifier: Apache-2.0

import Logging
import Synchronization

@testable import HermesServer

/// Collects log lines in the form in which the server writes them.
final class LoggedText: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func logger() -> Logger {
        Logger(label: "test") { _ in
            LineLogHandler(level: .info, format: .logfmt) { line in self.lines.withLock { $0.append(line) } }
        }
    }
}
