// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The tracker's counts of seqs.
struct InboxCounts: Hashable, Sendable {
    /// Entries that arrived again.
    var duplicates: UInt64 = 0
    /// Missing seqs that had to be requested, or whose entries the server has deleted.
    var gaps: UInt64 = 0
    /// Missing seqs that arrived later.
    var repaired: UInt64 = 0
    /// Missing seqs that will not arrive.
    var lost: UInt64 = 0
}
