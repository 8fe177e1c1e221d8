// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import GRDB
package import HermesCore
import Synchronization

/// Maintenance of the database file and its log.
///
/// SQLite overwrites deleted content in new versions of its pages, which go to the log first. Until a checkpoint, the
/// database file and the log still contain old versions of these pages. So the log is written back and emptied
/// periodically.
extension SQLiteStore {
    /// The state that ``maintain(uptime:)`` keeps between two calls.
    struct Maintenance {
        /// The uptime at which the log was first seen with contents; nil if the log had none.
        var logSince: Duration?
    }

    /// The longest time that the log keeps deleted content, unless a reader, such as a backup, is running.
    static let logPeriod = Duration.seconds(60)

    /// The number of pages that one transaction returns to the file system, which takes a few milliseconds.
    static let vacuumSlice = 64
    /// The largest number of such transactions in one call.
    private static let vacuumSlices = 8

    package func maintain(uptime: Duration) async throws(HermesError) {
        do {
            try await returnFreePages()
            guard Self.fileSize(path + "-wal") > 0 else { return maintenance.withLock { $0.logSince = nil } }
            let since = maintenance.withLock { maintenance in
                let since = maintenance.logSince ?? uptime
                maintenance.logSince = since
                return since
            }
            guard uptime - since >= Self.logPeriod else { return }
            if try await checkpointer.empty() { maintenance.withLock { $0.logSince = nil } }
        } catch {
            throw failure(error)
        }
    }

    /// Returns free pages to the file system if there are many; some stay for later use.
    private func returnFreePages() async throws {
        let pages = try await pool.read { db in
            (
                free: try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0,
                all: try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0,
                mode: try Int.fetchOne(db, sql: "PRAGMA auto_vacuum") ?? 0
            )
        }
        // A file that an older version created cannot return pages, but a backup of that file can.
        guard pages.mode == 2 else { return }
        let excess = Self.excessPages(free: pages.free, all: pages.all)
        for start in stride(from: 0, to: min(excess, Self.vacuumSlice * Self.vacuumSlices), by: Self.vacuumSlice) {
            let count = min(Self.vacuumSlice, excess - start)
            try await pool.write { db in try db.execute(sql: "PRAGMA incremental_vacuum(\(count))") }
        }
    }

    /// The number of free pages to return: those beyond a quarter of the file or 4 MiB, whichever is more.
    static func excessPages(free: Int, all: Int) -> Int { max(0, free - max(1_024, all / 4)) }
}
