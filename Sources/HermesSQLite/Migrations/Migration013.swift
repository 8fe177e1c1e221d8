// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addPayers(_ db: Database) throws {
        // CommitSource.name: who pays for a session without an account, and for what is retained. It is not known for
        // rows that were stored before; they count in the total alone.
        for table in ["session", "retained"] {
            try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN payer TEXT NOT NULL DEFAULT ''")
        }
    }
}
