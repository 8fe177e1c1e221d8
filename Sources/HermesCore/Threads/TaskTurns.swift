// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Synchronization

/// Lets tasks that change the same thing take turns, in the order in which they arrived.
///
/// Only tasks of requests wait here, so the limits on requests also bound the queue.
///
/// State: a `Mutex`; nothing is called while it is locked.
package final class TaskTurns<Key: Hashable & Sendable>: Sendable {
    /// For each key that a task uses, the tasks that wait for the key.
    private let waiting = Mutex<[Key: Deque<CheckedContinuation<Void, Never>>]>([:])

    package init() {}

    /// Returns when it is the caller's turn. The turn ends with ``pass(_:)``.
    package func begin(_ key: Key) async {
        await withCheckedContinuation { turn in
            let isFree = waiting.withLock { waiting in
                guard waiting[key] == nil else {
                    waiting[key]?.append(turn)
                    return false
                }
                waiting[key] = []
                return true
            }
            if isFree { turn.resume() }
        }
    }

    /// Passes the turn to the next task.
    package func pass(_ key: Key) {
        let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
            if let next = waiting[key]?.popFirst() { return next }
            waiting[key] = nil
            return nil
        }
        next?.resume()
    }
}
