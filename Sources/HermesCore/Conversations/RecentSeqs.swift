// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A set of seqs of one conversation that remembers only the seqs in a window up to the newest one. Such a set tells
/// which recent messages an account sent, even if the messages are deleted.
package struct RecentSeqs: Sendable, Hashable {
    /// The number of seqs in the window: the newest one and those before it.
    package static let window: UInt64 = 64

    /// The last seq of the window.
    package private(set) var newest: UInt64
    /// Bit n: whether `newest` - n is in the set.
    package private(set) var bits: UInt64

    package init(newest: UInt64 = 0, bits: UInt64 = 0) {
        self.newest = newest
        self.bits = bits
    }

    /// Moves the window forward; seqs before the window are forgotten.
    package mutating func advance(to seq: UInt64) {
        guard seq > newest else { return }
        // A smart shift: by 64 or more nothing is left.
        bits <<= seq - newest
        newest = seq
    }

    /// Adds a seq, unless it is before the window.
    package mutating func insert(_ seq: UInt64) {
        advance(to: seq)
        guard newest - seq < Self.window else { return }
        bits |= 1 << (newest - seq)
    }

    /// The number of seqs behind `mark` up to `last` that are in neither of two sets.
    ///
    /// Exact if `mark` is within the window that ends with `last`. Otherwise seqs before that window count as in
    /// neither set.
    package static func count(
        after mark: UInt64,
        upTo last: UInt64,
        outside one: RecentSeqs,
        and other: RecentSeqs = RecentSeqs()
    ) -> UInt64 {
        guard last > mark else { return 0 }
        let span = last - mark
        let behindMark: UInt64 = span < window ? (1 << span) - 1 : .max
        let known = (one.bits(upTo: last) | other.bits(upTo: last)) & behindMark
        return span - UInt64(known.nonzeroBitCount)
    }

    /// The bits of a window that ends with `last`.
    private func bits(upTo last: UInt64) -> UInt64 {
        last >= newest ? bits << (last - newest) : bits >> (newest - last)
    }
}
