// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A few threads for long work, so that such work blocks neither event loops nor Swift's own thread pool. The threads
/// have a lower priority than the rest of the process: while the processors are busy, connections are served first.
///
/// State: a ``Monitor``. A thread starts when there is work and ends when there is none.
final class WorkerThreads: Sendable {
    /// A piece of work, and the function to call instead if this work must make room for other work.
    private struct Work: Sendable {
        let run: @Sendable () -> Void
        let refuse: @Sendable () -> Void
    }

    private struct State {
        var waiting: LaneQueue<Work>
        var running = 0
    }

    private let name: String
    private let maxThreads: Int
    private let monitor: Monitor<State>

    /// - Parameters:
    ///   - maxWaiting: the maximum number of pieces of work that may wait in each of the two lanes (``LaneQueue``).
    ///   - maxWaitingOfOne: the maximum number of pieces of work of one owner that may wait.
    init(name: String, maxThreads: Int, maxWaiting: Int, maxWaitingOfOne: Int) {
        self.name = name
        self.maxThreads = max(1, maxThreads)
        let waiting = LaneQueue<Work>(maxCount: max(0, maxWaiting), maxCountOfOne: max(1, maxWaitingOfOne))
        monitor = Monitor(State(waiting: waiting))
    }

    /// Runs work when it is the turn of its source and owner (``LaneQueue``).
    ///
    /// - Parameter refuse: called instead of the work if too much work waits. It may also be called later, if this work
    ///   must make room for a source or an owner that has less work.
    func run(
        isFirst: Bool,
        source: String,
        owner: String,
        _ work: @escaping @Sendable () -> Void,
        refuse: @escaping @Sendable () -> Void
    ) {
        enum Decision {
            case start
            case wait
            case refuse(@Sendable () -> Void)
        }
        let decision: Decision = monitor.withLock { state in
            if state.running < maxThreads {
                state.running += 1
                return .start
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
                        return next?.run
                    }
                }
            }
            thread.name = name
            thread.qualityOfService = .utility
            thread.start()
        }
    }

    /// The niceness of the threads (Linux). While such a thread and a thread with niceness 0 both want the processor,
    /// the thread with niceness 0 gets about ten times as much time. SCHED_IDLE would give too little time: a thread
    /// that holds a lock, such as the allocator's, must finish even on a busy machine.
    private static let niceness: Int32 = 10

    /// Lowers the priority of the calling thread on Linux, where Foundation's quality of service has no effect. There,
    /// `setpriority` with the id 0 changes only the calling thread.
    private static func givesWay() {
        #if os(Linux)
        // If the call fails, the priority stays as it is. No result depends on the priority.
        _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, niceness)
        #endif
    }
}
