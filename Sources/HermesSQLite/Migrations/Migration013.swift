// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addPayers(_ db: Database) throws {
        // payer: the source that pays for a session without an account, or for a retained publication (CommitSource).
        // It is not known for rows from before this migration, which count in the total alone.
        for table in ["session", "retained"] {
            try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN payer TEXT NOT NULL DEFAULT ''")
        }
    }
}
