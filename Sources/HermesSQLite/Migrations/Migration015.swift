// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func createAdministrators(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE administrator (
                    name TEXT PRIMARY KEY,
                    role TEXT NOT NULL,
                    password TEXT NOT NULL,
                    -- SecondFactor.secret; NULL: the password is enough.
                    totp BLOB,
                    totp_step INTEGER NOT NULL DEFAULT 0,
                    -- The hashes of the recovery codes in hexadecimal, each with a blank behind it.
                    recovery TEXT NOT NULL DEFAULT '',
                    created_at INTEGER NOT NULL,
                    last_login_at INTEGER
                ) STRICT, WITHOUT ROWID;

                CREATE TABLE audit (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    time INTEGER NOT NULL,
                    who TEXT NOT NULL,
                    address TEXT NOT NULL,
                    action TEXT NOT NULL,
                    target TEXT NOT NULL,
                    result TEXT NOT NULL,
                    is_refused INTEGER NOT NULL
                ) STRICT;
                CREATE INDEX audit_of_kind ON audit (is_refused, id);
                CREATE INDEX audit_by_time ON audit (time);
                """
        )
    }
}
