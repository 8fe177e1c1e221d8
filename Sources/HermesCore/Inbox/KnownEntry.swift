// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An inbox entry that a client has got. From such an entry, the server recognizes that its store is an earlier state
/// of itself: the store then has no entry with this seq, or another one.
package struct KnownEntry: Sendable, Hashable {
    package let seq: UInt64
    /// The id of the message or push; empty for other kinds.
    package let id: String
    package let committedAt: Timestamp

    package init(seq: UInt64, id: String, committedAt: Timestamp) {
        self.seq = seq
        self.id = id
        self.committedAt = committedAt
    }

    /// Whether a stored entry with the same seq is this entry.
    ///
    /// An entry without an id is recognized by its time. If the clock was ahead when the entry was stored, the store
    /// may have corrected this time since then (``ClockJump``). The entry then counts as another one. The client gets
    /// some entries again, and loses none.
    func matches(_ stored: InboxEntry) -> Bool {
        switch stored.event {
        case .message(let message): id == message.id.description
        case .push(let push): id == push.id.description
        case .readMark, .recalled, .contact, .group: id.isEmpty && committedAt == stored.committedAt
        case .expired: true
        }
    }
}
