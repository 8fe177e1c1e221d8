// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A hash table of numbers. The owner stores the keys of these numbers. A slot has 8 bytes, and growing the table never
/// reads a key.
///
/// The owner hashes and compares the keys. It hashes them with a secret seed, because keys come from strangers. The
/// table uses open addressing with linear probing. A removal leaves no tombstone.
struct HashIndex: Sendable {
    private struct Slot {
        var hash: UInt32
        var number: UInt32
    }

    /// The number that no entry may have.
    static let none = UInt32.max
    private static let minCapacity = 16

    private var slots: [Slot] = []
    private(set) var count = 0

    /// Returns the number with this hash for which `isWanted` is true.
    @inline(__always)
    func find(_ hash: UInt32, where isWanted: (UInt32) -> Bool) -> UInt32? {
        guard count > 0 else { return nil }
        return slots.withUnsafeBufferPointer { slots in
            let mask = slots.count &- 1
            var place = Int(hash) & mask
            while true {
                let slot = slots[place]
                if slot.number == Self.none { return nil }
                if slot.hash == hash && isWanted(slot.number) { return slot.number }
                place = (place &+ 1) & mask
            }
        }
    }

    /// Adds a number that is not in the table yet.
    mutating func insert(_ number: UInt32, hash: UInt32) {
        if (count + 1) * 4 > slots.count * 3 { resize(to: max(slots.count * 2, Self.minCapacity)) }
        place(Slot(hash: hash, number: number))
        count += 1
    }

    /// Removes a number that is in the table.
    mutating func remove(_ number: UInt32, hash: UInt32) {
        guard count > 0 else { return }
        let mask = slots.count - 1
        var hole = Int(hash) & mask
        while slots[hole].number != number {
            guard slots[hole].number != Self.none else { return }
            hole = (hole + 1) & mask
        }
        // Move up each following entry that a lookup would not find because of the hole.
        var next = (hole + 1) & mask
        while slots[next].number != Self.none {
            let home = Int(slots[next].hash) & mask
            if (next - home) & mask >= (next - hole) & mask {
                slots[hole] = slots[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        slots[hole].number = Self.none
        count -= 1
        if count * 8 < slots.count && slots.count > Self.minCapacity { resize(to: slots.count / 2) }
    }

    private mutating func place(_ slot: Slot) {
        let mask = slots.count - 1
        var place = Int(slot.hash) & mask
        while slots[place].number != Self.none { place = (place + 1) & mask }
        slots[place] = slot
    }

    private mutating func resize(to capacity: Int) {
        let old = slots
        slots = Array(repeating: Slot(hash: 0, number: Self.none), count: capacity)
        for slot in old where slot.number != Self.none { place(slot) }
    }
}

extension HashIndex {
    /// Returns a hash of bytes that strangers chose. Each process uses a different seed.
    @inline(__always)
    static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> UInt32 {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
        return UInt32(truncatingIfNeeded: hasher.finalize())
    }
}
