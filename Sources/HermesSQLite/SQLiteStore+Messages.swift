// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore

extension SQLiteStore: MessageStore {
    package func commit(_ operations: [WriteOperation], now: Timestamp) throws(HermesError) -> [WriteOutcome] {
        do {
            return try commitBatch(operations, now: now)
        } catch {
            throw failure(error)
        }
    }

    package func entries(of user: UserID, after seq: UInt64, limit: Int) async throws(HermesError) -> InboxPage {
        try await read { [epoch, damage] db in
            try InboxReader(db: db, epoch: epoch, damage: damage).page(of: user, after: seq, limit: limit)
        }
    }

    package func position(of user: UserID) async throws(HermesError) -> InboxPosition {
        try await read { [epoch, damage] db in try InboxReader(db: db, epoch: epoch, damage: damage).position(of: user)
        }
    }

    package func history(
        of conversation: ConversationID,
        before seq: UInt64?,
        limit: Int
    ) async throws(HermesError) -> [Message] {
        try await read { [epoch, damage] db in
            try InboxReader(db: db, epoch: epoch, damage: damage).history(of: conversation, before: seq, limit: limit)
        }
    }

    package func pushJobs() async throws(HermesError) -> [MessageID] {
        try await read { [damage] db in
            var jobs: [MessageID] = []
            try PreparedStatement(db, "SELECT id FROM push_job ORDER BY number").forEachRow { row in
                if let id = MessageID(bytes: row.bytes(0)) { jobs.append(id) } else { damage.found("a push job") }
                return true
            }
            return jobs
        }
    }

    package func deletions() async throws(HermesError) -> [UserID] {
        try await read { db in
            var users: [UserID] = []
            let sql = "SELECT id FROM account WHERE is_disabled = \(AccountRow.leaving) ORDER BY id"
            try PreparedStatement(db, sql).forEachRow { row in
                users.append(try row.user(0))
                return true
            }
            return users
        }
    }

    package func purge(now: Timestamp, limit: Int) async throws(HermesError) -> Int {
        let purged = try await write { [settings, damage] (db, users) in
            var purger = Purger(db: db, settings: settings, now: now, limit: limit, damage: damage)
            defer { users = Array(purger.users) }
            let count = try purger.run()
            return (count: count, unread: purger.unreadChanges, inboxes: purger.inboxChanges)
        }
        inboxes.apply(purged.inboxes)
        unread.apply(purged.unread)
        return purged.count
    }
}
