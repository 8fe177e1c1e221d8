// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A value behind a lock that is taken very often. Event loops and the store's threads take the lock thousands of times
/// per second, and hold it for about one microsecond each time.
///
/// On Linux, `Mutex` passes its lock directly to a waiting thread. On a busy machine, that thread gets a processor only
/// some milliseconds later. Until then, no other thread can take the lock. Later the lock passes to the next waiting
/// thread in the same way. In contrast, the lock of ``Locked`` stays free until a running thread takes it. For other
/// values, `Mutex` is the right lock: it allocates nothing, and no thread waits forever.
///
/// Unchecked Sendable because the lock guards the value, and no reference to the value is kept outside the lock.
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
