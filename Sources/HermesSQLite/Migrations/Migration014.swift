// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addHistoryOfMembers(_ db: Database) throws {
        // The column joined_after (GroupMember.joinedAfter) is the group's last message before the member joined.
        // Present members may still read the whole history.
        try db.execute(sql: "ALTER TABLE group_member ADD COLUMN joined_after INTEGER NOT NULL DEFAULT 0")
        try db.execute(sql: "ALTER TABLE chat_group ADD COLUMN is_history_open INTEGER NOT NULL DEFAULT 0")
    }
}
