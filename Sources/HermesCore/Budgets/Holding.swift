// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An owner's part of a bounded resource, such as the entries in an inbox or the queue of a session.
package struct Holding: Sendable, Hashable {
    package var entries: Int
    /// The bytes. In an inbox, these are the bytes of the contents plus ``InboxBudget/entryBytes`` for each entry.
    package var bytes: Int

    package init(entries: Int = 0, bytes: Int = 0) {
        self.entries = entries
        self.bytes = bytes
    }

    /// Counts one more entry.
    package mutating func add(_ bytes: Int) { self += Holding(entries: 1, bytes: bytes) }

    /// Removes one entry of this size from the counts.
    package mutating func subtract(_ bytes: Int) { self += Holding(entries: -1, bytes: -bytes) }

    package static func += (left: inout Holding, right: Holding) {
        left.entries += right.entries
        left.bytes += right.bytes
    }

    package static prefix func - (holding: Holding) -> Holding {
        Holding(entries: -holding.entries, bytes: -holding.bytes)
    }
}
