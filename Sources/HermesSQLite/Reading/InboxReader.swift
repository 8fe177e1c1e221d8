// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Reads inboxes and conversations on one connection's snapshot.
struct InboxReader {
    let db: Database
    let epoch: UInt64
    let damage: Damage
    /// The jumps of the clock, by which expiries are corrected (``ClockJump``).
    var jumps = ClockJumps()

    /// The kind of an entry whose message is in a separate table. The other kinds are ``InboxEvent/StoredKind``.
    static let messageKind: Int64 = 0

    /// - Throws: ``DamagedInbox`` if the inbox's row is damaged.
    func position(of user: UserID) throws -> InboxPosition {
        let query = try PreparedStatement(db, "SELECT head, oldest, entries FROM inbox_head WHERE user = ?")
        query.bind(user, at: 1)
        let position = try query.first { row in
            guard let head = try? row.sequence(0), let oldest = try? row.sequence(1) else {
                throw DamagedInbox(user: user)
            }
            // An entry with a damaged seq may be the only entry that is left.
            return InboxPosition(
                epoch: epoch,
                head: head,
                oldest: min(oldest, head + 1),
                entries: row.soundAmount(2, upTo: PreparedStatement.maxSum)
            )
        }
        return position ?? InboxPosition(epoch: epoch, head: 0, oldest: 1)
    }

    func page(of user: UserID, after seq: UInt64, limit: Int) throws -> InboxPage {
        let position = try position(of: user)
        var page = InboxPageBuilder(after: seq, limit: limit)
        guard seq < position.head else { return page.finish(position) }
        for table in try tables(of: user, after: seq, upTo: position.head) {
            try read(table, of: user, after: seq, upTo: position.head, into: &page)
        }
        return page.finish(position)
    }

    /// Returns the tables to read, one after the other. Normally, all fresh entries of an inbox are newer than its
    /// settled entries. If a fresh entry is not newer, the seq of an entry is damaged, and both tables are read as one.
    private func tables(of user: UserID, after seq: UInt64, upTo head: UInt64) throws -> [String] {
        let query = try PreparedStatement(
            db,
            """
            SELECT (SELECT max(seq) FROM inbox WHERE user = ?1 AND seq > ?2 AND seq <= ?3) >= \
            (SELECT min(seq) FROM inbox_fresh WHERE user = ?1 AND seq > ?2)
            """
        )
        query.bind(user, at: 1)
        query.bind(seq, at: 2)
        query.bind(head, at: 3)
        let isMixed = try query.first { $0.integer(0) != 0 } ?? false
        return isMixed ? [Self.mixedTables] : FreshTables.inbox.both
    }

    /// Both tables. If both have an entry with the same seq, the settled entry is damaged.
    private static let mixedTables = """
        (SELECT user, seq, kind, message, committed_at, expires_at, payload FROM inbox_fresh \
        WHERE user = ?1 AND seq > ?2 UNION ALL \
        SELECT s.user, s.seq, s.kind, s.message, s.committed_at, s.expires_at, s.payload FROM inbox s \
        WHERE s.user = ?1 AND s.seq > ?2 \
        AND NOT EXISTS (SELECT 1 FROM inbox_fresh f WHERE f.user = s.user AND f.seq = s.seq))
        """

    private func read(
        _ table: String,
        of user: UserID,
        after seq: UInt64,
        upTo head: UInt64,
        into page: inout InboxPageBuilder
    ) throws {
        let query = try PreparedStatement(
            db,
            """
            SELECT i.seq, i.kind, i.committed_at, i.payload, \(Self.messageColumns()), i.expires_at \
            FROM \(table) i LEFT JOIN message m ON m.key = i.message \(Self.messageJoins) \
            WHERE i.user = ?1 AND i.seq > ?2 ORDER BY i.seq
            """
        )
        query.bind(user, at: 1)
        query.bind(seq, at: 2)
        try query.forEachRowWhile { row in
            let seq = row.unsigned(0)
            // If this entry were delivered, its damaged seq would move the device's cursor past all future entries.
            guard seq <= head else {
                damage.found("entry \(seq) of user \(user.rawValue)")
                return false
            }
            guard page.hasRoom(before: seq) else { return false }
            // A damaged entry leaves a gap, as if it had expired.
            try damage.skipping("entry \(seq) of user \(user.rawValue)") { try append(row, seq, to: &page) }
            return true
        }
    }

    private func append(_ row: PreparedStatement, _ seq: UInt64, to page: inout InboxPageBuilder) throws {
        let kind = row.integer(1)
        if kind == Self.messageKind {
            let message = try message(row, from: 4)
            page.append(
                InboxEntry(seq: seq, committedAt: row.timestamp(4 + 11), event: .message(message)),
                bytes: message.content.bytes.count
            )
        } else {
            guard var event = InboxEvent(kind: kind, stored: row.bytes(3)) else {
                throw StoreFailure.damagedRow
            }
            // The expiry in the row may have been corrected since the push was stored.
            if case .push(let push) = event, !row.isNull(4 + 16) {
                event = .push(push.expiring(at: jumps.corrected(row.timestamp(4 + 16), storedAt: row.timestamp(2))))
            }
            page.append(InboxEntry(seq: seq, committedAt: row.timestamp(2), event: event), bytes: event.bytes)
        }
    }

    func history(_ query: HistoryQuery) throws -> StoredHistory {
        // The condition is a result column, so that messages that do not meet it are counted, too. The content of
        // those messages may be long, and is not read.
        let timeCondition = "(m.content_until > ?6 OR m.committed_at < ?7)"
        let select = try PreparedStatement(
            db,
            """
            SELECT \(Self.messageColumns(content: "CASE WHEN \(timeCondition) THEN m.content END")), \(timeCondition) \
            FROM (SELECT id FROM conversation WHERE kind = ?1 AND a = ?2 AND b = ?3) this \
            JOIN message m ON m.conversation = this.id \(Self.messageJoins) \
            WHERE m.conversation_seq < ?4 AND m.conversation_seq > ?5 AND m.content_until > 0 \
            AND m.content IS NOT NULL ORDER BY m.conversation_seq DESC
            """
        )
        // Rows from before a jump of the clock are corrected only when they are purged, so their times cannot be
        // compared.
        let time = jumps.all.isEmpty ? query.time : nil
        let columns = ConversationColumns(query.conversation)
        select.bind(columns.kind, at: 1)
        select.bind(columns.a, at: 2)
        select.bind(columns.b, at: 3)
        select.bind(min(query.before ?? .max, UInt64(Int64.max)), at: 4)
        select.bind(min(query.after, UInt64(Int64.max)), at: 5)
        select.bind(time?.now ?? Timestamp(rawValue: 0), at: 6)
        select.bind(time?.storedSince ?? Timestamp(rawValue: .min), at: 7)
        var messages: [Message] = []
        var bytes = 0
        var passed = 0
        var next: UInt64?
        try select.forEachRowWhile { row in
            guard messages.count < query.limit, bytes < query.maxBytes else { return false }
            guard passed < query.maxPassed else {
                next = row.unsigned(5) + 1
                return false
            }
            let isKept = row.integer(16) != 0
            guard isKept, let found = try damage.skipping("message \(row.integer(0))", { try message(row, from: 0) })
            else {
                passed += 1
                return true
            }
            bytes += found.content.bytes.count
            messages.append(found)
            return true
        }
        return StoredHistory(messages: messages.reversed(), passed: passed, next: next)
    }

    /// - Parameter content: the expression for the message's content.
    private static func messageColumns(content: String = "m.content") -> String {
        """
        m.key, m.id_low, c.kind, c.a, c.b, m.conversation_seq, m.sender, a.nick_name, m.sender_device, m.client_id, \
        \(content), m.committed_at, m.sent_at, m.expires_at, m.is_recalled, m.shift
        """
    }

    private static let messageJoins = """
        LEFT JOIN conversation c ON c.id = m.conversation LEFT JOIN account a ON a.id = m.sender
        """

    private func message(_ row: PreparedStatement, from first: Int32) throws -> Message {
        let columns = ConversationColumns(
            kind: row.integer(first + 2),
            a: row.integer(first + 3),
            b: row.integer(first + 4)
        )
        guard let conversation = columns.conversation else { throw StoreFailure.damagedRow }
        return Message(
            id: MessageKey.id(key: row.integer(first), shift: row.integer(first + 15), low: row.unsigned(first + 1)),
            conversation: conversation,
            conversationSeq: try row.sequence(first + 5),
            sender: try row.user(first + 6),
            senderName: row.text(first + 7) ?? "",
            senderDevice: row.text(first + 8).flatMap { DeviceID(stored: $0) },
            clientID: row.text(first + 9),
            content: MessageContent(bytes: row.bytes(first + 10)),
            sentAt: row.timestamp(first + 12),
            expiresAt: jumps.corrected(row.timestamp(first + 13), storedAt: row.timestamp(first + 11)),
            isRecalled: row.integer(first + 14) != 0
        )
    }
}
