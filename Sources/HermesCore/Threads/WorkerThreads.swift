// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule
import Foundation

/// A few threads of our own for work that takes long, so that it blocks neither event loops nor Swift's own pool.
///
/// State: a ``Monitor``. A thread starts when there is work and ends when there is none.
final class WorkerThreads: Sendable {
    private struct State {
        var waiting: Deque<@Sendable () -> Void> = []
        var running = 0
    }

    private let name: String
    private let maxThreads: Int
    private let maxWaiting: Int
    private let monitor = Monitor(State())

    init(name: String, maxThreads: Int, maxWaiting: Int) {
        self.name = name
        self.maxThreads = max(1, maxThreads)
        self.maxWaiting = max(0, maxWaiting)
    }

    /// - Returns: false if too much waits already; then the work will not run.
    func run(_ work: @escaping @Sendable () -> Void) -> Bool {
        enum Decision {
            case start
            case wait
            case refuse
        }
        let decision: Decision = monitor.withLock { state in
            if state.running < maxThreads {
                state.running += 1
                return .start
            }
            guard state.waiting.count < maxWaiting else { return .refuse }
            state.waiting.append(work)
            return .wait
        }
        switch decision {
        case .refuse: return false
        case .wait: return true
        case .start:
            let monitor = monitor
            let thread = Thread {
                var next: (@Sendable () -> Void)? = work
                while let work = next {
                    work()
                    next = monitor.withLock { state in
                        let next = state.waiting.popFirst()
                        if next == nil { state.running -= 1 }
                        return next
                    }
                }
            }
            thread.name = name
            thread.start()
            return true
        }
    }
}
