// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The server's state for `/readyz` and for the service manager.
final class HealthState: Sendable {
    enum State: String, Sendable {
        case starting
        case ready
        case draining
    }

    private let state = Mutex((state: State.starting, detail: String?.none))
    /// Gets each change; nil if there is no manager.
    let manager: ServiceManager?

    init(manager: ServiceManager? = nil) {
        self.manager = manager
    }

    var current: State { state.withLock { $0.state } }

    /// The state in words for people, such as "starting: checking the database".
    var text: String {
        state.withLock { now in now.detail.map { "\(now.state.rawValue): \($0)" } ?? now.state.rawValue }
    }

    /// Sets what the start is waiting for.
    func starting(_ detail: String) {
        let isStarting = state.withLock { now -> Bool in
            if now.state == .starting { now.detail = detail }
            return now.state == .starting
        }
        if isStarting { manager?.starting("starting: \(detail)") }
    }

    /// Tells the service manager that the present step of the start is not stuck.
    func working() {
        if current == .starting { manager?.starting(nil) }
    }

    /// Tells the service manager that the server begins to read its files again; ``reloaded()`` follows. During the
    /// start and while the server drains, this sends nothing, because the manager would take the end of the reading
    /// for the end of the start.
    func reloading() {
        if current == .ready { manager?.reloading() }
    }

    /// Tells the service manager that the files were read again.
    func reloaded() {
        if current == .ready { manager?.ready() }
    }

    /// Moves on to a later state; there is no way back to an earlier one.
    func advance(to next: State) {
        let hasChanged = state.withLock { now -> Bool in
            switch (now.state, next) {
            case (.starting, .ready), (.starting, .draining), (.ready, .draining):
                now = (next, nil)
                return true
            case (.starting, .starting), (.ready, _), (.draining, _): return false
            }
        }
        guard hasChanged else { return }
        switch next {
        case .starting: break
        case .ready: manager?.ready()
        case .draining: manager?.stopping()
        }
    }
}
