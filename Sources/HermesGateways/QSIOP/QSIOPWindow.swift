// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The inbox entries that were pushed but not acknowledged. They determine the device's cursor.
///
/// The cursor is one number, but the device acknowledges each push separately, and in any order. So the cursor moves
/// up to an entry when that entry and all entries before it are done. The window of the inbox feed limits the number
/// of entries.
package struct QSIOPWindow: Sendable, Hashable {
    private struct Entry: Sendable, Hashable {
        let seq: UInt64
        /// The id of the push; nil if the entry was not pushed, so that no acknowledgement is awaited.
        let id: String?
        var isDone: Bool
    }

    private var entries = Deque<Entry>()

    package init() {}

    /// The number of entries after the cursor, up to the newest push.
    package var count: Int { entries.count }

    /// Records that an entry was pushed under this id.
    package mutating func pushed(_ seq: UInt64, id: String) {
        entries.append(Entry(seq: seq, id: id, isDone: false))
    }

    /// Records that an entry is not pushed to this device.
    ///
    /// - Returns: the new cursor; nil if the cursor does not move.
    package mutating func skipped(_ seq: UInt64) -> UInt64? {
        entries.append(Entry(seq: seq, id: nil, isDone: true))
        return advance()
    }

    /// The effect of an acknowledgement.
    package enum Acknowledgement: Sendable, Hashable {
        /// No push with this id waits for an acknowledgement.
        case unknown
        /// The acknowledgement is counted, but earlier entries still wait for their acknowledgements, so the cursor
        /// stays.
        case waiting
        /// The acknowledgement is counted, and the cursor may move up to this seq.
        case advanced(UInt64)
    }

    /// Records that the device acknowledged a push. The device may acknowledge the push again while it is in the
    /// window.
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
