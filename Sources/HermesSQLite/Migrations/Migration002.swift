// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func createSocialTables(_ db: Database) throws {
        try db.execute(
            sql: """
                -- What owner wants of peer. Both rows of a pair are there or none is; how the two stand to each other
                -- follows from both, see ContactPair.
                CREATE TABLE contact (
                    owner INTEGER NOT NULL,
                    peer INTEGER NOT NULL,
                    wants INTEGER NOT NULL,
                    blocks INTEGER NOT NULL,
                    PRIMARY KEY (owner, peer)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX contact_blocked ON contact (owner, peer) WHERE blocks = 1;

                CREATE TABLE chat_group (
                    id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id BETWEEN 1 AND 2147483647),
                    name TEXT NOT NULL,
                    avatar_url TEXT NOT NULL,
                    is_muted INTEGER NOT NULL,
                    created_at INTEGER NOT NULL
                ) STRICT;

                -- role: see GroupRole.
                CREATE TABLE group_member (
                    group_id INTEGER NOT NULL,
                    user INTEGER NOT NULL,
                    role INTEGER NOT NULL,
                    muted_until INTEGER NOT NULL,
                    PRIMARY KEY (group_id, user)
                ) STRICT, WITHOUT ROWID;
                CREATE INDEX group_of_user ON group_member (user, group_id);
                """
        )
    }
}
