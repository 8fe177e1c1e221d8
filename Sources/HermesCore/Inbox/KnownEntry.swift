// Hermes
// SPDX-License-Identifier: Apache-2.0

/// An inbox entry that a client has got. The entry shows the server whether its store went back to an earlier state:
/// the store then has another entry with this seq, or the inbox ends before this seq.
package struct KnownEntry: Sendable, Hashable {
    package let seq: UInt64
    /// The id of the message or push; empty for other kinds, and for an entry that is not for the client.
    package let id: String
    package let committedAt: Timestamp

    package init(seq: UInt64, id: String, committedAt: Timestamp) {
        self.seq = seq
        self.id = id
        self.committedAt = committedAt
    }

    /// Whether a stored entry with the same seq is this entry.
    ///
    /// An entry without an id is recognized by its time. If the server's clock was wrong when the entry was stored, the
    /// store may have corrected this time since then (``ClockJump``, ``ClockSetback``). The entry then counts as
    /// another one. So the client gets some entries again, and loses none.
    func matches(_ stored: InboxEntry) -> Bool {
        if case .expired = stored.event { return true }
        return id.isEmpty ? committedAt == stored.committedAt : id == stored.event.id?.description
    }
}

extension InboxEvent {
    /// The id of the message or push; nil for other kinds.
    fileprivate var id: MessageID? {
        switch self {
        case .message(let message): message.id
        case .push(let push): push.id
        case .readMark, .recalled, .contact, .group, .expired: nil
        }
    }
}
