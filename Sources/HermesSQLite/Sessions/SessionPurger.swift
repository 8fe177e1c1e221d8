// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Deletes a bounded number of expired publications and of rows of removed sessions, in the writer's transaction.
///
/// Every step finds its rows through an index that contains almost nothing else, like ``Purger``. The step deletes or
/// marks (``QueueExpiry``) each row that it finds there, so that the limit also bounds the number of rows that it
/// reads.
struct SessionPurger {
    let db: Database
    let now: Timestamp
    let sentUpTo: (DurableSessionID) -> UInt64
    private var remaining: Int
    private var done = 0
    /// The number of expired publications that left each queue.
    private(set) var expired: [DurableSessionID: Int] = [:]
    /// How many waiting messages, and how many of their bytes, each owner loses. The amounts are negative.
    private(set) var queueChanges = OwnerTally()
    private var dereferenced: [Int64: Int64] = [:]

    init(db: Database, now: Timestamp, limit: Int, sentUpTo: @escaping (DurableSessionID) -> UInt64) {
        self.db = db
        self.now = now
        self.sentUpTo = sentUpTo
        remaining = max(limit, 0)
    }

    /// The queries that find the work; a test checks their plans for full scans.
    enum Query {
        static let gone = "SELECT session FROM session_gone ORDER BY session LIMIT 1"
        static let rows = FreshTables.queue.both.map { table in
            "SELECT seq, publication FROM \(table) WHERE session = ? ORDER BY seq LIMIT ?"
        }
        static let expired = FreshTables.queue.both.map { table in
            """
            SELECT session, seq, weight, publication, \
            seq > ifnull((SELECT sent_up_to FROM session WHERE id = \(table).session), 0) FROM \(table) \
            WHERE \(QueueExpiry.isDue) ORDER BY expires_at LIMIT ?
            """
        }
        static let retained = """
            SELECT topic FROM retained WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?
            """
        /// The deletions of a removed session's rows outside of its queue.
        static let leftovers = [
            ("session_subscription", "filter"), ("session_received", "packet_id"), ("session_released", "seq"),
            ("session_received_part", "packet_id, part"),
        ].map { table, key in
            """
            DELETE FROM \(table) WHERE session = ?1 AND (\(key)) IN \
            (SELECT \(key) FROM \(table) WHERE session = ?1 LIMIT ?2)
            """
        }
        static let all = rows + expired + [retained]
    }

    mutating func run() throws -> Int {
        try deleteGone()
        try deleteExpired()
        try deleteRetained()
        if !dereferenced.isEmpty { try PublicationReleaser(db).release(dereferenced) }
        return done
    }

    private mutating func count(_ rows: Int) {
        done += rows
        remaining = max(remaining - rows, 0)
    }

    private mutating func deleteGone() throws {
        let query = try PreparedStatement(db, Query.gone)
        while remaining > 0, let session = try query.first({ $0.integer(0) }) {
            for (table, sql) in zip(FreshTables.queue.both, Query.rows) where remaining > 0 {
                try deleteRows(of: session, from: table, sql)
            }
            for sql in Query.leftovers where remaining > 0 {
                let delete = try PreparedStatement(db, sql)
                delete.bind(session, at: 1)
                delete.bind(Int64(remaining), at: 2)
                try delete.run()
                count(db.changesCount)
            }
            guard remaining > 0 else { return }
            let delete = try PreparedStatement(db, "DELETE FROM session_gone WHERE session = ?")
            delete.bind(session, at: 1)
            try delete.run()
            count(1)
        }
    }

    private mutating func deleteRows(of session: Int64, from table: String, _ sql: String) throws {
        let query = try PreparedStatement(db, sql)
        query.bind(session, at: 1)
        query.bind(Int64(remaining), at: 2)
        var rows = 0
        var last: UInt64 = 0
        try query.forEachRow { row in
            rows += 1
            last = row.unsigned(0)
            if !row.isNull(1) { dereferenced[row.integer(1), default: 0] += 1 }
        }
        guard rows > 0 else { return }
        let delete = try PreparedStatement(db, "DELETE FROM \(table) WHERE session = ? AND seq <= ?")
        delete.bind(session, at: 1)
        delete.bind(last, at: 2)
        try delete.run()
        count(rows)
    }

    /// Deletes expired publications that were not sent. Sent publications are marked, so that they are not found again.
    private mutating func deleteExpired() throws {
        for (table, sql) in zip(FreshTables.queue.both, Query.expired) where remaining > 0 {
            let query = try PreparedStatement(db, sql)
            let delete = try PreparedStatement(db, "DELETE FROM \(table) WHERE session = ? AND seq = ?")
            let settle = try PreparedStatement(db, QueueExpiry.settleSQL(table))
            let update = try PreparedStatement(
                db,
                // A damaged number must not overflow.
                "UPDATE session_head SET queued = max(queued, 0) - 1, bytes = max(bytes, 0) - ? WHERE session = ?"
            )
            query.bind(now, at: 1)
            query.bind(Int64(remaining), at: 2)
            var found: [(session: Int64, seq: UInt64, weight: Int)] = []
            var sent: [(session: Int64, seq: UInt64)] = []
            try query.forEachRow { row in
                let id = DurableSessionID(rawValue: row.integer(0))
                guard row.integer(4) != 0, row.unsigned(1) > sentUpTo(id) else {
                    sent.append((row.integer(0), row.unsigned(1)))
                    return
                }
                found.append((row.integer(0), row.unsigned(1), row.amount(2)))
                if !row.isNull(3) { dereferenced[row.integer(3), default: 0] += 1 }
            }
            for (session, seq) in sent {
                settle.bind(session, at: 1)
                settle.bind(seq, at: 2)
                try settle.run()
            }
            let payer = try PreparedStatement(db, "SELECT payer FROM session WHERE id = ?")
            for (session, seq, weight) in found {
                delete.bind(session, at: 1)
                delete.bind(seq, at: 2)
                try delete.run()
                update.bind(Int64(weight), at: 1)
                update.bind(session, at: 2)
                try update.run()
                payer.bind(session, at: 1)
                let owner = try payer.first { $0.payer(0) }
                // The rows of a removed session no longer count towards anybody's share.
                if let owner { queueChanges.add(Holding(entries: -1, bytes: -weight), of: owner) }
                expired[DurableSessionID(rawValue: session), default: 0] += 1
            }
            count(found.count + sent.count)
        }
    }

    private mutating func deleteRetained() throws {
        guard remaining > 0 else { return }
        let query = try PreparedStatement(db, Query.retained)
        query.bind(now, at: 1)
        query.bind(Int64(remaining), at: 2)
        var topics: [String] = []
        try query.forEachRow { row in
            topics.append(row.text(0) ?? "")
        }
        let delete = try PreparedStatement(db, "DELETE FROM retained WHERE topic = ?")
        for topic in topics {
            try delete.bind(topic, at: 1) { try delete.run() }
        }
        count(topics.count)
    }
}
