// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Marks each contact row that belongs to the contact list of its owner. Both accounts of a pair have a row, so a
    /// stranger who blocks an account adds a row to that account. Such rows must not make the account's list slower.
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
