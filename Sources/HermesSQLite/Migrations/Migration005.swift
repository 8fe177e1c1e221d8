// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func createPushTokenTables(_ db: Database) throws {
        try db.execute(
            sql: """
                -- service: see PushToken.Service. pushed_up_to: the inbox up to here was pushed, or was there before the token.
                CREATE TABLE push_token (
                    user INTEGER NOT NULL,
                    device_id TEXT NOT NULL,
                    service INTEGER NOT NULL,
                    token TEXT NOT NULL,
                    app_id TEXT NOT NULL,
                    set_at INTEGER NOT NULL,
                    pushed_up_to INTEGER NOT NULL,
                    PRIMARY KEY (user, device_id)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX push_token_text ON push_token (token);

                -- user: 0 if it concerns nobody. body: the JSON that is posted.
                CREATE TABLE webhook (
                    number INTEGER PRIMARY KEY AUTOINCREMENT,
                    id TEXT NOT NULL,
                    user INTEGER NOT NULL,
                    created_at INTEGER NOT NULL,
                    attempts INTEGER NOT NULL,
                    due INTEGER NOT NULL,
                    body BLOB NOT NULL
                ) STRICT;
                CREATE INDEX webhook_due ON webhook (due);
                CREATE INDEX webhook_of_user ON webhook (user, number);

                -- Up to where undelivered messages were reported by webhook.
                CREATE TABLE webhook_mark (
                    user INTEGER PRIMARY KEY,
                    reported_up_to INTEGER NOT NULL
                ) STRICT;
                """
        )
    }
}
