// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A value behind a lock, for which threads can wait until it changes. Only for the server's own threads, because
/// waiting blocks.
///
/// Unchecked Sendable because NSCondition guards the value and no reference to it leaves the lock.
final class Monitor<State>: @unchecked Sendable {
    private let condition = NSCondition()
    private var state: State

    init(_ state: sending State) { self.state = state }

    func withLock<Result>(_ body: (inout State) -> Result) -> Result {
        condition.lock()
        defer { condition.unlock() }
        return body(&state)
    }

    /// Wakes one waiting thread.
    func signal() { condition.signal() }

    /// Calls `body` until it returns a value, waiting for a signal in between.
    ///
    /// - Parameters:
    ///   - deadline: evaluated before each wait: when to call `body` again without a signal; nil: never.
    ///   - body: examines the state.
    func wait<Result>(until deadline: (State) -> Date?, _ body: (inout State) -> Result?) -> Result {
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let result = body(&state) { return result }
            if let date = deadline(state) {
                _ = condition.wait(until: date)
            } else {
                condition.wait()
            }
        }
    }
}
