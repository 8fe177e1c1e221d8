// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Why an operation of the audit log was refused (``AuditEvent/code``); 0: it was not, or nobody knows.
    @Sendable static func addAuditCodes(_ db: Database) throws {
        try db.execute(sql: "ALTER TABLE audit ADD COLUMN code INTEGER NOT NULL DEFAULT 0;")
    }
}
