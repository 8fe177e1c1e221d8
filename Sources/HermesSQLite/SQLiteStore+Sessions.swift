// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore
import Synchronization

extension SQLiteStore: SessionStore {
    package func commit(_ operations: [SessionOperation], now: Timestamp) throws(HermesError) -> [SessionOutcome] {
        try commit(operations) { _ in nil }
    }

    package func commit(
        taking next: (_ isLong: Bool) -> SessionOperation?,
        now: Timestamp
    ) throws(HermesError) -> [SessionOutcome] {
        try commit([], taking: next)
    }

    private func commit(
        _ operations: [SessionOperation],
        taking next: (_ isLong: Bool) -> SessionOperation?
    ) throws(HermesError) -> [SessionOutcome] {
        var operations = operations
        do {
            do {
                return try commitSessions(&operations, taking: next, isolating: false)
            } catch let error as DatabaseError where StoreFailure.isDamage(error) {
                return try commitSessions(&operations, taking: { _ in nil }, isolating: true)
            }
        } catch {
            throw failure(error)
        }
    }

    package func sessions() async throws(HermesError) -> [StoredSession] {
        try await read { [damage] db in try SessionReader(db: db, damage: damage).sessions() }
    }

    package func sessions(
        after id: DurableSessionID?,
        containing text: String,
        limit: Int,
        searched: Int
    ) async throws(HermesError) -> [StoredSession] {
        try await read { [damage] db in
            let reader = SessionReader(db: db, damage: damage)
            return try reader.sessions(after: id, containing: text, limit: limit, searched: searched)
        }
    }

    package func queued(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage {
        try await read { [damage] db in
            try SessionReader(db: db, damage: damage).queued(of: session, after: seq, limit: limit, maxBytes: maxBytes)
        }
    }

    package func shared(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage {
        try await read { [damage] db in
            try SessionReader(db: db, damage: damage)
                .queued(of: session, after: seq, limit: limit, maxBytes: maxBytes, isSharedOnly: true)
        }
    }

    package func retained(of topics: [TopicName]) async throws(HermesError) -> [StoredPublication] {
        try await read { [damage] db in try SessionReader(db: db, damage: damage).retained(of: topics) }
    }

    package func retained(
        after topic: TopicName?,
        limit: Int
    ) async throws(HermesError) -> (publications: [StoredPublication], next: TopicName?) {
        try await read { [damage] db in
            try SessionReader(db: db, damage: damage).retained(after: topic, limit: limit)
        }
    }

    package func purgeSessions(
        now: Timestamp,
        limit: Int,
        sentUpTo: @escaping @Sendable (DurableSessionID) -> UInt64
    ) async throws(HermesError) -> SessionPurge {
        do {
            let (purge, changes) = try await pool.write { [self] db in
                var purge = SessionPurge()
                var changes: [OwnerTally] = []
                purge.rows = try Self.inSteps(limit, sessionPurgeStep, TimeSlice(clock, slice)) { rows in
                    var purger = SessionPurger(db: db, now: now, limit: rows, sentUpTo: sentUpTo)
                    // The cache forgets the sessions before the transaction ends, while nothing else runs on the
                    // writer.
                    defer { sessionCache.withLock { cache in for id in purger.expired.keys { cache.forget(id) } } }
                    let count = try purger.run()
                    changes.append(purger.queueChanges)
                    purge.expired.merge(purger.expired, uniquingKeysWith: +)
                    return count
                }
                return (purge, changes)
            }
            for changes in changes { queues.apply(changes) }
            return purge
        } catch {
            throw failure(error)
        }
    }

    /// Runs a batch on the writer. During the batch, the cache is taken out. It is put back only if the transaction
    /// commits.
    ///
    /// - Parameters:
    ///   - operations: all of them are applied; the operations that `next` gives are appended.
    ///   - next: gives further operations (``MessageStore/commit(taking:now:)``).
    ///   - isolating: whether each operation can be rolled back separately, which is slow.
    private func commitSessions(
        _ operations: inout [SessionOperation],
        taking next: (_ isLong: Bool) -> SessionOperation?,
        isolating: Bool
    ) throws -> [SessionOutcome] {
        waitingWrites.add(1, ordering: .relaxed)
        return try pool.writeWithoutTransaction { db in
            waitingWrites.subtract(1, ordering: .relaxed)
            var taken = sessionCache.withLock { cache in
                let taken = cache
                // This cache stays if the commit fails. It has nothing that depends on which rows are fresh.
                cache = SessionCache(
                    freshRows: taken.freshRows,
                    freshBytes: taken.freshBytes,
                    sweep: taken.sweep,
                    sweptBytes: taken.sweptBytes
                )
                // Isolated operations copy the cache each time, so they begin with an almost empty cache.
                return isolating ? cache : taken
            }
            var outcomes: [SessionOutcome] = []
            var changes = OwnerTally()
            var refused = 0
            try db.inTransaction(.immediate) {
                var writer = try SessionWriter(
                    db,
                    cache: taken,
                    queues: queues,
                    settings: settings,
                    time: TimeSlice(clock, slice),
                    sweepRows: sweepRows
                )
                taken = SessionCache()
                outcomes = try apply(&operations, taking: next, isolating: isolating, with: &writer, in: db)
                changes = writer.queueChanges
                refused = writer.refused
                taken = try writer.finish()
                return .commit
            }
            queues.apply(changes, refused: refused)
            sessionCache.withLock { $0 = taken }
            return outcomes
        }
    }
}
