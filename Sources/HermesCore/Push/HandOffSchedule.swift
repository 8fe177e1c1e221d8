// Hermes
// SPDX-License-Identifier: Apache-2.0

import HeapModule

/// A device or user whose entries may be due.
package struct HandOffKey: Sendable, Hashable {
    package let user: UserID
    /// A device with a push token; nil: the user as a whole, for "message undelivered".
    package let device: DeviceID?

    package init(_ user: UserID, _ device: DeviceID?) {
        self.user = user
        self.device = device
    }
}

/// Decides when to check whose inbox. Pure; owner: ``PushHandOff``.
///
/// It remembers only that something was committed for a key, and when to check. The entries to push are then read from
/// the store, and the whole schedule can be derived from the store again.
package struct HandOffSchedule: Sendable {
    private struct Item: Sendable {
        /// When the oldest waiting entry is due.
        var due: Duration
        /// The newest waiting entry.
        var lastSeq: UInt64
        /// The number of failures so far.
        var attempts = 0
        /// The valid heap entry of this item.
        var ticket: UInt64 = 0
        /// Whether it is being checked now.
        var isTaken = false
        /// Whether an entry was committed during the check.
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
    /// Whether a key was left out for lack of room: everything must be derived from the store again.
    package private(set) var hasOverflowed = false

    /// - Parameter capacity: the number of waiting keys.
    package init(capacity: Int = 200_000) { self.capacity = max(1, capacity) }

    /// The number of keys that wait or are being checked.
    package var count: Int { items.count }

    /// When the next key is due; nil: none waits. Never too late, but perhaps too early.
    package var nextDue: Duration? { heap.min?.due }

    /// Entries up to `seq` were committed for a key, which is checked if they are not acknowledged by `due`.
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

    /// A device has acknowledged everything up to `seq`: neither it nor its user needs a check for these.
    package mutating func acknowledged(_ user: UserID, _ device: DeviceID, upTo seq: UInt64) {
        for key in [HandOffKey(user, device), HandOffKey(user, nil)] {
            guard let item = items[key], item.lastSeq <= seq, !item.isTaken else { continue }
            items[key] = nil
        }
    }

    /// Returns at most `limit` due keys. ``settled(_:retryAt:)`` must follow for each.
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

    /// A key was checked.
    ///
    /// - Parameters:
    ///   - now: the time of the next check if entries were committed meanwhile.
    ///   - retryAt: the time of the next check if something failed; nil: nothing did.
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

    /// The number of a key's failures so far.
    package func attempts(of key: HandOffKey) -> Int { items[key]?.attempts ?? 0 }

    /// Starts to derive everything from the store again.
    package mutating func clearOverflow() { hasOverflowed = false }

    private mutating func enqueue(_ key: HandOffKey) {
        guard let due = items[key]?.due else { return }
        lastTicket += 1
        items[key]?.ticket = lastTicket
        heap.insert(Ticket(due: due, number: lastTicket, key: key))
        // Acknowledged items leave their tickets behind; when these are the majority, the heap is rebuilt.
        guard heap.count > 2 * items.count + 1024 else { return }
        heap = Heap(heap.unordered.filter { items[$0.key]?.ticket == $0.number && items[$0.key]?.isTaken == false })
    }
}
