// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A few threads for long work, so that it blocks neither event loops nor Swift's own pool. They have a lower priority
/// than the rest of the process: while the processors are busy, connections are served first.
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
                Self.givesWay()
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
            thread.qualityOfService = .utility
            thread.start()
            return true
        }
    }

    /// The niceness of the threads (Linux): about a tenth of the processor time of a thread that has 0, while both want it.
    private static let niceness: Int32 = 10

    /// Lowers the priority of this thread. Foundation's quality of service does nothing on Linux, where `setpriority`
    /// with 0 means the calling thread.
    private static func givesWay() {
        #if os(Linux)
        // A failure leaves the priority as it is, which changes no result.
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness)
        #endif
    }
}
