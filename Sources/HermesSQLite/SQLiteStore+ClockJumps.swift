// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore
internal import Synchronization

extension SQLiteStore {
    package func record(_ jump: ClockJump) async throws(HermesError) {
        let all = try await write { (db, _) in
            try db.execute(
                sql: "INSERT INTO clock_jump (first, until, length) VALUES (?, ?, ?)",
                arguments: [jump.times.lowerBound.rawValue, jump.times.upperBound.rawValue, jump.milliseconds]
            )
            try db.execute(
                sql: "DELETE FROM clock_jump WHERE number <= (SELECT max(number) FROM clock_jump) - ?",
                arguments: [ClockJumps.limit]
            )
            return try ClockJumps(stored: db)
        }
        clockJumps.withLock { $0 = all }
    }
}

extension ClockJumps {
    init(stored db: Database) throws {
        let rows = try Row.fetchAll(db, sql: "SELECT first, until, length FROM clock_jump ORDER BY number")
        let found = rows.compactMap { row -> ClockJump? in
            let (first, until): (Int64, Int64) = (row["first"], row["until"])
            guard first <= until else { return nil }
            return ClockJump(
                times: Timestamp(rawValue: first)..<Timestamp(rawValue: until),
                length: .milliseconds(row["length"] as Int64)
            )
        }
        self.init(found)
    }
}

extension ClockJump {
    fileprivate var milliseconds: Int64 {
        let parts = length.components
        return parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000
    }
}

/// Corrects the times of rows that were stored while the clock was behind (``ClockJump``), each when it is found.
struct ClockCorrection {
    let db: Database
    let jumps: ClockJumps

    /// - Returns: whether there was something to correct; the row is to be looked at again.
    func correctMessage(_ key: Int64, storedAt: Timestamp) throws -> Bool {
        let delay = jumps.correction(of: storedAt)
        guard delay > .zero else { return false }
        let update = try PreparedStatement(
            db,
            """
            UPDATE message SET committed_at = committed_at + ?1, sent_at = sent_at + ?1, expires_at = expires_at + ?1, \
            due = due + ?1, content_until = iif(content_until > 0, content_until + ?1, content_until) WHERE key = ?2
            """
        )
        update.bind(Timestamp(rawValue: 0).advanced(by: delay), at: 1)
        update.bind(key, at: 2)
        try update.run()
        return true
    }

    /// The same for an entry that is no message.
    func correctEntry(_ seq: UInt64, of user: UserID, in table: String, storedAt: Timestamp) throws -> Bool {
        let delay = jumps.correction(of: storedAt)
        guard delay > .zero else { return false }
        let update = try PreparedStatement(
            db,
            """
            UPDATE \(table) SET committed_at = committed_at + ?1, expires_at = expires_at + ?1 \
            WHERE user = ?2 AND seq = ?3
            """
        )
        update.bind(Timestamp(rawValue: 0).advanced(by: delay), at: 1)
        update.bind(user, at: 2)
        update.bind(seq, at: 3)
        try update.run()
        return true
    }
}
