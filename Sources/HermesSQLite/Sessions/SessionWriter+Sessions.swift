// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Operations on sessions and their subscriptions. These operations are rare compared with publications.
extension SessionWriter {
    mutating func open(_ key: SessionKey, clean: Bool, expiry: Duration?, payer: CommitSource) throws -> StoredSession {
        let arguments: StatementArguments = [key.owner.stored, key.clientID]
        let found = try Row.fetchOne(
            db,
            sql: "SELECT id, sent_up_to, renamed_at FROM session WHERE owner = ? AND client_id = ?",
            arguments: arguments
        )
        var known = found.map { DurableSessionID(rawValue: $0["id"]) }
        if clean, let old = known {
            try remove(old)
            known = nil
        }
        let milliseconds = expiry.map { Timestamp(rawValue: 0).advanced(by: $0).rawValue }
        guard let id = known, let head = try head(of: id) else {
            let payer = StoredSession.payer(of: key.owner, openedBy: payer)
            try db.execute(
                sql: """
                    INSERT INTO session (owner, client_id, expiry, is_online, sent_up_to, payer) VALUES (?, ?, ?, 1, 0, ?)
                    """,
                arguments: arguments + [milliseconds, payer.stored]
            )
            let id = db.lastInsertedRowID
            try db.execute(
                sql: "INSERT INTO session_head (session, head, queued, bytes) VALUES (?, 0, 0, 0)",
                arguments: [id]
            )
            var session = StoredSession(id: DurableSessionID(rawValue: id), key: key)
            session.payer = payer
            session.expiry = expiry
            session.isOnline = true
            return session
        }
        try db.execute(
            sql: "UPDATE session SET is_online = 1, expiry = ?, expires_at = NULL WHERE id = ?",
            arguments: [milliseconds, id.rawValue]
        )
        var session = StoredSession(id: id, key: key)
        session.wasPresent = true
        session.expiry = expiry
        session.isOnline = true
        session.head = cache.heads.values[head].head
        session.queuedCount = cache.heads.values[head].queued
        session.queuedBytes = cache.heads.values[head].bytes
        session.payer = cache.heads.values[head].payer
        session.sentUpTo = found.map { UInt64(clamping: $0["sent_up_to"] as Int64) } ?? 0
        // A damaged value counts as a renaming after all queued publications.
        session.renamedAt = found.map { UInt64(bitPattern: $0["renamed_at"] as Int64) } ?? 0
        let reader = SessionReader(db: db)
        session.subscriptions = try reader.subscriptions(of: id)
        session.released = try reader.released(of: id)
        session.received = try reader.received(of: id)
        session.partial = try reader.partial(of: id)
        return session
    }

    func close(_ id: DurableSessionID, sentUpTo: UInt64, expiresAt: Timestamp?) throws {
        try db.execute(
            sql: "UPDATE session SET is_online = 0, sent_up_to = max(sent_up_to, ?), expires_at = ? WHERE id = ?",
            arguments: [Int64(bitPattern: sentUpTo), expiresAt?.rawValue, id.rawValue]
        )
    }

    mutating func remove(_ id: DurableSessionID) throws {
        guard let index = try head(of: id) else { return }
        let head = cache.heads.values[index]
        queueChanges.add(-Holding(entries: head.queued, bytes: head.bytes), of: head.payer)
        cache.forget(id)
        try Self.removeRows(db, of: id.rawValue)
    }

    /// Deletes the session's own rows. The session may have a long queue and many subscriptions, so the purge deletes
    /// those.
    static func removeRows(_ db: Database, of id: Int64) throws {
        for sql in [
            "DELETE FROM session WHERE id = ?", "DELETE FROM session_head WHERE session = ?",
            "INSERT OR IGNORE INTO session_gone (session) VALUES (?)",
        ] {
            let statement = try PreparedStatement(db, sql)
            statement.bind(id, at: 1)
            try statement.run()
        }
    }

    func subscribe(_ id: DurableSessionID, _ subscriptions: [DurableSubscription]) throws {
        let insert = try PreparedStatement(
            db,
            """
            INSERT OR REPLACE INTO session_subscription (session, options, filter, identifiers) VALUES (?, ?, ?, ?)
            """
        )
        for subscription in subscriptions {
            insert.bind(id.rawValue, at: 1)
            insert.bind(PublicationCoding.encode(subscription.options), at: 2)
            try insert.bind(subscription.filter, at: 3) {
                try insert.bind(PublicationCoding.encode(subscription.options.identifiers), at: 4) { try insert.run() }
            }
        }
    }

    func unsubscribe(_ id: DurableSessionID, _ filters: [String]) throws {
        let delete = try PreparedStatement(db, "DELETE FROM session_subscription WHERE session = ? AND filter = ?")
        for filter in filters {
            delete.bind(id.rawValue, at: 1)
            try delete.bind(filter, at: 2) { try delete.run() }
        }
    }
}
