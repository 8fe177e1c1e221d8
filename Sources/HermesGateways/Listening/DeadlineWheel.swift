// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An entry with an occasional deadline. The entry records its own place in the wheel, so that it can be removed at
/// once.
package protocol DeadlineWheelEntry: AnyObject {
    /// The entry's position, which the wheel sets; nil while the entry is not in the wheel.
    var wheelPosition: DeadlineWheelPosition? { get set }
}

/// A position in a ``DeadlineWheel``.
package struct DeadlineWheelPosition: Sendable, Hashable {
    fileprivate var slot: Int32
    fileprivate var index: Int32
}

/// Keeps the deadlines of many connections with a single timer: a ring of slots, one slot for each step of time.
///
/// If a deadline moves, for example because a frame arrived, nothing changes in the wheel. When the wheel reaches an
/// entry's slot, the entry's owner checks whether the deadline has really passed. If it has not passed, the owner
/// puts the entry back. So a sign of life costs one write to memory, and an idle connection costs at most one check
/// in each turn of the ring.
package struct DeadlineWheel<Entry: DeadlineWheelEntry> {
    private var slots: [[Entry]]
    /// The step up to which all entries were handed out.
    package private(set) var step: UInt32 = 0
    package private(set) var count = 0

    /// - Parameter slots: the length of the ring in steps. Entries that are due after more steps than this are handed
    ///   out early, and have to be put back.
    package init(slots: Int = 512) {
        self.slots = Array(repeating: [], count: max(2, slots))
    }

    /// Adds an entry that is due at a step. If that step has passed, the entry is due at the next step.
    package mutating func insert(_ entry: Entry, due: UInt32) {
        remove(entry)
        let earliest = step &+ 1
        let latest = step &+ UInt32(slots.count - 1)
        let slot = Int(min(max(due, earliest), max(earliest, latest))) % slots.count
        entry.wheelPosition = DeadlineWheelPosition(slot: Int32(slot), index: Int32(slots[slot].count))
        slots[slot].append(entry)
        count += 1
    }

    /// Removes an entry, if it is in the wheel.
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

    /// Advances the wheel. Removes and returns all entries whose slots were passed.
    package mutating func advance(to now: UInt32) -> [Entry] {
        guard now > step else { return [] }
        var due: [Entry] = []
        for offset in 1...min(Int(now - step), slots.count) {
            let slot = (Int(step) + offset) % slots.count
            guard !slots[slot].isEmpty else { continue }
            due.append(contentsOf: slots[slot])
            slots[slot] = []
        }
        step = now
        for entry in due { entry.wheelPosition = nil }
        count -= due.count
        return due
    }
}
