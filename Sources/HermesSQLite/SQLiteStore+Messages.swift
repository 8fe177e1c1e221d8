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
        try await read { [epoch] db in
            try InboxReader(db: db, epoch: epoch).page(of: user, after: seq, limit: limit)
        }
    }

    package func position(of user: UserID) async throws(HermesError) -> InboxPosition {
        try await read { [epoch] db in try InboxReader(db: db, epoch: epoch).position(of: user) }
    }

    package func history(
        of conversation: ConversationID,
        before seq: UInt64?,
        limit: Int
    ) async throws(HermesError) -> [Message] {
        try await read { [epoch] db in
            try InboxReader(db: db, epoch: epoch).history(of: conversation, before: seq, limit: limit)
        }
    }

    package func pushJobs() async throws(HermesError) -> [MessageID] {
        try await read { db in
            var jobs: [MessageID] = []
            try PreparedStatement(db, "SELECT id FROM push_job ORDER BY number").forEachRow { row in
                guard let id = MessageID(bytes: row.bytes(0)) else { throw StoreFailure.damagedRow }
                jobs.append(id)
                return true
            }
            return jobs
        }
    }

    package func purge(now: Timestamp, limit: Int) async throws(HermesError) -> Int {
        let purged = try await write { [settings] (db, users) in
            var purger = Purger(db: db, settings: settings, now: now, limit: limit)
            defer { users = Array(purger.users) }
            let count = try purger.run()
            return (count: count, unread: purger.unreadChanges)
        }
        unread.apply(purged.unread)
        return purged.count
    }
}
