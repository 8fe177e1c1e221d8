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
        // The jump is deleted first, so that it corrects no more rows. If the rest of this function fails half-way,
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
        // Until the end, fresh rows stay in their table. Otherwise a row that moved between two steps would be found
        // in neither table.
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
