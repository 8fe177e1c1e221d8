// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Adds a column that shows whether the last run waited for the disk with each commit; 0 means that it did not
    /// wait, or that it was a run of an earlier version.
    @Sendable static func noteDurability(_ db: Database) throws {
        try db.execute(sql: "ALTER TABLE store ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;")
    }
}
