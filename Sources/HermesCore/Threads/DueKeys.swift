// Hermes
// SPDX-License-Identifier: Apache-2.0

import HeapModule

/// Keys that wait until they are due. Each key waits at most once. Does no I/O.
///
/// The memory is proportional to the number of keys that wait, no matter how often keys were set and removed.
package struct DueKeys<Key: Hashable & Sendable, Instant: Comparable & Sendable>: Sendable {
    /// A record of a key and its due time. The record is out of date if the key now has another ticket, or no ticket.
    struct Ticket: Comparable, Sendable {
        let at: Instant
        let number: UInt64
        let key: Key

        static func < (left: Self, right: Self) -> Bool { (left.at, left.number) < (right.at, right.number) }
        static func == (left: Self, right: Self) -> Bool { left.number == right.number }
    }

    private var tickets: [Key: Ticket] = [:]
    private(set) var heap = Heap<Ticket>()
    private var lastNumber: UInt64 = 0

    package init() {}

    package var count: Int { tickets.count }
    /// The time at which the next key is due; nil if no key waits. The time is never too late, but can be too early
    /// after a key was removed or set again.
    package var nextDue: Instant? { heap.min?.at }

    /// Sets when a key is due. This replaces an earlier due time of the key.
    package mutating func set(_ key: Key, dueAt: Instant) {
        // If the key already waits for this time, its ticket is in the heap.
        if let known = tickets[key], known.at == dueAt { return }
        lastNumber += 1
        let ticket = Ticket(at: dueAt, number: lastNumber, key: key)
        tickets[key] = ticket
        heap.insert(ticket)
        if heap.count > 2 * tickets.count + 64 { heap = Heap(tickets.values) }
    }

    package mutating func remove(_ key: Key) { if !tickets.isEmpty { tickets[key] = nil } }

    /// Removes the first key that is due.
    package mutating func popDue(now: Instant) -> Key? {
        while let first = heap.min, first.at <= now {
            heap.removeMin()
            if tickets[first.key]?.number == first.number {
                tickets[first.key] = nil
                return first.key
            }
        }
        return nil
    }
}
