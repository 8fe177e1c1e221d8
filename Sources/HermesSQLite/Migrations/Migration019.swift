// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Whether a row of contacts is in its owner's list. Both accounts of a pair have a row, so strangers who block an
    /// account add rows to it. These rows must not add to the cost of its list.
    @Sendable static func indexListedContacts(_ db: Database) throws {
        try db.execute(
            sql: """
                ALTER TABLE contact ADD COLUMN is_listed INTEGER NOT NULL DEFAULT 1;
                UPDATE contact SET is_listed = 0 WHERE wants = 0 AND blocks = 0 AND NOT EXISTS (
                    SELECT 1 FROM contact o WHERE o.owner = contact.peer AND o.peer = contact.owner AND o.wants = 1);
                CREATE INDEX contact_listed ON contact (owner, peer) WHERE is_listed = 1;
                """
        )
    }
}
