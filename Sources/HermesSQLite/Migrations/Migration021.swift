// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// While a publication of QoS 2 is stored in parts, records the targets that already have the publication. Also
    /// records the number of groups that each account is in, so that the groups need not be counted.
    @Sendable static func rememberParts(_ db: Database) throws {
        try db.execute(
            sql: """
                -- The publisher's session and identifier. content: which publication it is. targets: sessions and shared
                -- subscriptions, see PublicationCoding.
                CREATE TABLE session_received_part (
                    session INTEGER NOT NULL,
                    packet_id INTEGER NOT NULL,
                    part INTEGER NOT NULL,
                    content INTEGER NOT NULL,
                    targets BLOB NOT NULL,
                    PRIMARY KEY (session, packet_id, part)
                ) STRICT, WITHOUT ROWID;

                CREATE TABLE groups_of_user (
                    user INTEGER PRIMARY KEY,
                    groups INTEGER NOT NULL
                ) STRICT;
                INSERT INTO groups_of_user SELECT user, count(*) FROM group_member GROUP BY user;

                CREATE TRIGGER group_entered AFTER INSERT ON group_member BEGIN
                    INSERT INTO groups_of_user (user, groups) VALUES (new.user, 1)
                        ON CONFLICT DO UPDATE SET groups = groups + 1;
                END;
                CREATE TRIGGER group_left AFTER DELETE ON group_member BEGIN
                    UPDATE groups_of_user SET groups = groups - 1 WHERE user = old.user;
                    DELETE FROM groups_of_user WHERE user = old.user AND groups <= 0;
                END;
                """
        )
    }
}
