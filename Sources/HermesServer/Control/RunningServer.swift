// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Synchronization

/// Gives commands access to the running server.
///
/// State: one `Mutex` around the server, which is set once.
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

    /// Sets the server; called when it is complete.
    func assembled(_ assembly: ServerAssembly) { state.withLock { $0.assembly = assembly } }

    /// The server; nil while it starts and after it has ended.
    var assembly: ServerAssembly? { state.withLock { $0.assembly } }

    var uptime: Duration { time.uptime() - startedAt }
}
