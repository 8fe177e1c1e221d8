// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesSQLite

/// The SQL that appends a message. These are the store's statements, so that ``BareLoop`` writes the same rows. A test
/// compares them with the store.
enum AppendSQL {
    /// The statements that prepare a connection.
    ///
    /// - Parameter durability: the durability of the store to compare with.
    static func pragmas(_ durability: SQLiteStore.Durability) -> [String] {
        [
            "PRAGMA synchronous = \(durability == .full ? "FULL" : "NORMAL")",
            "PRAGMA cache_size = -32768",
            "PRAGMA journal_size_limit = 67108864",
            "PRAGMA wal_autocheckpoint = 8192",
            "PRAGMA secure_delete = ON",
        ]
    }

    static let insertMessage = """
        INSERT INTO message (key, shift, id_low, conversation, conversation_seq, sender, sender_device, client_id, \
        sent_at, expires_at, committed_at, content_until, refs, deliveries, content) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    static let insertEntry = """
        INSERT OR FAIL INTO inbox_fresh (user, seq, kind, message, source, weight) VALUES (?5, ?6, ?1, ?2, ?3, ?4)
        """
    static let insertClientID = "INSERT INTO client_id_fresh (sender, client_id, message) VALUES (?, ?, ?)"
    static let updateInbox = """
        UPDATE inbox_head SET head = ?, oldest = ?, acknowledged = ?, entries = ?, bytes = ? WHERE user = ?
        """
    static let updateConversation = """
        UPDATE conversation SET last_seq = ?, last_at = ?, quiet_a = ?, quiet_b = ? WHERE id = ?
        """

    /// Moves all fresh rows to their permanent tables.
    static let settle = [
        "INSERT OR REPLACE INTO inbox SELECT * FROM inbox_fresh ORDER BY user, seq",
        "DELETE FROM inbox_fresh",
        "INSERT OR REPLACE INTO client_id SELECT * FROM client_id_fresh ORDER BY sender, client_id",
        "DELETE FROM client_id_fresh",
    ]
    /// The number of fresh entries after which ``settle`` must run.
    static let rowsToSettle = 20_000
}
