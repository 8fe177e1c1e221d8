// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The calls that wait for the same thing, in the order in which they began to wait. Each is resumed once.
struct Waiters<Value: Sendable, Failure: Error> {
    typealias Continuation = CheckedContinuation<Value, Failure>

    private var waiting = Deque<(id: UInt64, continuation: Continuation)>()

    var isEmpty: Bool { waiting.isEmpty }

    /// - Parameter id: a number that no other waiter has, for ``remove(_:)``.
    mutating func append(_ continuation: Continuation, id: UInt64) { waiting.append((id, continuation)) }

    /// Removes and returns the first waiter. The caller must resume it.
    mutating func popFirst() -> Continuation? { waiting.popFirst()?.continuation }

    /// Removes and returns a waiter whose call is cancelled. The caller must resume it.
    ///
    /// - Returns: nil if the waiter has already been resumed.
    mutating func remove(_ id: UInt64) -> Continuation? {
        guard let index = waiting.firstIndex(where: { $0.id == id }) else { return nil }
        return waiting.remove(at: index).continuation
    }

    /// Resumes all waiters.
    mutating func resume(returning value: Value) {
        while let waiter = popFirst() { waiter.resume(returning: value) }
    }

    /// Resumes all waiters with an error.
    mutating func resume(throwing error: Failure) {
        while let waiter = popFirst() { waiter.resume(throwing: error) }
    }
}

extension Waiters<Void, Never> {
    /// Resumes all waiters.
    mutating func resume() { resume(returning: ()) }
}
