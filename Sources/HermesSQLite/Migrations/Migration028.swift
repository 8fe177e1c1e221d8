// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Stores the number and the bytes of each inbox's entries (``InboxCounts``). Adds the index of the accounts that
    /// are being deleted.
    @Sendable static func countInboxes(_ db: Database) throws {
        try db.execute(
            sql: """
                ALTER TABLE inbox_head ADD COLUMN entries INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE inbox_head ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
                \(InboxCounts.countAllSQL);

                CREATE INDEX account_leaving ON account (id) WHERE is_disabled = \(AccountRow.leaving);
                """
        )
    }
}
