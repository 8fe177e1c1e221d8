// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing

@testable import HermesCore

@Suite(.timeLimit(.minutes(1))) struct WorkerThreadsTests {
    #if os(Linux)
    /// Work that tells its thread's scheduling policy, and then waits until it may end.
    private final class Work: Sendable {
        let mayEnd = DispatchSemaphore(value: 0)
        let policies: AsyncStream<Int32>
        private let policy: AsyncStream<Int32>.Continuation

        init() { (policies, policy) = AsyncStream.makeStream() }

        func start(on threads: WorkerThreads) {
            threads.run(isFirst: false, source: "a", owner: "b") { [self] in
                policy.yield(sched_getscheduler(0))
                mayEnd.wait()
                policy.finish()
            } refuse: { [self] in
                policy.finish()
            }
        }

        /// Nil: the work has ended, or was refused.
        func told() async -> Int32? {
            for await policy in policies { return policy }
            return nil
        }
    }

    @Test("of the threads at work, one has a share of busy processors, whichever was first")
    func leader() async {
        let threads = WorkerThreads(name: "work", maxThreads: 3, maxWaiting: 0, maxWaitingOfOne: 1)
        let first = Work()
        first.start(on: threads)
        #expect(await first.told() == SCHED_OTHER)
        let second = Work()
        second.start(on: threads)
        #expect(await second.told() == WorkerThreads.idlePolicy)
        first.mayEnd.signal()
        #expect(await first.told() == nil)
        // The first thread is given back shortly behind the end of its work, and the next one leads in its place.
        var policies: [Int32] = []
        repeat {
            let next = Work()
            next.start(on: threads)
            policies.append(await next.told() ?? -1)
            next.mayEnd.signal()
            #expect(await next.told() == nil)
        } while policies.last != SCHED_OTHER
        #expect(Set(policies).isSubset(of: [WorkerThreads.idlePolicy, SCHED_OTHER]))
        second.mayEnd.signal()
    }
    #endif
}
