// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore

/// Inserts and deletes rows that have a unique name: keys of the HTTP API, invitations, administrators.
enum NamedSecret {
    /// - Parameter taken: thrown if the name is taken.
    /// - Returns: the new row's id.
    static func insert(
        _ sql: String,
        _ arguments: StatementArguments,
        in db: Database,
        taken: HermesError
    ) throws -> Int64 {
        do {
            try db.execute(sql: sql, arguments: arguments)
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE {
            throw taken
        }
        return db.lastInsertedRowID
    }

    /// - Parameter missing: thrown if there is no such row.
    static func delete(from table: String, named name: String, in db: Database, missing: HermesError) throws {
        // GRDB binds a text only up to a U+0000, which no name contains.
        guard !name.utf8.contains(0) else { throw missing }
        try db.execute(sql: "DELETE FROM \(table) WHERE name = ?", arguments: [name])
        guard db.changesCount > 0 else { throw missing }
    }
}
