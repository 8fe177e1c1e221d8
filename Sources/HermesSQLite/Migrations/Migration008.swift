// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addEntryWeights(_ db: Database) throws {
        // The column source: a number above 0 is the sender of a 1:1 message, a number below 0 stands for a group,
        // and 0 means neither. The column weight: the entry's size in InboxBudget. Entries from before this migration
        // have weight 0.
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
