// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The entries that a purge removed from an inbox.
struct InboxRemoval {
    /// The removed entries by source, in the stored form of ``EntrySource``.
    var bySource: [Int64: Holding] = [:]
    /// The seq of the inbox's oldest entry from now on; nil if the inbox is gone.
    var oldest: UInt64?
    /// The entries that stay in the inbox.
    var use = Holding()

    /// - Parameter right: the later removal.
    static func + (left: Self, right: Self) -> Self {
        var sum = left
        for (source, holding) in right.bySource { sum.bySource[source, default: Holding()] += holding }
        sum.oldest = right.oldest
        sum.use = right.use
        return sum
    }
}
