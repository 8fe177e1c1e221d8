// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// The statements of a commit.
struct Statements {
    let selectInbox: PreparedStatement
    let updateInbox: PreparedStatement
    let insertEntry: PreparedStatement
    let insertEvent: PreparedStatement
    let selectConversation: PreparedStatement
    let insertConversation: PreparedStatement
    let updateConversation: PreparedStatement
    let insertMessage: PreparedStatement
    let selectCursors: PreparedStatement
    let updateCursor: PreparedStatement

    init(_ db: Database) throws {
        selectInbox = try PreparedStatement(db, "SELECT head, oldest, acknowledged FROM inbox_head WHERE user = ?")
        updateInbox = try PreparedStatement(
            db,
            "UPDATE inbox_head SET head = ?, oldest = ?, acknowledged = ? WHERE user = ?"
        )
        insertEntry = try PreparedStatement(db, "INSERT INTO inbox (user, seq, kind, message) VALUES (?, ?, 0, ?)")
        insertEvent = try PreparedStatement(
            db,
            "INSERT INTO inbox (user, seq, kind, committed_at, expires_at, payload) VALUES (?, ?, ?, ?, ?, ?)"
        )
        selectConversation = try PreparedStatement(
            db,
            "SELECT id, last_seq FROM conversation WHERE kind = ? AND a = ? AND b = ?"
        )
        insertConversation = try PreparedStatement(
            db,
            "INSERT INTO conversation (kind, a, b, last_seq) VALUES (?, ?, ?, 0) RETURNING id, last_seq"
        )
        updateConversation = try PreparedStatement(db, "UPDATE conversation SET last_seq = ? WHERE id = ?")
        insertMessage = try PreparedStatement(
            db,
            """
            INSERT INTO message (key, id_high, id_low, conversation, conversation_seq, sender, sender_device, client_id, \
            sent_at, expires_at, committed_at, content_until, refs, deliveries, content) \
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        )
        selectCursors = try PreparedStatement(db, "SELECT device_id, cursor FROM device WHERE user = ?")
        updateCursor = try PreparedStatement(db, "UPDATE device SET cursor = ? WHERE user = ? AND device_id = ?")
    }
}
