// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func createPushTables(_ db: Database) throws {
        try db.execute(
            sql: """
                -- A push for many that is not with all of them yet. push: see DurableKind. users: whom it names, 4 bytes
                -- each, little-endian; NULL: everyone. cursor: how many of those were looked at, or the last account that
                -- was. last_user: of "everyone", those up to here.
                CREATE TABLE push_job (
                    number INTEGER PRIMARY KEY AUTOINCREMENT,
                    id BLOB NOT NULL UNIQUE,
                    push BLOB NOT NULL,
                    users BLOB,
                    cursor INTEGER NOT NULL,
                    last_user INTEGER NOT NULL
                ) STRICT;

                -- Idempotency keys.
                CREATE TABLE push_claim (
                    owner TEXT NOT NULL,
                    key TEXT NOT NULL,
                    content_hash BLOB NOT NULL,
                    answer BLOB NOT NULL,
                    expires_at INTEGER NOT NULL,
                    PRIMARY KEY (owner, key)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX push_claim_expiry ON push_claim (expires_at);

                -- The entry of the newest push with each collapse key; what it names may be gone.
                CREATE TABLE push_collapse (
                    user INTEGER NOT NULL,
                    name TEXT NOT NULL,
                    seq INTEGER NOT NULL,
                    expires_at INTEGER NOT NULL,
                    PRIMARY KEY (user, name)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX push_collapse_expiry ON push_collapse (expires_at);

                -- hash: the SHA-256 of the key; nothing else is kept of it. scopes: separated by commas.
                CREATE TABLE api_key (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    hash BLOB NOT NULL UNIQUE,
                    name TEXT NOT NULL UNIQUE,
                    scopes TEXT NOT NULL,
                    created_at INTEGER NOT NULL,
                    last_used_at INTEGER
                ) STRICT;
                """
        )
    }
}
