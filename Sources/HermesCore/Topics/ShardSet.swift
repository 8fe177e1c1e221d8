// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A set of shards by their indices. The first 64 shards need no allocation.
struct ShardSet: Sendable, Hashable {
    private var first: UInt64 = 0
    /// The words after the first word, without empty words at the end.
    private var others: [UInt64] = []

    init() {}

    var isEmpty: Bool { first == 0 && others.isEmpty }

    mutating func insert(_ shard: Int) {
        guard shard >= 64 else {
            first |= 1 << UInt64(shard)
            return
        }
        let word = shard / 64 - 1
        while others.count <= word { others.append(0) }
        others[word] |= 1 << UInt64(shard % 64)
    }

    mutating func remove(_ shard: Int) {
        guard shard >= 64 else {
            first &= ~(1 << UInt64(shard))
            return
        }
        let word = shard / 64 - 1
        guard word < others.count else { return }
        others[word] &= ~(1 << UInt64(shard % 64))
        while others.last == 0 { others.removeLast() }
    }

    mutating func formUnion(_ other: ShardSet) {
        first |= other.first
        guard !other.others.isEmpty else { return }
        while others.count < other.others.count { others.append(0) }
        for (word, bits) in other.others.enumerated() { others[word] |= bits }
    }

    /// Returns the shards of the set whose index is below `end`.
    func below(_ end: Int) -> ShardSet {
        var set = ShardSet()
        forEachShard { if $0 < end { set.insert($0) } }
        return set
    }

    @inline(__always)
    func forEachShard(_ body: (Int) -> Void) {
        Self.forEachShard(first, from: 0, body)
        for (word, bits) in others.enumerated() { Self.forEachShard(bits, from: (word + 1) * 64, body) }
    }

    @inline(__always)
    private static func forEachShard(_ bits: UInt64, from base: Int, _ body: (Int) -> Void) {
        var bits = bits
        while bits != 0 {
            body(base &+ bits.trailingZeroBitCount)
            bits &= bits &- 1
        }
    }
}
