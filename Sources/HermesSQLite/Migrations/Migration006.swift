// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func createDeletionTables(_ db: Database) throws {
        try db.execute(
            sql: """
                -- Accounts that were deleted and may have entries in the inbox still; purge deletes those. Their numbers are
                -- never given to anybody else.
                CREATE TABLE inbox_gone (user INTEGER PRIMARY KEY) STRICT;
                """
        )
    }
}
