// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A value behind a lock. Threads can wait until the value changes. Use it only on the server's own threads, because
/// waiting blocks a thread.
///
/// A wait with a deadline uses the monotonic clock. `NSCondition` uses the wall clock, so setting that clock back would
/// prolong a wait.
///
/// Unchecked Sendable because the mutex guards the value, and no reference to the value is kept outside the lock.
final class Monitor<State>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var state: State

    init(_ state: sending State) {
        self.state = state
        var results = [pthread_mutex_init(mutex, nil)]
        #if canImport(Darwin)
        results.append(pthread_cond_init(condition, nil))
        #else
        var attributes = pthread_condattr_t()
        results.append(pthread_condattr_init(&attributes))
        results.append(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC))
        results.append(pthread_cond_init(condition, &attributes))
        pthread_condattr_destroy(&attributes)
        #endif
        // These calls fail only if there is no memory.
        precondition(results.allSatisfy { $0 == 0 }, "a lock cannot be made")
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        condition.deallocate()
        mutex.deallocate()
    }

    func withLock<Result>(_ body: (inout State) -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body(&state)
    }

    /// Wakes one waiting thread.
    func signal() { pthread_cond_signal(condition) }

    /// Calls `body` until it returns a value. Waits for a signal between two calls.
    ///
    /// - Parameters:
    ///   - deadline: evaluated before each wait. It returns the time at which `body` is called again even without a
    ///     signal, or nil if there is no such time.
    ///   - body: examines the state.
    func wait<Result>(until deadline: (State) -> SuspendingClock.Instant?, _ body: (inout State) -> Result?) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while true {
            if let result = body(&state) { return result }
            if let instant = deadline(state) {
                wait(atMost: SuspendingClock.now.duration(to: instant))
            } else {
                pthread_cond_wait(condition, mutex)
            }
        }
    }

    /// The longest time of one wait with a deadline. After this time, `body` is called again.
    private static var longest: Duration { .seconds(60) }

    private func wait(atMost duration: Duration) {
        let duration = max(.zero, min(duration, Self.longest))
        let (seconds, attoseconds) = duration.components
        let nanoseconds = Int(attoseconds / 1_000_000_000)
        #if canImport(Darwin)
        var time = timespec(tv_sec: Int(seconds), tv_nsec: nanoseconds)
        pthread_cond_timedwait_relative_np(condition, mutex, &time)
        #else
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let sum = time.tv_nsec + nanoseconds
        time.tv_sec += Int(seconds) + sum / 1_000_000_000
        time.tv_nsec = sum % 1_000_000_000
        pthread_cond_timedwait(condition, mutex, &time)
        #endif
    }
}
