// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Creates the first tables. Times are milliseconds since 1970 (UTC); ids of users are 1 … 2³¹−1.
    @Sendable static func createFirstTables(_ db: Database) throws {
        try db.execute(
            sql: """
                -- One row. is_copy: this file is a backup; who opens it as a store starts a new epoch.
                CREATE TABLE store (
                    id INTEGER PRIMARY KEY CHECK (id = 1),
                    epoch INTEGER NOT NULL CHECK (epoch > 0),
                    is_copy INTEGER NOT NULL DEFAULT 0
                ) STRICT;
                INSERT INTO store (id, epoch) VALUES (1, \(Int64.random(in: 1...Int64.max)));

                CREATE TABLE account (
                    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id BETWEEN 1 AND 2147483647),
                    nick_name TEXT NOT NULL,
                    nick_key TEXT NOT NULL UNIQUE,
                    password TEXT NOT NULL,
                    avatar_url TEXT NOT NULL DEFAULT '',
                    is_disabled INTEGER NOT NULL DEFAULT 0,
                    created_at INTEGER NOT NULL
                ) STRICT;

                CREATE TABLE device (
                    id INTEGER PRIMARY KEY,
                    user INTEGER NOT NULL,
                    device_id TEXT NOT NULL,
                    name TEXT NOT NULL,
                    platform TEXT NOT NULL,
                    app_version TEXT NOT NULL,
                    created_at INTEGER NOT NULL,
                    last_seen_at INTEGER NOT NULL,
                    cursor INTEGER NOT NULL,
                    UNIQUE (user, device_id)
                ) STRICT;

                CREATE TABLE token (
                    hash BLOB PRIMARY KEY,
                    user INTEGER NOT NULL,
                    device_id TEXT NOT NULL,
                    created_at INTEGER NOT NULL
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX token_of_device ON token (user, device_id);

                -- kind 1: 1:1, a is the lower user and b the higher; kind 2: group a.
                CREATE TABLE conversation (
                    id INTEGER PRIMARY KEY,
                    kind INTEGER NOT NULL,
                    a INTEGER NOT NULL,
                    b INTEGER NOT NULL,
                    last_seq INTEGER NOT NULL,
                    UNIQUE (kind, a, b)
                ) STRICT;

                -- key: id_high + shift, so that the rows lie in the order of time and need no index by id; shift is not 0
                -- only if two ids share their upper half (MessageKey).
                -- content: NULL once it is gone; its hash is taken when it goes or is recalled, to recognise repetitions.
                -- deliveries: which seq in whose inbox, see DeliveryList. refs: how many inboxes still hold it.
                -- content_until: history keeps the content until then. due: set once refs is 0, when purge looks again.
                CREATE TABLE message (
                    key INTEGER PRIMARY KEY,
                    shift INTEGER NOT NULL,
                    id_low INTEGER NOT NULL,
                    conversation INTEGER NOT NULL,
                    conversation_seq INTEGER NOT NULL,
                    sender INTEGER NOT NULL,
                    sender_device TEXT,
                    client_id TEXT,
                    sent_at INTEGER NOT NULL,
                    expires_at INTEGER NOT NULL,
                    committed_at INTEGER NOT NULL,
                    content_until INTEGER NOT NULL,
                    refs INTEGER NOT NULL,
                    due INTEGER,
                    is_recalled INTEGER NOT NULL DEFAULT 0,
                    content_hash INTEGER,
                    deliveries BLOB NOT NULL,
                    content BLOB
                ) STRICT;
                CREATE INDEX message_history ON message (conversation, conversation_seq)
                    WHERE content_until > 0 AND content IS NOT NULL;
                CREATE INDEX message_expiry ON message (expires_at) WHERE due IS NULL;
                CREATE INDEX message_due ON message (due) WHERE due IS NOT NULL;

                -- Two tables are one inbox, and two are one index of client ids: commits write to the small "fresh" ones, whose
                -- few pages are written again and again; every so often all of it moves to the large ones in their order
                -- (BatchWriter.settle). Written there at once, each entry would cost a page of its own. What is fetched
                -- and purged soon never gets there. All of a user's fresh entries are newer than the others.
                CREATE TABLE client_id (
                    sender INTEGER NOT NULL,
                    client_id TEXT NOT NULL,
                    message INTEGER NOT NULL,
                    PRIMARY KEY (sender, client_id)
                ) STRICT, WITHOUT ROWID;
                CREATE TABLE client_id_fresh (
                    sender INTEGER NOT NULL,
                    client_id TEXT NOT NULL,
                    message INTEGER NOT NULL,
                    PRIMARY KEY (sender, client_id)
                ) STRICT, WITHOUT ROWID;

                -- kind 0: message is its key. Other kinds: an event with all its data in payload, see DurableKind.
                CREATE TABLE inbox (
                    user INTEGER NOT NULL,
                    seq INTEGER NOT NULL,
                    kind INTEGER NOT NULL,
                    message INTEGER,
                    committed_at INTEGER,
                    expires_at INTEGER,
                    payload BLOB,
                    PRIMARY KEY (user, seq)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX inbox_expiry ON inbox (expires_at) WHERE expires_at IS NOT NULL;
                CREATE TABLE inbox_fresh (
                    user INTEGER NOT NULL,
                    seq INTEGER NOT NULL,
                    kind INTEGER NOT NULL,
                    message INTEGER,
                    committed_at INTEGER,
                    expires_at INTEGER,
                    payload BLOB,
                    PRIMARY KEY (user, seq)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX inbox_fresh_expiry ON inbox_fresh (expires_at) WHERE expires_at IS NOT NULL;

                -- One row an account. acknowledged: all its devices have taken the entries up to here; 0 without devices.
                CREATE TABLE inbox_head (
                    user INTEGER PRIMARY KEY,
                    head INTEGER NOT NULL,
                    oldest INTEGER NOT NULL,
                    acknowledged INTEGER NOT NULL
                ) STRICT;
                CREATE INDEX inbox_purgeable ON inbox_head (user) WHERE acknowledged >= oldest;
                """
        )
    }
}
