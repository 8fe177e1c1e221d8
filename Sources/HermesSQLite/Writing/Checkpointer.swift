// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
import HermesCore
import Synchronization

/// Writes the log back into the database file while commits continue. It has its own connection and thread.
///
/// SQLite alone would do this inside a commit, which would then wait for the disk twice. SQLite begins the log anew
/// only after the whole log was written back. Each pass writes back the pages that commits have added since the last
/// pass began. After a few passes few pages are left, and the writer itself writes back this rest. While the disk is
/// slow, the writer leaves this rest, and the log grows instead.
final class Checkpointer: Sendable {
    /// The connection for the passes. The rest is written back on the writer's connection.
    private let queue: DatabaseQueue
    private let pool: DatabasePool
    private let clock: any TimeSource
    /// The number of pages at which the log is written back.
    let start: Atomic<Int>
    /// The number of the log's pages after the last commit.
    private let pages = Atomic(0)
    /// After an attempt that did not write back the whole log: the number of the log's pages at which to try again.
    private let again = Atomic(0)
    private let isBusy = Atomic(false)

    /// The log's size, in pages of 4 KiB (32 MB), at which it is written back: large enough that frequently changed
    /// pages are written once for many commits.
    static let startPages = 8192
    /// The largest rest, in pages, that the writer usually writes back. Writing it takes some milliseconds.
    private static let restPages = 256
    private static let maxPasses = 8
    /// If the last pass took longer than this, the disk is busy, and writing back the rest could take seconds.
    private static let maxRestTime = Duration.milliseconds(25)

    init(
        _ queue: DatabaseQueue,
        pool: DatabasePool,
        log: LogWatch,
        clock: any TimeSource,
        startPages: Int = startPages
    ) {
        self.queue = queue
        self.pool = pool
        self.clock = clock
        start = Atomic(startPages)
        log.committed.observe { [weak self] in self?.committed($0) }
    }

    /// The number of the log's pages after the last commit.
    var logPages: Int { pages.load(ordering: .relaxed) }

    /// Called on the writer's thread after each commit.
    private func committed(_ pages: Int) {
        let last = self.pages.exchange(pages, ordering: .relaxed)
        // The log has begun anew.
        if pages < last { again.store(0, ordering: .relaxed) }
        guard pages >= max(start.load(ordering: .relaxed), again.load(ordering: .relaxed)) else { return }
        guard !isBusy.exchange(true, ordering: .acquiring) else { return }
        queue.asyncWriteWithoutTransaction { [self] db in
            guard !isClosed, let left = try? passes(db) else { return ended(isDone: false) }
            guard left.pages > 0 else { return ended(isDone: true) }
            let log = (pages: logPages, start: start.load(ordering: .relaxed))
            guard Self.takesRest(left.pages, after: left.time, log) else { return ended(isDone: false) }
            pool.asyncWriteWithoutTransaction { [self] db in
                ended(isDone: !isClosed && (try? db.checkpoint(.passive)) != nil)
            }
        }
    }

    /// Whether ``close()`` was called, so that the connections may be closed.
    private var isClosed: Bool { start.load(ordering: .sequentiallyConsistent) == .max }

    /// Whether the writer itself writes back the rest. If the log has grown to eight times its usual size, the writer
    /// writes back the rest even if commits must wait long.
    static func takesRest(_ left: Int, after time: Duration, _ log: (pages: Int, start: Int)) -> Bool {
        log.pages / 8 >= log.start || left <= restPages && time <= maxRestTime
    }

    private func ended(isDone: Bool) {
        if !isDone {
            let next = pages.load(ordering: .relaxed) + max(1, start.load(ordering: .relaxed) / 4)
            again.store(next, ordering: .relaxed)
        }
        isBusy.store(false, ordering: .releasing)
    }

    /// Writes back the log, including the pages that commits add meanwhile.
    ///
    /// - Returns: the number of pages that are left, and the time of the last pass. That pass waited for the disk
    ///   twice. Writing back the rest also waits twice.
    private func passes(_ db: Database) throws -> (pages: Int, time: Duration) {
        var left = Int.max
        var time = Duration.zero
        for _ in 0..<Self.maxPasses {
            let start = clock.uptime()
            let written = try db.checkpoint(.passive).checkpointedFrameCount
            time = clock.uptime() - start
            let now = max(0, pages.load(ordering: .relaxed) - written)
            // Readers still need the rest, or commits add pages as quickly as the disk takes them.
            guard now < left else { break }
            left = now
            // After a long pass another pass follows, because the time of a long pass says nothing about the rest.
            if left == 0 || left <= Self.restPages / 4 && time <= Self.maxRestTime { break }
        }
        return (left, time)
    }

    /// Writes the whole log back and truncates it.
    ///
    /// - Returns: false if a reader still needs the log.
    func empty() async throws -> Bool {
        do {
            _ = try await queue.writeWithoutTransaction { [self] db in try passes(db) }
            try await pool.writeWithoutTransaction { db in
                // Waits only briefly for readers, because commits wait meanwhile.
                try db.execute(sql: "PRAGMA busy_timeout = 20")
                defer { try? db.execute(sql: "PRAGMA busy_timeout = \(Int(SQLiteStore.busyTimeout * 1000))") }
                _ = try db.checkpoint(.truncate)
            }
            return true
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            return false
        }
    }

    /// Closes the checkpointer; a running pass is completed first.
    func close() {
        start.store(.max, ordering: .sequentiallyConsistent)
        try? queue.close()
    }
}
