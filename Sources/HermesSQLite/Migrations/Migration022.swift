// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Creates the table of names that accounts had (``KeptName``).
    @Sendable static func keepNames(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE kept_name (
                    key TEXT PRIMARY KEY,
                    user INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID;
                """
        )
    }
}
