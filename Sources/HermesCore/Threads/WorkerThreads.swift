// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A few threads for long work, so that it blocks neither event loops nor Swift's own pool.
///
/// State: a ``Monitor``. A thread starts when there is work and ends when there is none.
final class WorkerThreads: Sendable {
    private struct State {
        var waiting: LaneQueue<@Sendable () -> Void>
        var running = 0
    }

    private let name: String
    private let maxThreads: Int
    private let monitor: Monitor<State>

    /// - Parameters:
    ///   - maxWaiting: the pieces of work that may wait in each of the two lanes (``LaneQueue``).
    ///   - maxWaitingOfOne: those of one owner.
    init(name: String, maxThreads: Int, maxWaiting: Int, maxWaitingOfOne: Int) {
        self.name = name
        self.maxThreads = max(1, maxThreads)
        let waiting = LaneQueue<@Sendable () -> Void>(
            maxCount: max(0, maxWaiting),
            maxCountOfOne: max(1, maxWaitingOfOne)
        )
        monitor = Monitor(State(waiting: waiting))
    }

    /// Runs work, in the owner's turn.
    ///
    /// - Returns: false if too much waits; the work does not run.
    func run(isFirst: Bool, of owner: String, _ work: @escaping @Sendable () -> Void) -> Bool {
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
            return state.waiting.append(work, isFirst: isFirst, of: owner) ? .wait : .refuse
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
