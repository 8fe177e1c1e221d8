// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Adds the number of the last run that wrote to the file (``RunRecord``); 0 means a run of an earlier version.
    @Sendable static func numberRuns(_ db: Database) throws {
        try db.execute(sql: "ALTER TABLE store ADD COLUMN run INTEGER NOT NULL DEFAULT 0;")
    }
}
