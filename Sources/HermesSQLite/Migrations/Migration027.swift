// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB

extension StoreSchema {
    /// Adds the list of the conversations of dissolved groups, which the purge deletes. Deletes the read marks of
    /// users who have left their groups. Writes the identities of push tokens again, because the identity of a Web
    /// Push endpoint no longer depends on its percent-encoding.
    @Sendable static func listGoneConversations(_ db: Database) throws {
        try db.execute(
            sql: """
                -- last_key: the largest key of a message at the dissolution. The conversation's messages have this key or
                -- smaller ones.
                CREATE TABLE conversation_gone (
                    last_key INTEGER NOT NULL,
                    conversation INTEGER NOT NULL,
                    PRIMARY KEY (last_key, conversation)
                ) STRICT, WITHOUT ROWID;

                INSERT INTO conversation_gone (last_key, conversation)
                    SELECT coalesce((SELECT max(key) FROM message), 0), id FROM conversation
                    WHERE kind = 2 AND NOT EXISTS (SELECT 1 FROM chat_group WHERE chat_group.id = conversation.a);
                DELETE FROM read_mark WHERE EXISTS (
                    SELECT 1 FROM conversation c WHERE c.id = read_mark.conversation AND c.kind = 2
                        AND NOT EXISTS (
                            SELECT 1 FROM group_member m WHERE m.group_id = c.a AND m.user = read_mark.user));
                """
        )
        try updateIdentities(db)
    }
}
