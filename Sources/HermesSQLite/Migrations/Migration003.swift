// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func createSessionTables(_ db: Database) throws {
        try db.execute(
            sql: """
                -- expiry: milliseconds without a connection, NULL: for ever. expires_at: NULL while online, or never.
                CREATE TABLE session (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    owner TEXT NOT NULL,
                    client_id TEXT NOT NULL,
                    expiry INTEGER,
                    is_online INTEGER NOT NULL,
                    expires_at INTEGER,
                    sent_up_to INTEGER NOT NULL,
                    UNIQUE (owner, client_id)
                ) STRICT;

                -- What changes with each publication, apart from the rest so that few pages do. queued and bytes: what is in
                -- the queue or released.
                CREATE TABLE session_head (
                    session INTEGER PRIMARY KEY,
                    head INTEGER NOT NULL,
                    queued INTEGER NOT NULL,
                    bytes INTEGER NOT NULL
                ) STRICT;

                -- options, identifiers: see PublicationCoding.
                CREATE TABLE session_subscription (
                    session INTEGER NOT NULL,
                    filter TEXT NOT NULL,
                    options INTEGER NOT NULL,
                    identifiers BLOB,
                    PRIMARY KEY (session, filter)
                ) STRICT, WITHOUT ROWID;

                -- Packet ids that a session published with QoS 2 and has not released.
                CREATE TABLE session_received (
                    session INTEGER NOT NULL,
                    packet_id INTEGER NOT NULL,
                    PRIMARY KEY (session, packet_id)
                ) STRICT, WITHOUT ROWID;

                -- Seqs that a session has received (QoS 2) and not completed; no longer in its queue.
                CREATE TABLE session_released (
                    session INTEGER NOT NULL,
                    seq INTEGER NOT NULL,
                    PRIMARY KEY (session, seq)
                ) STRICT, WITHOUT ROWID;

                -- Sessions that were removed and may have rows in the queue still; purge deletes them.
                CREATE TABLE session_gone (session INTEGER PRIMARY KEY) STRICT;

                -- What several queues share, once; and how many rows of queues refer to it.
                CREATE TABLE publication (
                    key INTEGER PRIMARY KEY,
                    published_at INTEGER NOT NULL,
                    topic TEXT NOT NULL,
                    payload BLOB NOT NULL,
                    details BLOB
                ) STRICT;
                CREATE TABLE publication_refs (
                    key INTEGER PRIMARY KEY,
                    refs INTEGER NOT NULL
                ) STRICT;

                -- Two tables are one queue, as with the inbox: commits write to the small fresh one, what stays is moved
                -- (SessionWriter.settle). publication is NULL where the content is in the row itself.
                CREATE TABLE session_queue (
                    session INTEGER NOT NULL,
                    seq INTEGER NOT NULL,
                    flags INTEGER NOT NULL,
                    weight INTEGER NOT NULL,
                    expires_at INTEGER,
                    identifiers BLOB,
                    publication INTEGER,
                    published_at INTEGER,
                    topic TEXT,
                    payload BLOB,
                    details BLOB,
                    PRIMARY KEY (session, seq)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX session_queue_expiry ON session_queue (expires_at) WHERE expires_at IS NOT NULL;
                CREATE TABLE session_queue_fresh (
                    session INTEGER NOT NULL,
                    seq INTEGER NOT NULL,
                    flags INTEGER NOT NULL,
                    weight INTEGER NOT NULL,
                    expires_at INTEGER,
                    identifiers BLOB,
                    publication INTEGER,
                    published_at INTEGER,
                    topic TEXT,
                    payload BLOB,
                    details BLOB,
                    PRIMARY KEY (session, seq)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX session_queue_fresh_expiry ON session_queue_fresh (expires_at) WHERE expires_at IS NOT NULL;

                CREATE TABLE retained (
                    topic TEXT PRIMARY KEY,
                    flags INTEGER NOT NULL,
                    published_at INTEGER NOT NULL,
                    expires_at INTEGER,
                    payload BLOB NOT NULL,
                    details BLOB
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX retained_expiry ON retained (expires_at) WHERE expires_at IS NOT NULL;
                """
        )
    }
}
