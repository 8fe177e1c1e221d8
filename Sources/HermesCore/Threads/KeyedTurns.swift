// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Lets tasks that change the same thing take turns, in the order in which they came.
///
/// Only requests can wait here, so their number bounds the queue. Owner: the actor or the lock that has it.
package struct KeyedTurns<Key: Hashable & Sendable>: Sendable {
    /// The waiting tasks of each key whose turn somebody has.
    private var waiting: [Key: [CheckedContinuation<Void, Never>]] = [:]

    package init() {}

    /// - Returns: whether it is the caller's turn. If not, its turn comes by the continuation given to
    ///   ``wait(_:for:)``.
    package mutating func begin(_ key: Key) -> Bool {
        guard waiting[key] != nil else {
            waiting[key] = []
            return true
        }
        return false
    }

    package mutating func wait(_ continuation: CheckedContinuation<Void, Never>, for key: Key) {
        waiting[key]?.append(continuation)
    }

    /// The next one's turn.
    package mutating func pass(_ key: Key) {
        guard waiting[key]?.isEmpty == false else {
            waiting[key] = nil
            return
        }
        waiting[key]?.removeFirst().resume()
    }
}
