// Hermes
// SPDX-License-Identifier: Apache-2.0

import HeapModule

/// Whose entries may have to be handed off.
package struct HandOffKey: Sendable, Hashable {
    package let user: UserID
    /// A device that can be pushed to; nil: the user as a whole, for "message undelivered".
    package let device: DeviceID?

    package init(_ user: UserID, _ device: DeviceID?) {
        self.user = user
        self.device = device
    }
}

/// When to look at whose inbox. Pure; owner: ``PushHandOff``.
///
/// It remembers little on purpose: that something was committed for a key, and when to look. What is to be pushed then is
/// read from the store, and everything here can be derived from the store again.
package struct HandOffSchedule: Sendable {
    private struct Item: Sendable {
        /// Of the oldest entry that waits.
        var due: Duration
        /// Of the newest.
        var lastSeq: UInt64
        /// How often it failed so far.
        var attempts = 0
        /// Which entry of the heap is this one's.
        var ticket: UInt64 = 0
        /// Somebody looks at it now.
        var isTaken = false
        /// Something came while somebody looked.
        var isAgain = false
    }

    private struct Ticket: Sendable, Comparable {
        let due: Duration
        let number: UInt64
        let key: HandOffKey

        static func < (left: Self, right: Self) -> Bool { (left.due, left.number) < (right.due, right.number) }
        static func == (left: Self, right: Self) -> Bool { left.number == right.number }
    }

    private let capacity: Int
    private var items: [HandOffKey: Item] = [:]
    private var heap = Heap<Ticket>()
    private var lastTicket: UInt64 = 0
    /// Something was not taken in because there was no room: everything has to be derived from the store again.
    package private(set) var hasOverflowed = false

    /// - Parameter capacity: how many keys may wait.
    package init(capacity: Int = 200_000) { self.capacity = max(1, capacity) }

    /// How many keys wait or are looked at.
    package var count: Int { items.count }

    /// When the next is due; nil: none waits. May be earlier than it needs to be, never later.
    package var nextDue: Duration? { heap.min?.due }

    /// Entries up to `seq` were committed for a key; if they are not acknowledged by `due` it is to be looked at.
    package mutating func committed(_ key: HandOffKey, upTo seq: UInt64, due: Duration) {
        guard var item = items[key] else {
            guard items.count < capacity else {
                hasOverflowed = true
                return
            }
            items[key] = Item(due: due, lastSeq: seq)
            enqueue(key)
            return
        }
        item.lastSeq = max(item.lastSeq, seq)
        if item.isTaken { item.isAgain = true }
        let isEarlier = due < item.due && item.attempts == 0 && !item.isTaken
        if isEarlier { item.due = due }
        items[key] = item
        if isEarlier { enqueue(key) }
    }

    /// A device has everything up to `seq`: what waits for it, or for its user as a whole, need not be looked at.
    package mutating func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64) {
        for key in [HandOffKey(user, device), HandOffKey(user, nil)] {
            guard let item = items[key], item.lastSeq <= seq, !item.isTaken else { continue }
            items[key] = nil
        }
    }

    /// Hands out the keys that are due, at most `limit`. For each, ``settled(_:retryAt:)`` has to follow.
    package mutating func takeDue(now: Duration, limit: Int) -> [HandOffKey] {
        var taken: [HandOffKey] = []
        while taken.count < limit, let ticket = heap.min, ticket.due <= now {
            heap.removeMin()
            guard items[ticket.key]?.ticket == ticket.number, items[ticket.key]?.isTaken == false else { continue }
            items[ticket.key]?.isTaken = true
            taken.append(ticket.key)
        }
        return taken
    }

    /// A key was looked at.
    ///
    /// - Parameters:
    ///   - now: when to look again if something came meanwhile.
    ///   - retryAt: when to look again because not all went through; nil: all did.
    package mutating func settled(_ key: HandOffKey, now: Duration, retryAt: Duration?) {
        guard var item = items[key], item.isTaken else { return }
        item.isTaken = false
        if let retryAt {
            item.attempts += 1
            item.due = retryAt
        } else if item.isAgain {
            item.attempts = 0
            item.due = now
        } else {
            items[key] = nil
            return
        }
        item.isAgain = false
        items[key] = item
        enqueue(key)
    }

    /// How often a key failed so far.
    package func attempts(of key: HandOffKey) -> Int { items[key]?.attempts ?? 0 }

    /// Begins to derive everything again.
    package mutating func clearOverflow() { hasOverflowed = false }

    private mutating func enqueue(_ key: HandOffKey) {
        guard let due = items[key]?.due else { return }
        lastTicket += 1
        items[key]?.ticket = lastTicket
        heap.insert(Ticket(due: due, number: lastTicket, key: key))
        // Acknowledged items leave their tickets behind; when most are such, the heap is made anew.
        guard heap.count > 2 * items.count + 1024 else { return }
        heap = Heap(heap.unordered.filter { items[$0.key]?.ticket == $0.number && items[$0.key]?.isTaken == false })
    }
}
