// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Collects the listeners as they open, and reports once when all are open.
///
/// State: one `Mutex`; the callback runs outside it.
final class ReadySignal: Sendable {
    private struct State {
        var missing: Set<String>
        var addresses: [BoundAddress] = []
    }

    private let state: Mutex<State>
    private let ready: @Sendable ([BoundAddress]) -> Void

    /// - Parameters:
    ///   - names: the listeners to wait for.
    ///   - ready: called once, with the addresses in the order of opening.
    init(_ names: some Sequence<String>, ready: @escaping @Sendable ([BoundAddress]) -> Void) {
        state = Mutex(State(missing: Set(names)))
        self.ready = ready
    }

    func opened(_ address: BoundAddress) {
        let all = state.withLock { state -> [BoundAddress]? in
            guard state.missing.remove(address.name) != nil else { return nil }
            state.addresses.append(address)
            return state.missing.isEmpty ? state.addresses : nil
        }
        if let all { ready(all) }
    }
}
