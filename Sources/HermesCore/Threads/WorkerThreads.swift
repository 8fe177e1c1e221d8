// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A few threads for long work, so that it blocks neither event loops nor Swift's own pool. They have a lower priority
/// than the rest of the process: while the processors are busy, connections are served first. One thread, the leader,
/// keeps a small share of a busy machine, so that the work goes on; the others take what is left over.
///
/// State: a ``Monitor``. A thread starts when there is work and ends when there is none.
final class WorkerThreads: Sendable {
    /// Some work, and what to do instead if it has to make room for somebody else's.
    private struct Work: Sendable {
        let run: @Sendable () -> Void
        let refuse: @Sendable () -> Void
    }

    private struct State {
        var waiting: LaneQueue<Work>
        var running = 0
        /// Whether one of the running threads is the leader.
        var hasLeader = false

        mutating func start() -> Priority {
            running += 1
            defer { hasLeader = true }
            return hasLeader ? .leftOver : .leader
        }

        mutating func end(_ priority: Priority) {
            running -= 1
            if priority == .leader { hasLeader = false }
        }
    }

    /// How much a thread gets of busy processors.
    enum Priority {
        /// About a tenth of what a thread of the usual priority gets.
        case leader
        /// The time that no other thread wants. A thread that wakes up takes the processor from it at once.
        case leftOver
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
        let waiting = LaneQueue<Work>(maxCount: max(0, maxWaiting), maxCountOfOne: max(1, maxWaitingOfOne))
        monitor = Monitor(State(waiting: waiting))
    }

    /// Runs work, in the turn of its source and owner (``LaneQueue``).
    ///
    /// - Parameter refuse: called instead of the work if too much waits; also later, if others have less.
    func run(
        isFirst: Bool,
        source: String,
        owner: String,
        _ work: @escaping @Sendable () -> Void,
        refuse: @escaping @Sendable () -> Void
    ) {
        enum Decision {
            case start(Priority)
            case wait
            case refuse(@Sendable () -> Void)
        }
        let decision: Decision = monitor.withLock { state in
            if state.running < maxThreads {
                return .start(state.start())
            }
            let place = LaneQueue<Work>.Place(isFirst: isFirst, source: source, owner: owner)
            switch state.waiting.append(Work(run: work, refuse: refuse), at: place) {
            case .waits: return .wait
            case .replaces(let other): return .refuse(other.refuse)
            case .refused: return .refuse(refuse)
            }
        }
        switch decision {
        case .refuse(let refuse): refuse()
        case .wait: break
        case .start(let priority):
            let monitor = monitor
            let thread = Thread {
                Self.givesWay(priority)
                var next: (@Sendable () -> Void)? = work
                while let work = next {
                    work()
                    next = monitor.withLock { state in
                        let next = state.waiting.popFirst()
                        if next == nil { state.end(priority) }
                        return next?.run
                    }
                }
            }
            thread.name = name
            thread.qualityOfService = .utility
            thread.start()
        }
    }

    /// The niceness of the leader (Linux): about a tenth of the processor time of a thread that has 0, while both want it.
    private static let niceness: Int32 = 10
    /// SCHED_IDLE (sched(7), linux/sched.h), which Glibc's module does not show.
    static let idlePolicy: Int32 = 5

    /// Lowers the priority of this thread. Foundation's quality of service does nothing on Linux, where `setpriority`
    /// and `sched_setscheduler` with 0 mean the calling thread.
    private static func givesWay(_ priority: Priority) {
        #if os(Linux)
        // A failure leaves the priority as it is, which changes no result.
        switch priority {
        case .leader:
            _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness)
        case .leftOver:
            var parameters = sched_param()
            _ = sched_setscheduler(0, idlePolicy, &parameters)
        }
        #endif
    }
}
