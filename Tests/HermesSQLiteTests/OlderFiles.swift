// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB

/// Turns a file of this version into a file of an older version.
extension Database {
    func takeBackCountsOfInboxes() throws {
        try execute(sql: "DROP INDEX account_leaving")
        for column in ["entries", "bytes"] { try execute(sql: "ALTER TABLE inbox_head DROP COLUMN \(column)") }
    }

    func takeBackGoneConversations() throws {
        try takeBackCountsOfInboxes()
        try execute(sql: "DROP TABLE conversation_gone")
    }

    func takeBackIdentitiesOfPushTokens() throws {
        try takeBackGoneConversations()
        try execute(sql: "DROP INDEX push_token_identity; ALTER TABLE push_token DROP COLUMN identity")
        try execute(sql: "CREATE INDEX push_token_text ON push_token (token)")
    }

    func takeBackDurabilityOfRuns() throws {
        try takeBackIdentitiesOfPushTokens()
        try execute(sql: "ALTER TABLE store DROP COLUMN waits")
    }

    func takeBackNumbersOfRuns() throws {
        try takeBackDurabilityOfRuns()
        try execute(sql: "ALTER TABLE store DROP COLUMN run")
    }

    func takeBackCodesOfAuditLog() throws {
        try takeBackNumbersOfRuns()
        try execute(sql: "ALTER TABLE audit DROP COLUMN code")
    }

    func takeBackPartsOfPublications() throws {
        try takeBackCodesOfAuditLog()
        try execute(sql: "DROP TRIGGER group_entered; DROP TRIGGER group_left")
        try execute(sql: "DROP TABLE groups_of_user; DROP TABLE session_received_part; DROP TABLE kept_name")
    }

    func takeBackListsOfContacts() throws {
        try takeBackPartsOfPublications()
        try execute(sql: "DROP TABLE IF EXISTS clock_jump")
        try execute(sql: "DROP INDEX contact_listed; ALTER TABLE contact DROP COLUMN is_listed")
    }

    func takeBackNumbersOfMembers() throws {
        try takeBackListsOfContacts()
        try execute(sql: "DROP TRIGGER member_came; DROP TRIGGER member_went")
        try execute(sql: "ALTER TABLE chat_group DROP COLUMN members")
    }

    func takeBackConversationLists() throws {
        try takeBackNumbersOfMembers()
        try execute(sql: "DROP INDEX conversation_of_higher")
        for column in ["last_at", "quiet_a", "quiet_b"] {
            try execute(sql: "ALTER TABLE conversation DROP COLUMN \(column)")
        }
        for column in ["own_seq", "own"] { try execute(sql: "ALTER TABLE group_member DROP COLUMN \(column)") }
    }
}
