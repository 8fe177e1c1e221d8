// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addLoginTables(_ db: Database) throws {
        try db.execute(
            sql: """
                -- Where accounts logged in from: see NetworkMark.
                CREATE TABLE known_network (
                    user INTEGER NOT NULL,
                    network INTEGER NOT NULL,
                    seen_at INTEGER NOT NULL,
                    PRIMARY KEY (user, network)
                ) STRICT, WITHOUT ROWID;

                CREATE TABLE invitation (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    hash BLOB NOT NULL UNIQUE,
                    name TEXT NOT NULL UNIQUE,
                    uses INTEGER NOT NULL,
                    used INTEGER NOT NULL DEFAULT 0,
                    created_at INTEGER NOT NULL,
                    expires_at INTEGER
                ) STRICT;

                -- DeviceProof: 0 claimed, 1 vouched for elsewhere, 2 by the account's own password or token.
                ALTER TABLE device ADD COLUMN proof INTEGER NOT NULL DEFAULT 2;
                -- Of older devices without tokens nobody knows; they stay as open as they were.
                UPDATE device SET proof = iif(platform = 'QSIOP', 0, 1) WHERE platform IN ('QSIOP', 'MQTT')
                    AND NOT EXISTS (SELECT 1 FROM token t WHERE t.user = device.user AND t.device_id = device.device_id);
                """
        )
    }
}
