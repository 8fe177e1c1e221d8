// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Decides which parts of a message stay when the message's inbox entries are removed.
struct MessageReleaser {
    private let correction: ClockCorrection
    private let settings: StoreSettings
    private let now: Timestamp
    private let select: PreparedStatement
    private let updateReferences: PreparedStatement
    private let keepContent: PreparedStatement
    private let keepRecord: PreparedStatement
    private let delete: PreparedStatement
    private let deleteClientID: [PreparedStatement]

    init(db: Database, settings: StoreSettings, now: Timestamp, correction: ClockCorrection) throws {
        self.settings = settings
        self.correction = correction
        self.now = now
        select = try PreparedStatement(
            db,
            "SELECT refs, content_until, sent_at, client_id, content_hash, content, sender, committed_at FROM message WHERE key = ?"
        )
        updateReferences = try PreparedStatement(db, "UPDATE message SET refs = ? WHERE key = ?")
        keepContent = try PreparedStatement(db, "UPDATE message SET refs = 0, due = ? WHERE key = ?")
        keepRecord = try PreparedStatement(
            db,
            "UPDATE message SET refs = 0, due = ?, content_hash = ?, content = NULL WHERE key = ?"
        )
        delete = try PreparedStatement(db, "DELETE FROM message WHERE key = ?")
        deleteClientID = try FreshTables.clientIDs.both.map { table in
            try PreparedStatement(db, "DELETE FROM \(table) WHERE sender = ? AND client_id = ?")
        }
    }

    private struct Found {
        let references: Int64
        let contentUntil: Timestamp
        let sentAt: Timestamp
        let clientID: String?
        /// The content's hash, after the content is deleted or recalled.
        let storedHash: Int64?
        let content: MessageContent?
        let sender: UserID
        let storedAt: Timestamp
    }

    /// Removes references to a message. When no reference is left, there are three cases: the content stays for
    /// history, only the record stays (for repetitions and recalls), or nothing stays.
    func release(_ key: Int64, references count: Int64) throws {
        select.bind(key, at: 1)
        let found = try select.first { row in
            Found(
                references: row.integer(0),
                contentUntil: row.timestamp(1),
                sentAt: row.timestamp(2),
                clientID: row.text(3),
                storedHash: row.isNull(4) ? nil : row.integer(4),
                content: row.isNull(5) ? nil : MessageContent(bytes: row.bytes(5)),
                sender: try row.user(6),
                storedAt: row.timestamp(7)
            )
        }
        guard let found else { return }
        let delay = correction.jumps.correction(of: found.storedAt)
        let contentUntil = found.contentUntil.rawValue > 0 ? found.contentUntil.advanced(by: delay) : found.contentUntil
        let recordUntil = found.sentAt.advanced(by: settings.recordPeriod + delay)
        _ = try correction.correctMessage(key, storedAt: found.storedAt)
        if found.references > count {
            updateReferences.bind(found.references - count, at: 1)
            updateReferences.bind(key, at: 2)
            try updateReferences.run()
        } else if found.content != nil, contentUntil > now {
            keepContent.bind(contentUntil, at: 1)
            keepContent.bind(key, at: 2)
            try keepContent.run()
        } else if recordUntil > now {
            keepRecord.bind(recordUntil, at: 1)
            keepRecord.bind(hash(of: found), at: 2)
            keepRecord.bind(key, at: 3)
            try keepRecord.run()
        } else {
            delete.bind(key, at: 1)
            try delete.run()
            guard let clientID = found.clientID else { return }
            for statement in deleteClientID {
                statement.bind(found.sender, at: 1)
                try statement.bind(clientID, at: 2) { try statement.run() }
            }
        }
    }

    private func hash(of found: Found) -> Int64? {
        if let stored = found.storedHash { return stored }
        return found.clientID == nil ? nil : found.content?.stableHash
    }
}
