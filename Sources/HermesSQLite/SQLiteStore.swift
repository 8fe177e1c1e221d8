// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore
internal import Logging
import Synchronization

/// All stores in one SQLite database in write-ahead mode. One writer commits operations in groups, and readers run at
/// the same time.
///
/// No commit is lost if the process is killed. With ``Durability/full``, no commit is lost in a power cut, either.
/// State: SQLite's own, some counts in memory, and the writer's caches (``WriterCache``, ``SessionCache``), which
/// only the writer's queue touches.
package final class SQLiteStore: Sendable {
    /// Which faults a commit survives.
    package enum Durability: String, Sendable, CaseIterable {
        /// Commits survive the end of the process. A power cut may lose the last commits, but never reorders them.
        case normal
        /// Commits also survive a power cut: each commit waits for the disk.
        case full
    }

    let path: String
    let pool: DatabasePool
    /// Runs the reads that many clients cause at the same time.
    let sharedReads: SharedReads
    let checkpointer: Checkpointer
    /// The clock that ``TimeSlice`` uses.
    let clock: any TimeSource
    let slice: Duration
    /// The number of changes that wait for the writer. If there are any, a transaction that has already taken long
    /// ends.
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
    /// Whether a backup is being written. There is at most one at a time.
    let isBackingUp = Atomic(false)
    let damage: Damage
    /// The jumps of the clock that the database contains.
    let clockJumps: Mutex<ClockJumps>
    private let throttle = LineThrottle()
    /// Whether commits leave fresh rows where they are, because the tables of inboxes are read one after the other.
    let keepsFresh = Atomic(false)
    /// The number of waiting webhooks; nil if it must be counted.
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
        sharedReads = SharedReads(pool, clock: clock)
        self.checkpointer = checkpointer
        self.clock = clock
        self.slice = slice
        self.sweepRows = sweepRows
        self.epoch = epoch
        self.settings = settings
        self.lock = lock
        self.logger = logger
    }

    /// Writes the log back into the database file and closes the file.
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
    /// - Parameter done: called on the writer's queue with the error's text for people; nil means success.
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

    /// Runs a batch of one operation, for callers that cannot block.
    func commitAlone(_ operation: WriteOperation, now: Timestamp) async throws(HermesError) -> WriteOutcome? {
        try await awaitingWriter { [self] in
            try await pool.writeWithoutTransaction { [self] db in
                waitingWrites.subtract(1, ordering: .relaxed)
                return try commitBatch([operation], taking: { _ in nil }, now: now, in: db).first
            }
        }
    }

    /// Waits for the writer in a separate task, because GRDB runs nothing for a cancelled task. Without the separate
    /// task, the write of a cancelled caller would count as waiting forever. While the server stops, this write would
    /// also be lost. A notification or an event that the receiver has already accepted would then be sent again after
    /// the next start.
    ///
    /// - Parameter write: a write that subtracts 1 from ``waitingWrites`` when it has the writer.
    private func awaitingWriter<Value: Sendable>(
        _ write: @escaping @Sendable () async throws -> Value
    ) async throws(HermesError) -> Value {
        waitingWrites.add(1, ordering: .relaxed)
        do {
            // The task is unstructured, so that it is not cancelled with its caller.
            return try await Task { try await write() }.value
        } catch {
            throw failure(error)
        }
    }

    /// Runs a change outside of the group commits. The cache forgets the users that `body` adds to the list.
    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Database, inout [UserID]) throws -> Value
    ) async throws(HermesError) -> Value {
        try await awaitingWriter { [self] in
            try await pool.writeWithoutTransaction { [self] db in
                // This comes before the transaction begins, because the beginning can fail.
                waitingWrites.subtract(1, ordering: .relaxed)
                var value: Value?
                try db.inTransaction(.immediate) {
                    var users: [UserID] = []
                    // The cache forgets them before the transaction ends, while nothing else runs on the writer.
                    defer { cache.withLock { cache in for user in users { cache.forget(user) } } }
                    value = try body(db, &users)
                    return .commit
                }
                guard let value else { throw CancellationError() }
                return value
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

    /// Translates an error for the core, and logs it if the store failed. Each text is logged at most once a minute,
    /// because very many operations fail while the disk is full.
    func failure(_ error: any Error) -> HermesError {
        let failure = StoreFailure.hermesError(error)
        // Other errors, such as a cancellation when the server stops, are no failure of the store.
        guard failure.code == .storageUnavailable || failure.code == .internalError else { return failure }
        let text = "\(error)"
        guard let skipped = throttle.skipped(text, now: clock.uptime()) else { return failure }
        var metadata: Logger.Metadata = ["error": "\(text)"]
        if skipped > 0 { metadata["skipped"] = "\(skipped)" }
        logger.error("store failed", metadata: metadata)
        return failure
    }
}
