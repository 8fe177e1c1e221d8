// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addPayers(_ db: Database) throws {
        // CommitSource.name: who pays for a session without an account, and for what is retained. Of what was stored
        // before it is not known; such rows count in total alone.
        for table in ["session", "retained"] {
            try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN payer TEXT NOT NULL DEFAULT ''")
        }
    }
}
