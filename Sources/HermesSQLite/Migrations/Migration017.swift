// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    @Sendable static func addConversationLists(_ db: Database) throws {
        try db.execute(
            sql: """
                -- last_at: when the last message was sent; NULL: not known. quiet_a, quiet_b: the bits of RecentSeqs up to
                -- last_seq, of messages that are not unread for a and for b: their own, and recalled ones. Of a group,
                -- quiet_a has the recalled ones alone.
                ALTER TABLE conversation ADD COLUMN last_at INTEGER;
                ALTER TABLE conversation ADD COLUMN quiet_a INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE conversation ADD COLUMN quiet_b INTEGER NOT NULL DEFAULT 0;
                CREATE INDEX conversation_of_higher ON conversation (b, a) WHERE kind = 1;

                -- RecentSeqs of the member's own messages.
                ALTER TABLE group_member ADD COLUMN own_seq INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE group_member ADD COLUMN own INTEGER NOT NULL DEFAULT 0;
                """
        )
    }
}
