// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Whether the server can do its work: what `/readyz` tells.
final class HealthState: Sendable {
    enum State: String, Sendable {
        case starting
        case ready
        case draining
    }

    private let state = Mutex(State.starting)

    var current: State { state.withLock { $0 } }

    /// Moves on; there is no way back.
    func advance(to next: State) {
        state.withLock { state in
            switch (state, next) {
            case (.starting, .ready), (.starting, .draining), (.ready, .draining): state = next
            case (.starting, .starting), (.ready, _), (.draining, _): break
            }
        }
    }
}
