// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization
import Testing

@testable import HermesCore

@Suite struct MonitorTests {
    /// Runs a wait on a separate thread.
    private func result<Value: Sendable>(of wait: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(returning: wait()) }
        }
    }

    @Test func `a wait examines the state again at its deadline, and not before`() async {
        let monitor = Monitor(0)
        let began = SuspendingClock.now
        let deadline = began + .milliseconds(30)
        let end = await result {
            monitor.wait(until: { _ in deadline }) { count in
                count += 1
                return SuspendingClock.now >= deadline ? SuspendingClock.now : nil
            }
        }
        #expect(end >= deadline)
        // The condition is checked once at the beginning and once at the end. A wait may also end without a cause.
        #expect(monitor.withLock { $0 } < 10)
    }

    @Test func `a signal ends a wait that has no deadline`() async {
        let monitor = Monitor((isWaiting: false, mayEnd: false))
        async let ended = result {
            monitor.wait(until: { _ in nil }) { state in
                state.isWaiting = true
                return state.mayEnd ? true : nil
            }
        }
        while !monitor.withLock({ $0.isWaiting }) { await Task.yield() }
        monitor.withLock { $0.mayEnd = true }
        monitor.signal()
        #expect(await ended)
    }

    @Test func `a deadline in the past does not wait`() async {
        let monitor = Monitor(0)
        let count = await result {
            monitor.wait(until: { _ in .now - .seconds(3600) }) { count in
                count += 1
                return count == 3 ? count : nil
            }
        }
        #expect(count == 3)
    }
}
