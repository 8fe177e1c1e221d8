// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore
import Synchronization

extension SQLiteStore: MessageStore {
    package func entries(of user: UserID, after seq: UInt64, limit: Int) async throws(HermesError) -> InboxPage {
        let jumps = clockJumps.withLock { $0 }
        return try await readInbox { [epoch, damage] db in
            try InboxReader(db: db, epoch: epoch, damage: damage, jumps: jumps).page(of: user, after: seq, limit: limit)
        }
    }

    package func position(of user: UserID) async throws(HermesError) -> InboxPosition {
        try await readInbox(isShared: true) { [epoch, damage] db in
            try InboxReader(db: db, epoch: epoch, damage: damage).position(of: user)
        }
    }

    package func history(_ query: HistoryQuery) async throws(HermesError) -> StoredHistory {
        let jumps = clockJumps.withLock { $0 }
        return try await read { [epoch, damage] db in
            try InboxReader(db: db, epoch: epoch, damage: damage, jumps: jumps).history(query)
        }
    }

    package func conversations(
        of user: UserID,
        after place: ConversationPlace?,
        limit: Int
    ) async throws(HermesError) -> [ConversationSummary] {
        try await read { [damage] db in
            try ConversationReader(db: db, damage: damage).conversations(of: user, after: place, limit: limit)
        }
    }

    package func pushJobs() async throws(HermesError) -> [MessageID] {
        try await read { [damage] db in
            var jobs: [MessageID] = []
            try PreparedStatement(db, "SELECT id FROM push_job ORDER BY number").forEachRow { row in
                if let id = MessageID(bytes: row.bytes(0)) { jobs.append(id) } else { damage.found("a push job") }
            }
            return jobs
        }
    }

    /// Selects the accounts that are being deleted.
    static let deletionsSQL = "SELECT id FROM account WHERE is_disabled = \(AccountRow.leaving) ORDER BY id"

    package func deletions() async throws(HermesError) -> [UserID] {
        try await read { [damage] db in
            let query = try PreparedStatement(db, Self.deletionsSQL)
            return try damage.list(query, name: { "account \($0.integer(0))" }, read: { try $0.user(0) })
        }
    }

    package func purge(now: Timestamp, limit: Int) async throws(HermesError) -> Int {
        let purged = try await write { [self] (db, users) in
            var effects: [CommitEffects] = []
            var removals: [UserID: InboxRemoval] = [:]
            let count = try Self.inSteps(limit, purgeStep, TimeSlice(clock, slice)) { rows in
                var purger = Purger(
                    db: db,
                    settings: settings,
                    now: now,
                    limit: rows,
                    damage: damage,
                    jumps: clockJumps.withLock { $0 }
                )
                defer { users += purger.users }
                let count = try purger.run()
                effects.append(purger.effects)
                removals.merge(purger.removals) { $0 + $1 }
                return count
            }
            keepInboxes(removals, after: db)
            return (count: count, effects: effects)
        }
        for effects in purged.effects { apply(effects) }
        return purged.count
    }

    /// After a purge has committed, caches the changed inboxes again. Otherwise the shares of such an inbox would be
    /// counted again for its next message. Counting takes a millisecond for a few thousand entries.
    private func keepInboxes(_ removals: [UserID: InboxRemoval], after db: Database) {
        var kept: [(user: UserID, inbox: WriterCache.Inbox)] = []
        for (user, removal) in removals {
            // The inboxes leave the cache now. If the transaction fails, they are read again.
            guard let oldest = removal.oldest, var inbox = cache.withLock({ $0.take(user) }) else { continue }
            inbox.remove(removal, oldest: oldest)
            kept.append((user, inbox))
        }
        guard !kept.isEmpty else { return }
        // This runs on the writer's queue, after ``write(_:)`` has made the cache forget these inboxes.
        db.afterNextTransaction { [self, kept] _ in
            cache.withLock { cache in for (user, inbox) in kept { cache.keep(inbox, of: user) } }
        }
    }

    /// Repeats steps in one transaction until there is nothing left, the limit is reached, or the time is spent.
    ///
    /// - Parameters:
    ///   - size: the number of rows in a step.
    ///   - step: gets the largest number of rows to handle, and returns the number of rows that it handled.
    /// - Returns: the number of rows that all steps handled.
    static func inSteps(
        _ limit: Int,
        _ size: borrowing Mutex<StepSize>,
        _ time: TimeSlice,
        _ step: (Int) throws -> Int
    ) throws -> Int {
        var sum = 0
        var last = time.elapsed
        repeat {
            let count = try step(min(size.withLock { $0.rows }, limit - sum))
            guard count > 0 else { break }
            sum += count
            let now = time.elapsed
            size.withLock { $0.learn(now - last) }
            last = now
        } while sum < limit && !time.isSpent
        return sum
    }
}
