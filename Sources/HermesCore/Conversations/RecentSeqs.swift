// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A set of seqs of one conversation that remembers only the seqs in a window. The window ends with the newest seq.
/// Such a set shows which recent messages an account sent, even if the messages are deleted.
package struct RecentSeqs: Sendable, Hashable {
    /// The number of seqs in the window, including the newest seq.
    package static let window: UInt64 = 64

    /// The last seq of the window.
    package private(set) var newest: UInt64
    /// The bits of the set. Bit n shows whether the seq `newest` - n is in the set.
    package private(set) var bits: UInt64

    package init(newest: UInt64 = 0, bits: UInt64 = 0) {
        self.newest = newest
        self.bits = bits
    }

    /// Moves the window forward; seqs before the window are forgotten.
    package mutating func advance(to seq: UInt64) {
        guard seq > newest else { return }
        // `<<=` is a smart shift: a shift by 64 or more clears all bits.
        bits <<= seq - newest
        newest = seq
    }

    /// Adds a seq, unless it is before the window.
    package mutating func insert(_ seq: UInt64) {
        advance(to: seq)
        guard newest - seq < Self.window else { return }
        bits |= 1 << (newest - seq)
    }

    /// Returns the number of seqs after `mark` and up to `last` that are in neither of two sets.
    ///
    /// The number is exact if `mark` is within the window that ends with `last`. Otherwise, seqs before that window
    /// count as if they were in neither set.
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

    /// Returns the bits of the window that ends with `last`.
    private func bits(upTo last: UInt64) -> UInt64 {
        last >= newest ? bits << (last - newest) : bits >> (newest - last)
    }
}
