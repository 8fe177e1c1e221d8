// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addEntryWeights(_ db: Database) throws {
        // source: the sender of a 1:1 message (above 0), the group (below 0), or none. weight: the entry's size in
        // InboxBudget. Earlier entries count nothing.
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
