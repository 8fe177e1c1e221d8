// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import Synchronization

/// A clock that only a test moves.
package final class ManualClock: TimeSource {
    private struct State {
        var now: Timestamp
        var uptime: Duration
    }

    private let state: Mutex<State>

    /// - Parameter now: the initial time of the wall clock; the uptime begins at zero.
    package init(now: Timestamp = Timestamp(rawValue: 1_800_000_000_000)) {
        state = Mutex(State(now: now, uptime: .zero))
    }

    package func now() -> Timestamp { state.withLock { $0.now } }

    package func uptime() -> Duration { state.withLock { $0.uptime } }

    /// Sets the wall clock ahead or, with a negative duration, back. The uptime is unchanged.
    package func jump(by duration: Duration) {
        state.withLock { $0.now = $0.now.advanced(by: duration) }
    }

    /// Advances both clocks.
    package func advance(by duration: Duration) {
        state.withLock { state in
            state.now = state.now.advanced(by: duration)
            state.uptime += duration
        }
    }
}
