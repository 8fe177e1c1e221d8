// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Synchronization

/// Lets a bounded number of reads run at once and a bounded number wait.
///
/// State: a `Mutex` around the queue; nothing is called under it.
final class ReadGate: Sendable {
    private struct State: Sendable {
        var running = 0
        var waiting: Deque<@Sendable () async -> Void> = []
    }

    private let state = Mutex(State())
    private let maxRunning: Int
    private let maxWaiting: Int

    init(maxRunning: Int, maxWaiting: Int) {
        self.maxRunning = max(1, maxRunning)
        self.maxWaiting = max(0, maxWaiting)
    }

    /// - Returns: false if too many reads wait already; this one then does not run.
    func run(_ read: @escaping @Sendable () async -> Void) -> Bool {
        let (isAccepted, mustStart) = state.withLock { state in
            if state.running < maxRunning {
                state.running += 1
                return (true, true)
            }
            guard state.waiting.count < maxWaiting else { return (false, false) }
            state.waiting.append(read)
            return (true, false)
        }
        if mustStart {
            // A task of its own, because the callers are event loops; at most `maxRunning` exist, each ends when
            // nothing waits.
            Task {
                var next: (@Sendable () async -> Void)? = read
                while let read = next {
                    await read()
                    next = finishOne()
                }
            }
        }
        return isAccepted
    }

    private func finishOne() -> (@Sendable () async -> Void)? {
        state.withLock { state in
            if let next = state.waiting.popFirst() { return next }
            state.running -= 1
            return nil
        }
    }
}
