// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Something that has a deadline now and then. It knows its own place in the wheel, so that it can be taken out at once.
package protocol DeadlineWheelEntry: AnyObject {
    /// Kept by the wheel; nil while not in it.
    var wheelPosition: DeadlineWheelPosition? { get set }
}

/// A place in a ``DeadlineWheel``.
package struct DeadlineWheelPosition: Sendable, Hashable {
    fileprivate var slot: Int32
    fileprivate var index: Int32
}

/// Deadlines of many connections with one timer: a ring of slots, one per tick.
///
/// Deadlines that move (a frame came) are not moved here: when an entry's slot comes up, its owner looks whether the
/// deadline has really been reached and puts the entry back if not. So a sign of life costs one store, and
/// an idle connection a look per ring turn at most.
package struct DeadlineWheel<Entry: DeadlineWheelEntry> {
    private var slots: [[Entry]]
    /// The tick up to which everything was handed out.
    package private(set) var tick: UInt32 = 0
    package private(set) var count = 0

    /// - Parameter slots: how many ticks ahead the ring reaches; what is due later is handed out early, to be put back.
    package init(slots: Int = 512) {
        self.slots = Array(repeating: [], count: max(2, slots))
    }

    /// Puts an entry in, due at a tick; at the next tick if that one is past.
    package mutating func insert(_ entry: Entry, due: UInt32) {
        remove(entry)
        let earliest = tick &+ 1
        let latest = tick &+ UInt32(slots.count - 1)
        let slot = Int(min(max(due, earliest), max(earliest, latest))) % slots.count
        entry.wheelPosition = DeadlineWheelPosition(slot: Int32(slot), index: Int32(slots[slot].count))
        slots[slot].append(entry)
        count += 1
    }

    /// Takes an entry out; does nothing if it is not in.
    package mutating func remove(_ entry: Entry) {
        guard let position = entry.wheelPosition else { return }
        entry.wheelPosition = nil
        let slot = Int(position.slot)
        let index = Int(position.index)
        slots[slot].swapAt(index, slots[slot].count - 1)
        slots[slot].removeLast()
        if index < slots[slot].count { slots[slot][index].wheelPosition = position }
        count -= 1
    }

    /// Moves on and takes out all entries whose slots were passed.
    package mutating func advance(to now: UInt32) -> [Entry] {
        guard now > tick else { return [] }
        var due: [Entry] = []
        for step in 1...min(Int(now - tick), slots.count) {
            let slot = (Int(tick) + step) % slots.count
            guard !slots[slot].isEmpty else { continue }
            due.append(contentsOf: slots[slot])
            slots[slot] = []
        }
        tick = now
        for entry in due { entry.wheelPosition = nil }
        count -= due.count
        return due
    }
}
