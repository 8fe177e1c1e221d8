// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addPayers(_ db: Database) throws {
        // The column payer names the source that pays for a session without an account, or for a retained publication
        // (CommitSource). The payer of rows from before this migration is unknown. Such rows count only toward the
        // total.
        for table in ["session", "retained"] {
            try db.execute(sql: "ALTER TABLE \(table) ADD COLUMN payer TEXT NOT NULL DEFAULT ''")
        }
    }
}
