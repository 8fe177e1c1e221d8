// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addOpenClaims(_ db: Database) throws {
        try db.execute(
            sql: """
                -- 1: what was claimed is not known to be done; whoever claims it again does it again.
                ALTER TABLE push_claim ADD COLUMN is_open INTEGER NOT NULL DEFAULT 0;
                """
        )
    }
}
