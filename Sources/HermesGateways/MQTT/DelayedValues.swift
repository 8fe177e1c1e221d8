// Hermes
// SPDX-License-Identifier: Apache-2.0

import HeapModule

/// Values that wait until they are due, at most one for each key. Pure.
///
/// Its memory follows the number of values that wait, however many were inserted and removed.
struct DelayedValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private struct Entry: Sendable {
        let number: UInt64
        let dueAt: Duration
        let value: Value
    }

    /// When a value is due; out of date if the key has another value now, or none.
    private struct Due: Comparable, Sendable {
        let at: Duration
        let number: UInt64
        let key: Key

        static func < (left: Self, right: Self) -> Bool { (left.at, left.number) < (right.at, right.number) }
        static func == (left: Self, right: Self) -> Bool { left.number == right.number }
    }

    private var entries: [Key: Entry] = [:]
    private var due = Heap<Due>()
    private var lastNumber: UInt64 = 0

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// The records kept to find what is due; for tests.
    var recordCount: Int { due.count }

    /// Inserts a value, in place of the key's value if there is one.
    mutating func insert(_ value: Value, for key: Key, dueAt: Duration) {
        lastNumber += 1
        entries[key] = Entry(number: lastNumber, dueAt: dueAt, value: value)
        due.insert(Due(at: dueAt, number: lastNumber, key: key))
        guard due.count > 2 * entries.count + 64 else { return }
        due = Heap(entries.map { Due(at: $1.dueAt, number: $1.number, key: $0) })
    }

    @discardableResult
    mutating func remove(_ key: Key) -> Value? { entries.removeValue(forKey: key)?.value }

    /// Removes a value that is due.
    mutating func popDue(now: Duration) -> Value? {
        while let first = due.min, first.at <= now {
            due.removeMin()
            if entries[first.key]?.number == first.number { return remove(first.key) }
        }
        return nil
    }
}
