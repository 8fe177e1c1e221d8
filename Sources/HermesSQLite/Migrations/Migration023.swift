// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Adds the reason why an operation of the audit log was refused (``AuditEvent/code``); 0 means that the
    /// operation was not refused, or that the reason is unknown.
    @Sendable static func addAuditCodes(_ db: Database) throws {
        try db.execute(sql: "ALTER TABLE audit ADD COLUMN code INTEGER NOT NULL DEFAULT 0;")
    }
}
