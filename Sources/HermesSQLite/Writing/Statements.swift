// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// The statements of a commit.
struct Statements {
    let selectInbox: PreparedStatement
    let selectBlock: PreparedStatement
    let selectContact: PreparedStatement
    let selectLast: PreparedStatement
    let selectSources: PreparedStatement
    let updateInbox: PreparedStatement
    let insertEntry: KeyedInsert
    let insertEvent: PreparedStatement
    let selectConversation: PreparedStatement
    let insertConversation: PreparedStatement
    let updateConversation: PreparedStatement
    let noteOwn: PreparedStatement
    let insertMessage: PreparedStatement
    let selectClientID: PreparedStatement
    let insertClientID: PreparedStatement
    let selectCursors: PreparedStatement
    let updateCursor: PreparedStatement
    let moveReadMark: PreparedStatement

    init(_ db: Database) throws {
        selectInbox = try PreparedStatement(db, SQL.selectInbox)
        selectBlock = try PreparedStatement(db, SQL.selectBlock)
        selectContact = try PreparedStatement(db, SQL.selectContact)
        selectLast = try PreparedStatement(db, SQL.selectLast)
        selectSources = try PreparedStatement(db, SQL.selectSources)
        updateInbox = try PreparedStatement(db, SQL.updateInbox)
        insertEntry = KeyedInsert(db, SQL.insertEntry)
        insertEvent = try PreparedStatement(db, SQL.insertEvent)
        selectConversation = try PreparedStatement(db, SQL.selectConversation)
        insertConversation = try PreparedStatement(db, SQL.insertConversation)
        updateConversation = try PreparedStatement(db, SQL.updateConversation)
        noteOwn = try PreparedStatement(db, SQL.noteOwn)
        insertMessage = try PreparedStatement(db, SQL.insertMessage)
        selectClientID = try PreparedStatement(db, SQL.selectClientID)
        insertClientID = try PreparedStatement(db, SQL.insertClientID)
        selectCursors = try PreparedStatement(db, SQL.selectCursors)
        updateCursor = try PreparedStatement(db, SQL.updateCursor)
        moveReadMark = try PreparedStatement(db, SQL.moveReadMark)
    }

    /// The SQL texts; parameters are bound by position.
    enum SQL {
        static let selectInbox = """
            SELECT head, oldest, acknowledged, entries, bytes, \
            EXISTS (SELECT 1 FROM contact WHERE owner = inbox_head.user AND blocks = 1) FROM inbox_head WHERE user = ?
            """
        static let selectContact = "SELECT 1 FROM contact WHERE owner = ? AND peer = ? AND wants = 1"
        static let selectBlock = "SELECT 1 FROM contact WHERE owner = ? AND peer = ? AND blocks = 1"
        /// The last seq of an inbox up to a bound; 0 if there is none.
        static let selectLast = """
            SELECT max(coalesce((SELECT max(seq) FROM inbox WHERE user = ?1 AND seq <= ?2), 0), \
            coalesce((SELECT max(seq) FROM inbox_fresh WHERE user = ?1 AND seq <= ?2), 0))
            """
        /// The entries of an inbox. They are counted while they are read, because SQLite would sort them to group them.
        static let selectSources = """
            SELECT source, weight FROM inbox WHERE user = ?1 UNION ALL \
            SELECT source, weight FROM inbox_fresh WHERE user = ?1
            """
        static let updateInbox = """
            UPDATE inbox_head SET head = ?, oldest = ?, acknowledged = ?, entries = ?, bytes = ? WHERE user = ?
            """
        static let insertEntry = KeyedInsert.SQL(
            into: "inbox_fresh",
            key: ["user", "seq"],
            columns: ["kind", "message", "source", "weight"]
        )
        static let insertEvent = """
            INSERT INTO inbox_fresh (user, seq, kind, committed_at, expires_at, payload, weight) VALUES (?, ?, ?, ?, ?, ?, ?)
            """
        static let selectConversation = """
            SELECT id, last_seq, last_at, quiet_a, quiet_b FROM conversation WHERE kind = ? AND a = ? AND b = ?
            """
        static let insertConversation = """
            INSERT INTO conversation (kind, a, b, last_seq) VALUES (?, ?, ?, 0) \
            RETURNING id, last_seq, last_at, quiet_a, quiet_b
            """
        static let updateConversation = """
            UPDATE conversation SET last_seq = ?, last_at = ?, quiet_a = ?, quiet_b = ? WHERE id = ?
            """
        /// The SQL that does the same as ``RecentSeqs/insert(_:)``. In SQLite, a shift by 64 bits or more gives 0.
        static let noteOwn = """
            UPDATE group_member SET own = (own << (?1 - own_seq)) | 1, own_seq = ?1 WHERE group_id = ?2 AND user = ?3
            """
        static let insertMessage = """
            INSERT INTO message (key, shift, id_low, conversation, conversation_seq, sender, sender_device, client_id, \
            sent_at, expires_at, committed_at, content_until, refs, deliveries, content) \
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        static let selectClientID = "SELECT message FROM client_id WHERE sender = ? AND client_id = ?"
        static let insertClientID = "INSERT INTO client_id_fresh (sender, client_id, message) VALUES (?, ?, ?)"
        static let selectCursors = "SELECT device_id, cursor, proof FROM device WHERE user = ?"
        static let updateCursor = "UPDATE device SET cursor = ? WHERE user = ? AND device_id = ?"
        static let moveReadMark = """
            INSERT INTO read_mark (user, conversation, seq) SELECT ?1, ?2, ?3 WHERE ?3 > 0 \
            ON CONFLICT DO UPDATE SET seq = excluded.seq WHERE excluded.seq > read_mark.seq RETURNING 1
            """
    }
}
