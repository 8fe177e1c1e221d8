// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// Facts that only a running server can tell the commands.
///
/// State: one `Mutex`, set once.
package final class RunningServer: Sendable {
    private struct Assembled {
        weak var assembly: ServerAssembly?
    }

    private let time: any TimeSource
    private let startedAt: Duration
    private let state = Mutex(Assembled())

    init(time: any TimeSource) {
        self.time = time
        startedAt = time.uptime()
    }

    /// The server is complete.
    func assembled(_ assembly: ServerAssembly) { state.withLock { $0.assembly = assembly } }

    /// Nil while it starts, and after its end.
    var assembly: ServerAssembly? { state.withLock { $0.assembly } }

    var uptime: Duration { time.uptime() - startedAt }
}
