// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The server's state for `/readyz`.
final class HealthState: Sendable {
    enum State: String, Sendable {
        case starting
        case ready
        case draining
    }

    private let state = Mutex((state: State.starting, detail: String?.none))

    var current: State { state.withLock { $0.state } }

    /// The state in words for people, such as "starting: checking the database".
    var text: String {
        state.withLock { now in now.detail.map { "\(now.state.rawValue): \($0)" } ?? now.state.rawValue }
    }

    /// Sets what the start is waiting for.
    func starting(_ detail: String) {
        state.withLock { now in if now.state == .starting { now.detail = detail } }
    }

    /// Moves on to a later state; there is no way back to an earlier one.
    func advance(to next: State) {
        state.withLock { now in
            switch (now.state, next) {
            case (.starting, .ready), (.starting, .draining), (.ready, .draining): now = (next, nil)
            case (.starting, .starting), (.ready, _), (.draining, _): break
            }
        }
    }
}
