// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Stores the number of a group's members, so that lists of groups need not count them. Triggers keep this number
    /// up to date.
    @Sendable static func countMembers(_ db: Database) throws {
        try db.execute(
            sql: """
                ALTER TABLE chat_group ADD COLUMN members INTEGER NOT NULL DEFAULT 0;
                UPDATE chat_group SET members = (SELECT count(*) FROM group_member WHERE group_id = chat_group.id);

                CREATE TRIGGER member_came AFTER INSERT ON group_member BEGIN
                    UPDATE chat_group SET members = members + 1 WHERE id = new.group_id;
                END;
                CREATE TRIGGER member_went AFTER DELETE ON group_member BEGIN
                    UPDATE chat_group SET members = members - 1 WHERE id = old.group_id;
                END;
                """
        )
    }
}
