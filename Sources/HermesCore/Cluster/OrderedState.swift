// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A value whose changes have consequences outside of its lock. These consequences are called steps. One thread at a
/// time carries out the steps, in the order of the changes. Other threads do not wait for this.
///
/// State: a `Mutex` around a struct. No other code is called while it is locked.
final class OrderedState<Value: Sendable, Step: Sendable>: Sendable {
    private struct State: Sendable {
        var value: Value
        var steps: [Step] = []
        var isStepping = false
    }

    private let state: Mutex<State>

    init(_ value: Value) { state = Mutex(State(value: value)) }

    var value: Value { state.withLock { $0.value } }

    /// Changes the value. `change` may add steps.
    ///
    /// - Parameter carryOut: carries out a step of this change or of another change.
    func change<Result: Sendable>(
        _ change: (inout Value, inout [Step]) -> Result,
        carryOut: (Step) -> Void
    ) -> Result {
        let result = state.withLock { change(&$0.value, &$0.steps) }
        while let steps = takeSteps() {
            for step in steps { carryOut(step) }
            state.withLock { $0.isStepping = false }
        }
        return result
    }

    private func takeSteps() -> [Step]? {
        state.withLock { state in
            guard !state.isStepping, !state.steps.isEmpty else { return nil }
            defer { state.steps = [] }
            state.isStepping = true
            return state.steps
        }
    }
}
