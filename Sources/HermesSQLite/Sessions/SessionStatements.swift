// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

/// The frequent statements of a commit of sessions; parameters are bound by position.
struct SessionStatements {
    /// The statements for one of the two tables of a queue.
    struct Queue {
        struct SQL {
            let table: String
            let insertPlain: KeyedInsert.SQL

            init(_ table: String) {
                self.table = table
                insertPlain = KeyedInsert.SQL(
                    into: table,
                    key: ["session", "seq"],
                    columns: ["flags", "weight", "expires_at", "publication"]
                )
            }

            static let fresh = SQL("session_queue_fresh")
            static let settled = SQL("session_queue")
        }

        let insertShared: PreparedStatement
        let insertPlain: KeyedInsert
        let insertOwn: PreparedStatement
        let select: PreparedStatement
        let delete: PreparedStatement

        init(_ db: Database, _ sql: SQL) throws {
            let table = sql.table
            insertShared = try PreparedStatement(
                db,
                """
                INSERT INTO \(table) (session, seq, flags, weight, expires_at, publication, identifiers, share) \
                VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                """
            )
            insertPlain = KeyedInsert(db, sql.insertPlain)
            insertOwn = try PreparedStatement(
                db,
                """
                INSERT INTO \(table) \
                (session, seq, flags, weight, expires_at, published_at, identifiers, topic, payload, details, share) \
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
            )
            select = try PreparedStatement(
                db,
                "SELECT weight, publication FROM \(table) WHERE session = ? AND seq BETWEEN ? AND ?"
            )
            delete = try PreparedStatement(db, "DELETE FROM \(table) WHERE session = ? AND seq BETWEEN ? AND ?")
        }
    }

    let selectHead: PreparedStatement
    let updateHead: PreparedStatement
    let insertPublication: PreparedStatement
    let insertReferences: PreparedStatement
    let fresh: Queue
    let settled: Queue
    let deleteReleased: PreparedStatement
    let insertReleased: PreparedStatement
    let insertReceived: PreparedStatement
    let deleteReceived: PreparedStatement
    let insertPart: PreparedStatement
    let deleteParts: PreparedStatement

    func queue(isFresh: Bool) -> Queue { isFresh ? fresh : settled }

    init(_ db: Database) throws {
        selectHead = try PreparedStatement(
            db,
            """
            SELECT h.head, h.queued, h.bytes, s.payer FROM session_head h JOIN session s ON s.id = h.session \
            WHERE h.session = ?
            """
        )
        updateHead = try PreparedStatement(
            db,
            "UPDATE session_head SET head = ?, queued = ?, bytes = ? WHERE session = ?"
        )
        insertPublication = try PreparedStatement(
            db,
            "INSERT INTO publication (published_at, topic, payload, details) VALUES (?, ?, ?, ?)"
        )
        insertReferences = try PreparedStatement(db, "INSERT INTO publication_refs (key, refs) VALUES (?, ?)")
        fresh = try Queue(db, .fresh)
        settled = try Queue(db, .settled)
        deleteReleased = try PreparedStatement(
            db,
            "DELETE FROM session_released WHERE session = ? AND seq BETWEEN ? AND ?"
        )
        insertReleased = try PreparedStatement(db, "INSERT INTO session_released (session, seq) VALUES (?, ?)")
        insertReceived = try PreparedStatement(
            db,
            "INSERT OR IGNORE INTO session_received (session, packet_id) VALUES (?, ?)"
        )
        deleteReceived = try PreparedStatement(
            db,
            "DELETE FROM session_received WHERE session = ? AND packet_id = ?"
        )
        insertPart = try PreparedStatement(
            db,
            """
            INSERT OR REPLACE INTO session_received_part (session, packet_id, part, content, targets) \
            VALUES (?, ?, ?, ?, ?)
            """
        )
        deleteParts = try PreparedStatement(
            db,
            "DELETE FROM session_received_part WHERE session = ? AND packet_id = ?"
        )
    }
}
