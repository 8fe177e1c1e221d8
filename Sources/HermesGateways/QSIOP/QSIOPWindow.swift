// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The inbox entries that were pushed and not acknowledged, and the cursor.
///
/// The cursor is one number, but acknowledgements come per push and in any order. So the cursor moves up to an entry
/// only when that entry and all entries before it are done. Bounded by the window of the inbox feed.
package struct QSIOPWindow: Sendable, Hashable {
    private struct Entry: Sendable, Hashable {
        let seq: UInt64
        /// Nil: the entry was not pushed, so no acknowledgement is awaited.
        let id: String?
        var isDone: Bool
    }

    private var entries = Deque<Entry>()

    package init() {}

    /// The number of entries between the cursor and the newest push.
    package var count: Int { entries.count }

    /// An entry was pushed under an id.
    package mutating func pushed(_ seq: UInt64, id: String) {
        entries.append(Entry(seq: seq, id: id, isDone: false))
    }

    /// An entry is not pushed to this device.
    ///
    /// - Returns: the cursor's new place; nil if it stays.
    package mutating func skipped(_ seq: UInt64) -> UInt64? {
        entries.append(Entry(seq: seq, id: nil, isDone: true))
        return advance()
    }

    /// The meaning of an acknowledgement.
    package enum Acknowledgement: Sendable, Hashable {
        /// No push with this id waits for it.
        case unknown
        /// Counted; earlier entries are still waiting, so the cursor stays.
        case waiting
        /// Counted, and the cursor may move up to this seq.
        case advanced(UInt64)
    }

    /// The device acknowledged a push; a repetition is harmless while it is in the window.
    package mutating func acknowledged(_ id: String) -> Acknowledgement {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return .unknown }
        entries[index].isDone = true
        return advance().map(Acknowledgement.advanced) ?? .waiting
    }

    private mutating func advance() -> UInt64? {
        var last: UInt64?
        while let first = entries.first, first.isDone {
            last = first.seq
            entries.removeFirst()
        }
        return last
    }
}
