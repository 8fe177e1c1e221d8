// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Wakes one waiting task. If no task waits, one signal is kept.
///
/// State: a `Mutex`; the waiter is resumed after the `Mutex` is unlocked.
package final class WakeUp: Sendable {
    private struct State {
        var isSignalled = false
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    package init() {}

    /// Wakes the task that waits. If no task waits, the next call to ``wait()`` returns at once.
    package func signal() {
        let waiter = state.withLock { state in
            defer { state.waiter = nil }
            state.isSignalled = state.waiter == nil
            return state.waiter
        }
        waiter?.resume()
    }

    /// Returns at a signal, or when the task is cancelled. One task at a time may wait.
    package func wait() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard !state.isSignalled, !Task.isCancelled else {
                        state.isSignalled = false
                        return false
                    }
                    state.waiter = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume()
        }
    }

    /// Returns at a signal, after `duration`, or when the task is cancelled. A `duration` of nil sets no time limit.
    package func wait(atMost duration: Duration?) async {
        guard let duration else { return await wait() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.wait() }
            // After a signal, the sleep is no longer needed. It is then cancelled, and throws.
            group.addTask { try? await Task.sleep(for: duration) }
            await group.next()
            group.cancelAll()
        }
    }
}
