// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore
internal import Logging
import Synchronization

/// All stores in one SQLite database in write-ahead mode. One writer commits operations in groups, and readers run
/// beside it.
///
/// A killed process loses no commit. With ``Durability/full``, a power cut loses no commit either. State: SQLite's own,
/// some counts in memory, and the writer's caches (``WriterCache``, ``SessionCache``), which only the writer's queue
/// touches.
package final class SQLiteStore: Sendable {
    /// The faults that a commit survives.
    package enum Durability: String, Sendable, CaseIterable {
        /// Commits survive the end of the process. A power cut may lose the last commits, but never reorders them.
        case normal
        /// Commits also survive a power cut: each commit waits for the disk.
        case full
    }

    let path: String
    let pool: DatabasePool
    let checkpointer: Checkpointer
    /// The clock that ``TimeSlice`` uses.
    let clock: any TimeSource
    let slice: Duration
    /// The number of changes that wait for the writer. If there are any, a transaction that has worked for long ends.
    let waitingWrites = Atomic(0)
    var isAwaited: Bool { waitingWrites.load(ordering: .relaxed) > 0 }
    /// The number of fresh rows that starts a sweep.
    let sweepRows: Int
    /// The sizes of the steps of the two purges.
    let purgeStep = Mutex(StepSize())
    let sessionPurgeStep = Mutex(StepSize())
    let epoch: UInt64
    let settings: StoreSettings
    let logger: Logger
    private let isOpen = Atomic(true)
    let cache = Mutex(WriterCache())
    let unread: UnreadLedger
    package let queues: QueueBudget
    package let inboxes: InboxLedger
    let sessionCache = Mutex(SessionCache())
    let maintenance = Mutex(Maintenance())
    let damage: Damage
    /// The jumps of the clock that the database contains.
    let clockJumps: Mutex<ClockJumps>
    /// The number of waiting webhooks; nil: it must be counted.
    let waitingWebhooks = Mutex<Int?>(nil)
    /// Held until the store is closed or released.
    private let lock: DirectoryLock
    private let record: RunRecord

    init(
        path: String,
        pool: DatabasePool,
        checkpointer: Checkpointer,
        clock: any TimeSource,
        slice: Duration,
        sweepRows: Int,
        epoch: UInt64,
        unread: UnreadLedger,
        queues: QueueBudget,
        settings: StoreSettings,
        lock: DirectoryLock,
        record: RunRecord,
        logger: Logger,
        damage: Damage,
        clockJumps: ClockJumps
    ) {
        self.damage = damage
        self.clockJumps = Mutex(clockJumps)
        self.path = path
        self.record = record
        self.unread = unread
        self.queues = queues
        inboxes = InboxLedger(lying: unread.lying)
        self.pool = pool
        self.checkpointer = checkpointer
        self.clock = clock
        self.slice = slice
        self.sweepRows = sweepRows
        self.epoch = epoch
        self.settings = settings
        self.lock = lock
        self.logger = logger
    }

    /// Writes the log back into the database file and closes it.
    ///
    /// Calls in flight end first; later calls fail with `.storageUnavailable`. Afterwards the directory is free for
    /// other processes. Repeated calls do nothing.
    package func close() throws(HermesError) {
        // SQLite's checkpoint fails on a closed connection.
        guard isOpen.exchange(false, ordering: .acquiringAndReleasing) else { return }
        do {
            // The checkpoint fails harmlessly while a reader works: the log stays, and the next start uses it.
            checkpointer.close()
            try? pool.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
            try pool.close()
            record.markClosed()
            lock.release()
        } catch {
            throw StoreFailure.hermesError(error)
        }
    }

    /// Commits an unchanged page, after the waiting writes.
    ///
    /// - Parameter done: called on the writer's queue with the error's text for people; nil: success.
    package func tryWrite(_ done: @escaping @Sendable (String?) -> Void) {
        pool.asyncWriteWithoutTransaction { db in
            do {
                try db.execute(sql: "PRAGMA user_version = \(StoreSchema.version)")
                done(nil)
            } catch {
                done(StoreFailure.hermesError(error).message)
            }
        }
    }

    /// Limits the file to a number of pages of 4 KiB, as a full disk would; for tests.
    package func limitSize(pages: Int) throws {
        try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = \(pages)") }
    }

    /// Runs a batch on the writer. The cache is taken out meanwhile, and is put back only if the transaction commits.
    ///
    /// An operation that meets a damaged row is refused, and the others are applied.
    ///
    /// - Parameters:
    ///   - operations: the operations that are applied in any case.
    ///   - next: gives further operations (``MessageStore/commit(taking:now:)``).
    func commitBatch(
        _ operations: [WriteOperation],
        taking next: (_ isLong: Bool) -> WriteOperation? = { _ in nil },
        now: Timestamp
    ) throws -> [WriteOutcome] {
        waitingWrites.add(1, ordering: .relaxed)
        return try pool.writeWithoutTransaction { db in
            waitingWrites.subtract(1, ordering: .relaxed)
            return try commitBatch(operations, taking: next, now: now, in: db)
        }
    }

    /// Runs a batch of one operation, for callers that cannot block.
    func commitAlone(_ operation: WriteOperation, now: Timestamp) async throws(HermesError) -> WriteOutcome? {
        try await awaitingWriter { [self] in
            try await pool.writeWithoutTransaction { [self] db in
                waitingWrites.subtract(1, ordering: .relaxed)
                return try commitBatch([operation], taking: { _ in nil }, now: now, in: db).first
            }
        }
    }

    /// Waits for the writer, in a task of its own. GRDB runs nothing for a cancelled task; then the write would count as
    /// waiting for ever, and while the server stops, what a push service or a webhook's receiver has accepted would be
    /// sent again after the start.
    ///
    /// - Parameter write: a write that subtracts 1 from ``waitingWrites`` once it has the writer.
    private func awaitingWriter<Value: Sendable>(
        _ write: @escaping @Sendable () async throws -> Value
    ) async throws(HermesError) -> Value {
        waitingWrites.add(1, ordering: .relaxed)
        do {
            // Unstructured, so that it is not cancelled with its caller.
            return try await Task { try await write() }.value
        } catch {
            throw failure(error)
        }
    }

    private func commitBatch(
        _ operations: [WriteOperation],
        taking next: (_ isLong: Bool) -> WriteOperation?,
        now: Timestamp,
        in db: Database
    ) throws -> [WriteOutcome] {
        var operations = operations
        do {
            return try commitBatch(&operations, taking: next, now: now, in: db, isolating: false)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            return try commitBatch(&operations, taking: { _ in nil }, now: now, in: db, isolating: true)
        }
    }

    /// - Parameters:
    ///   - operations: all of them are applied; the operations that `next` gives are appended.
    ///   - isolating: whether each operation can be rolled back separately, which is slow.
    private func commitBatch(
        _ operations: inout [WriteOperation],
        taking next: (_ isLong: Bool) -> WriteOperation?,
        now: Timestamp,
        in db: Database,
        isolating: Bool
    ) throws -> [WriteOutcome] {
        var taken = cache.withLock { cache in
            let taken = cache
            cache = WriterCache(freshEntries: taken.freshEntries, sweep: taken.sweep)
            // Isolated operations copy the cache each time, so they begin with an almost empty one.
            return isolating ? cache : taken
        }
        var outcomes: [WriteOutcome] = []
        var removedSessions: [DurableSessionID] = []
        var removedQueues = OwnerTally()
        var inboxChanges = InboxLedger.Changes()
        var unreadChanges: [UserID: Int] = [:]
        outcomes.reserveCapacity(operations.count)
        try db.inTransaction(.immediate) {
            var writer = try BatchWriter(
                db,
                cache: taken,
                unread: unread,
                settings: settings,
                now: now,
                time: TimeSlice(clock, slice),
                sweepRows: sweepRows
            )
            taken = WriterCache()
            for operation in operations {
                guard isolating else {
                    outcomes.append(try writer.apply(operation))
                    continue
                }
                let outcome = try isolated(db, &writer) { try $0.apply(operation) }
                outcomes.append(outcome ?? .refused(Damage.refusal))
            }
            try writer.apply(taking: next, slice: slice, unless: isAwaited, &operations, &outcomes)
            removedSessions = writer.removedSessions
            removedQueues = writer.removedQueues
            inboxChanges = writer.inboxChanges
            unreadChanges = writer.unreadChanges
            taken = try writer.finish()
            return .commit
        }
        cache.withLock { $0 = taken }
        unread.apply(unreadChanges)
        queues.apply(removedQueues)
        inboxes.apply(inboxChanges)
        if !removedSessions.isEmpty {
            sessionCache.withLock { cache in for id in removedSessions { cache.forget(id) } }
        }
        return outcomes
    }

    /// Applies one operation, and rolls it back if it meets a damaged row.
    ///
    /// - Returns: nil if the operation met a damaged row.
    func isolated<Writer, Outcome>(
        _ db: Database,
        _ writer: inout Writer,
        _ apply: (inout Writer) throws -> Outcome
    ) throws -> Outcome? {
        let before = writer
        var outcome: Outcome?
        try db.inSavepoint {
            do {
                outcome = try apply(&writer)
                return .commit
            } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
                damage.found("a row needed by a commit: \(error.message ?? "no message")")
                return .rollback
            }
        }
        if outcome == nil { writer = before }
        return outcome
    }

    /// Runs a change outside of the group commits. The cache forgets the users that `body` adds to the list.
    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Database, inout [UserID]) throws -> Value
    ) async throws(HermesError) -> Value {
        try await awaitingWriter { [self] in
            try await pool.write { [self] db in
                waitingWrites.subtract(1, ordering: .relaxed)
                var users: [UserID] = []
                // The cache forgets them before the transaction ends, while nothing else runs on the writer.
                defer { cache.withLock { cache in for user in users { cache.forget(user) } } }
                return try body(db, &users)
            }
        }
    }

    /// Runs queries on one snapshot.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(HermesError) -> Value {
        do {
            return try await pool.read(body)
        } catch {
            throw failure(error)
        }
    }

    /// Translates an error for the core, and logs it if the store failed.
    func failure(_ error: any Error) -> HermesError {
        let failure = StoreFailure.hermesError(error)
        // Other errors, such as a cancellation when the server stops, are no failure of the store.
        if failure.code == .storageUnavailable || failure.code == .internalError {
            logger.error("store failed", metadata: ["error": "\(error)"])
        }
        return failure
    }
}
