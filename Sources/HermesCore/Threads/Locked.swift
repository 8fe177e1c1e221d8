// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A value behind a lock that event loops and the store's threads take thousands of times a second, for a microsecond
/// each.
///
/// On Linux, `Mutex` passes its lock on to a waiting thread. On a busy machine that thread gets a processor only some
/// milliseconds later. Until then it owns the lock, all other threads wait, and the lock then passes to one of them in
/// the same way. ``Locked`` stays free until a running thread takes it. For other values `Mutex` is the right lock: it
/// allocates nothing, and no thread waits forever.
///
/// Unchecked Sendable because the lock guards the value, and no reference to it leaves the lock.
package struct Locked<Value>: @unchecked Sendable {
    private final class Storage {
        let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        var value: Value

        init(_ value: Value) {
            self.value = value
            lock.initialize(to: pthread_mutex_t())
            var attributes = pthread_mutexattr_t()
            pthread_mutexattr_init(&attributes)
            #if canImport(Glibc)
            // A waiting thread tries a few times before it sleeps.
            pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
            #elseif canImport(Darwin)
            pthread_mutexattr_setpolicy_np(&attributes, PTHREAD_MUTEX_POLICY_FIRSTFIT_NP)
            #endif
            let result = pthread_mutex_init(lock, &attributes)
            precondition(result == 0, "no lock could be made: error \(result)")
            pthread_mutexattr_destroy(&attributes)
        }

        deinit {
            pthread_mutex_destroy(lock)
            lock.deinitialize(count: 1)
            lock.deallocate()
        }
    }

    private let storage: Storage

    package init(_ value: sending Value) { storage = Storage(value) }

    /// Calls `body` with the value. `body` must not take the lock again.
    package func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(storage.lock)
        defer { pthread_mutex_unlock(storage.lock) }
        return try body(&storage.value)
    }
}
