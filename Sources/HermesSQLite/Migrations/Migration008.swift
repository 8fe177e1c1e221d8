// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addEntryWeights(_ db: Database) throws {
        // source: whose 1:1 message (above 0), which group's (below 0), or nobody's. weight: what the entry counts for in
        // InboxBudget. What was stored before counts for nothing.
        for table in ["inbox", "inbox_fresh"] {
            try db.execute(
                sql: """
                    ALTER TABLE \(table) ADD COLUMN source INTEGER NOT NULL DEFAULT 0;
                    ALTER TABLE \(table) ADD COLUMN weight INTEGER NOT NULL DEFAULT 0;
                    """
            )
        }
    }
}
