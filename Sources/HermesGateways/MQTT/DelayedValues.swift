// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// Values that wait until they are due, at most one for each key. This type does no I/O.
struct DelayedValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var values: [Key: Value] = [:]
    private var due = DueKeys<Key, Duration>()

    var isEmpty: Bool { values.isEmpty }
    var count: Int { values.count }

    subscript(key: Key) -> Value? { values[key] }

    /// Inserts a value. It replaces the key's earlier value, if there is one.
    mutating func insert(_ value: Value, for key: Key, dueAt: Duration) {
        values[key] = value
        due.set(key, dueAt: dueAt)
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Value? {
        // In most cases, no value waits. This check then avoids hashing the key.
        guard !values.isEmpty else { return nil }
        due.remove(key)
        return values.removeValue(forKey: key)
    }

    /// Removes and returns a value that is due; nil if no value is due.
    mutating func popDue(now: Duration) -> Value? { due.popDue(now: now).flatMap { values.removeValue(forKey: $0) } }
}
