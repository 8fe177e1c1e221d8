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

    package func takeBack(_ setback: ClockSetback) async throws(HermesError) {
        guard let jump = setback.undoes(clockJumps.withLock { $0 }) else { return }
        // The jump is deleted first, so that it corrects nothing more. If the rest of this function fails half-way,
        // some rows are kept too long, but none is deleted too early.
        let all = try await write { (db, _) in
            try db.execute(
                sql: "DELETE FROM clock_jump WHERE first = ? AND until = ? AND length = ?",
                arguments: [jump.times.lowerBound.rawValue, jump.times.upperBound.rawValue, jump.milliseconds]
            )
            return try ClockJumps(stored: db)
        }
        clockJumps.withLock { $0 = all }
        let undoing = ClockUndoing(jump: jump, setback: setback, damage: damage)
        // Other writers can run between the steps.
        var message: Int64? = undoing.firstMessage
        while let last = message {
            message = try await write { (db, _) in try undoing.messages(after: last, in: db) }
        }
        // A row that moved from one table to the other between two steps would be found in neither.
        keepsFresh.store(true, ordering: .relaxed)
        defer { keepsFresh.store(false, ordering: .relaxed) }
        for table in FreshTables.inbox.both {
            var entry: ClockUndoing.Entry? = undoing.firstEntry
            while let last = entry {
                entry = try await write { (db, _) in try undoing.entries(of: table, after: last, in: db) }
            }
        }
    }
}

/// Takes back the effect of a jump that turned out to be wrong (``ClockSetback``), for some rows in each transaction.
struct ClockUndoing: Sendable {
    /// A position in the index of expiries. It has the numbers of the row, even damaged ones, so that the next step
    /// begins behind the row.
    struct Entry: Sendable {
        let expiresAt: Int64
        let user: Int64
        let seq: Int64
    }

    private static let rows: Int64 = 256
    /// The time by which an id may be older than its row.
    private static let slack = Duration.seconds(3_600)

    let jump: ClockJump
    let setback: ClockSetback
    let damage: Damage

    private var back: Duration { .zero - jump.length }

    /// A key below those of all messages that the jump can concern. Keys begin with the time (``MessageKey``).
    var firstMessage: Int64 {
        max(0, jump.times.lowerBound.advanced(by: .zero - Self.slack).rawValue) << 16
    }

    /// A position before all entries that the jump can concern: they expire after the first time that was too late.
    var firstEntry: Entry {
        Entry(expiresAt: jump.times.lowerBound.advanced(by: jump.length).rawValue, user: 0, seq: 0)
    }

    /// Moves back the times of the next messages that were stored too late.
    ///
    /// - Returns: the last key that was examined; nil if there are no more.
    func messages(after last: Int64, in db: Database) throws -> Int64? {
        let query = try PreparedStatement(
            db,
            "SELECT key, committed_at FROM message WHERE key > ? ORDER BY key LIMIT ?"
        )
        query.bind(last, at: 1)
        query.bind(Self.rows, at: 2)
        var end: Int64?
        var late: [Int64] = []
        try query.forEachRow { row in
            end = row.integer(0)
            if setback.concerns(row.timestamp(1), of: jump) { late.append(row.integer(0)) }
        }
        for key in late { try ClockCorrection.moveMessage(key, by: back, in: db) }
        return end
    }

    /// Moves back the times of the next entries that were stored too late.
    ///
    /// - Returns: the last entry that was examined; nil if there are no more.
    func entries(of table: String, after last: Entry, in db: Database) throws -> Entry? {
        let query = try PreparedStatement(
            db,
            """
            SELECT expires_at, user, seq, committed_at FROM \(table) WHERE expires_at IS NOT NULL \
            AND (expires_at, user, seq) > (?, ?, ?) ORDER BY expires_at, user, seq LIMIT ?
            """
        )
        query.bind(last.expiresAt, at: 1)
        query.bind(last.user, at: 2)
        query.bind(last.seq, at: 3)
        query.bind(Self.rows, at: 4)
        var end: Entry?
        var late: [(user: UserID, seq: UInt64)] = []
        try query.forEachRow { row in
            end = Entry(expiresAt: row.integer(0), user: row.integer(1), seq: row.integer(2))
            guard setback.concerns(row.timestamp(3), of: jump) else { return }
            let user = try damage.skipping("inbox of user \(row.integer(1))") { try row.user(1) }
            if let user { late.append((user, row.unsigned(2))) }
        }
        for (user, seq) in late { try ClockCorrection.moveEntry(seq, of: user, in: table, by: back, in: db) }
        return end
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

/// Corrects the times of rows that were stored while the clock was behind (``ClockJump``). Each row is corrected when
/// it is found.
struct ClockCorrection {
    let db: Database
    let jumps: ClockJumps

    /// - Returns: whether the row was corrected. Then it may not be due yet, and must be looked at again.
    func correctMessage(_ key: Int64, storedAt: Timestamp) throws -> Bool {
        let delay = jumps.correction(of: storedAt)
        guard delay > .zero else { return false }
        try Self.moveMessage(key, by: delay, in: db)
        return true
    }

    /// Corrects an inbox entry that is not a message, as ``correctMessage(_:storedAt:)`` corrects a message.
    func correctEntry(_ seq: UInt64, of user: UserID, in table: String, storedAt: Timestamp) throws -> Bool {
        let delay = jumps.correction(of: storedAt)
        guard delay > .zero else { return false }
        try Self.moveEntry(seq, of: user, in: table, by: delay, in: db)
        return true
    }

    /// Moves the times of a message by a delay. A negative delay moves them back.
    static func moveMessage(_ key: Int64, by delay: Duration, in db: Database) throws {
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
    }

    /// Moves the times of an inbox entry that is not a message, by a delay. A negative delay moves them back.
    static func moveEntry(
        _ seq: UInt64,
        of user: UserID,
        in table: String,
        by delay: Duration,
        in db: Database
    ) throws {
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
    }
}
