// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import HermesCore
package import Logging

extension SQLiteStore {
    /// The database in the data directory.
    package static let fileName = "hermes.db"

    /// The remedy for a damaged database. The log must be moved away, too, because it does not belong to the backup.
    private static let restoreAdvice = """
        Restore a backup with "hermes restore FILE". By hand: Move \(fileName), \(fileName)-wal and \(fileName)-shm away \
        together, then put the backup in their place.
        """

    /// Opens the store of a data directory; creates the directory (mode 0700) if it is missing.
    ///
    /// Refuses a file that is damaged, of a newer version or of another program, and does not change this file. If
    /// the last run did not close the database, or something else has written to it since, the whole file is checked
    /// first, and the log shows the progress. The check (`PRAGMA quick_check`) takes about 3 s per GB from memory,
    /// and 16 s per GB from a cold disk.
    ///
    /// - Parameter progress: gets the beginning of a check and of each migration, and a report every five seconds
    ///   while they run. Called on any thread.
    package static func open(
        directory: String,
        durability: Durability = .normal,
        settings: StoreSettings = StoreSettings(),
        logger: Logger,
        progress: @escaping @Sendable (OpeningProgress) -> Void = { _ in },
        damaged: @escaping @Sendable () -> Void = {}
    ) throws(StoreOpenError) -> SQLiteStore {
        try open(
            directory: directory,
            durability: durability,
            settings: settings,
            bootID: RunRecord.bootID,
            clock: SystemTime(),
            logger: logger,
            progress: progress,
            damaged: damaged
        )
    }

    /// - Parameters:
    ///   - bootID: the boot id; nil where the system has none.
    ///   - clock: measures how long transactions take.
    ///   - sweepRows: the number of fresh rows that starts a sweep (``FreshSweep``); tests need fewer.
    static func open(
        directory: String,
        durability: Durability,
        settings: StoreSettings,
        bootID: String?,
        clock: any TimeSource = SystemTime(),
        sweepRows: Int = FreshSweep.startRows,
        logger: Logger,
        progress: @escaping @Sendable (OpeningProgress) -> Void = { _ in },
        damaged: @escaping @Sendable () -> Void = {}
    ) throws(StoreOpenError) -> SQLiteStore {
        var start = try prepare(directory, bootID: bootID, logger, progress)
        do {
            try start.markBegun()
            let log = LogWatch()
            let pool = try DatabasePool(path: start.path, configuration: configuration(log))
            let epoch = try bringUpToDate(pool, start, durability, logger, progress)
            let damage = Damage(logger: logger, tell: damaged)
            let unread = try pool.write { try UnreadLedger($0, damage: damage, logger: logger) }
            let queues = try pool.write {
                QueueBudget(settings, waiting: try SessionReader(db: $0, damage: damage).waiting())
            }
            try start.markRepaired()
            let checkpointer = Checkpointer(
                try DatabaseQueue(path: start.path, configuration: configuration()),
                pool: pool,
                log: log,
                clock: clock
            )
            return SQLiteStore(
                path: start.path,
                pool: pool,
                checkpointer: checkpointer,
                clock: clock,
                slice: durability == .full ? TimeSlice.durationWithSync : TimeSlice.duration,
                sweepRows: sweepRows,
                epoch: epoch,
                unread: unread,
                queues: queues,
                settings: settings,
                lock: start.lock,
                record: start.record,
                logger: logger,
                damage: damage,
                clockJumps: try pool.write { try ClockJumps(stored: $0) }
            )
        } catch {
            if start.isNew { removeEmptyFile(start.path) }
            if let error = error as? StoreOpenError { throw error }
            throw openError(error, path: start.path)
        }
    }

    /// The start of a run in a data directory whose database file exists and is readable.
    private struct Start {
        let lock: DirectoryLock
        /// The path of the database file.
        let path: String
        /// Whether the database file was created for this run.
        let isNew: Bool
        var record: RunRecord
        let last: RunRecord.LastRun
        /// The number of this run.
        let run: Int64
        let bootID: String?

        /// Records that this run has begun. Until the repairs after an unclean end are committed, the record keeps the
        /// old boot id. So an interrupted start does not hide the unclean end from the next start.
        mutating func markBegun() throws {
            let boot: String? =
                switch last.ending {
                case .closed: bootID
                case .unclosed(let bootID): bootID
                case .replaced: nil
                }
            let known = last.ending == .replaced ? nil : last.numbers.first
            try record.markOpen(bootID: boot, numbers: known.map { [$0, run] } ?? [])
        }

        /// Records that the repairs are committed.
        mutating func markRepaired() throws { try record.markOpen(bootID: bootID, numbers: [run]) }
    }

    /// Locks the directory, and creates or checks the database file.
    private static func prepare(
        _ directory: String,
        bootID: String?,
        _ logger: Logger,
        _ progress: @escaping @Sendable (OpeningProgress) -> Void
    ) throws(StoreOpenError) -> Start {
        try createDirectory(directory)
        warnOfOthers(directory, logger)
        let lock = try DirectoryLock(directory: directory)
        let path = directory + "/" + fileName
        try checkIsFile(path)
        try ForeignLog.setAside(from: path, logger)
        let record = RunRecord(directory: directory, database: path, bootID: bootID)
        let isNew = !FileManager.default.fileExists(atPath: path)
        let last = isNew ? RunRecord.LastRun(ending: .closed) : record.lastRun()
        if isNew {
            try createFile(path, in: directory)
        } else {
            let isCheckNeeded = last.ending != .closed
            if isCheckNeeded { progress(.checking) }
            try inspect(
                path,
                isWhole: isCheckNeeded,
                mayBeEmpty: last.hasBegunHere(bootID: bootID),
                logger,
                progress
            )
        }
        return Start(
            lock: lock,
            path: path,
            isNew: isNew,
            record: record,
            last: last,
            // An interrupted start has already chosen the number of its run, and the database may have this number.
            run: last.numbers.count > 1 ? last.numbers[1] : Int64.random(in: 1...Int64.max),
            bootID: bootID
        )
    }

    /// Converts a database of an older version, and repairs what an unclean end of the last run has left.
    ///
    /// - Returns: the store's epoch.
    private static func bringUpToDate(
        _ pool: DatabasePool,
        _ start: Start,
        _ durability: Durability,
        _ logger: Logger,
        _ progress: @escaping @Sendable (OpeningProgress) -> Void
    ) throws -> UInt64 {
        // A new epoch must be on the disk before any client sees it, whatever the durability.
        try pool.writeWithoutTransaction { db in
            for pragma in tuning(.full) { try db.execute(sql: pragma) }
        }
        try StoreSchema.migrate(pool, logger, progress)
        let mark = try pool.write { db in
            try StoreMark.open(
                db,
                after: start.last,
                run: start.run,
                bootID: start.bootID,
                waits: durability == .full
            )
        }
        if mark.isNew {
            logger.warning(
                """
                commits before a power cut, or after the restored backup was made, may be lost; clients are told to \
                fetch again
                """
            )
        }
        try pool.writeWithoutTransaction { db in
            for pragma in tuning(durability) { try db.execute(sql: pragma) }
        }
        try pool.write { db in
            // After this, there are no fresh rows. The empty caches of the writer rely on this.
            try BatchWriter.settle(db)
            try SessionWriter.settle(db)
        }
        return mark.epoch
    }

    /// Removes a new file that could not be written, for example because the disk was full. Otherwise the next start
    /// would take it for a truncated file.
    private static func removeEmptyFile(_ path: String) {
        guard fileSize(path) == 0, fileSize(path + "-wal") == 0 else { return }
        for ending in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + ending) }
    }

    /// The size of the writer's page cache, in KiB. The cache keeps the pages that commits touch in memory.
    private static let writerCacheKilobytes = 32 * 1024

    /// The PRAGMAs of the writer's connection.
    static func tuning(_ durability: Durability) -> [String] {
        [
            "PRAGMA synchronous = \(durability == .full ? "FULL" : "NORMAL")",
            "PRAGMA cache_size = -\(writerCacheKilobytes)",
            "PRAGMA journal_size_limit = \(Checkpointer.startPages * 4096 * 2)",
        ]
    }

    /// The longest wait for a lock, in seconds.
    static let busyTimeout = 2.0

    /// - Parameter log: observes the log through the writer's connection; nil for other connections.
    private static func configuration(_ log: LogWatch? = nil) -> Configuration {
        var configuration = Configuration()
        configuration.label = "hermes.store"
        configuration.foreignKeysEnabled = false
        // The pool has as many readers as all gates of the core admit together: 2 for accounts, 2 for logins, 2 for
        // kept sessions, 1 for keys, 1 for operators, and the readers for shared reads. So a read that has passed its
        // gate never waits here for reads of another gate.
        configuration.maximumReaderCount = 8 + SharedReads.maxReaders
        configuration.busyMode = .timeout(busyTimeout)
        configuration.prepareDatabase { db in
            // In a file that is created now, free pages can be returned to the file system (SQLiteStore+Maintenance).
            if !db.configuration.readonly {
                try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
                log?.attach(to: db.sqliteConnection)
            }
            // For privacy, deleted content is overwritten, even on freed pages.
            try db.execute(sql: "PRAGMA secure_delete = ON")
            try db.execute(sql: "PRAGMA temp_store = MEMORY")
        }
        return configuration
    }

    private static func createDirectory(_ directory: String) throws(StoreOpenError) {
        do {
            try FileManager.default.createDirectory(
                atPath: directory,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw StoreOpenError(
                reason: .unwritable,
                path: directory,
                message: """
                    Cannot be created\(obstacle(to: directory)). Check the permissions, or set data.directory to another \
                    place.
                    """
            )
        }
    }

    /// Returns the reason why a directory cannot be created, after a colon; an empty text if it is unknown.
    private static func obstacle(to directory: String) -> String {
        var place = URL(fileURLWithPath: directory).standardizedFileURL
        while !FileManager.default.fileExists(atPath: place.path), place.pathComponents.count > 1 {
            place.deleteLastPathComponent()
        }
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: place.path, isDirectory: &isDirectory) else { return "" }
        if !isDirectory.boolValue { return ": \"\(place.path)\" is not a directory" }
        return FileManager.default.isWritableFile(atPath: place.path) ? "" : ": \"\(place.path)\" cannot be written to"
    }

    /// Warns if others may write to the data directory, because they could replace the store. An existing directory
    /// keeps its mode, which may be intentional.
    private static func warnOfOthers(_ directory: String, _ logger: Logger) {
        let attributes = try? FileManager.default.attributesOfItem(atPath: directory)
        guard let mode = attributes?[.posixPermissions] as? NSNumber, mode.intValue & 0o022 != 0 else { return }
        logger.warning(
            "others may write to the data directory and replace the store",
            metadata: ["path": "\(directory)", "remedy": "chmod go-w"]
        )
    }

    /// Refuses an existing file that is not a regular file, such as a pipe. Opening a pipe would wait for the pipe's
    /// other end.
    private static func checkIsFile(_ path: String) throws(StoreOpenError) {
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let type = try? FileManager.default.attributesOfItem(atPath: target)[.type] as? FileAttributeType
        guard type == nil || type == .typeRegular else {
            throw StoreOpenError(
                reason: .notHermes,
                path: path,
                message: "This is not a file. Move it away, or set data.directory to another directory."
            )
        }
    }

    /// Creates the file with mode 0600 from the start. SQLite gives the files of the log the same mode.
    private static func createFile(_ path: String, in directory: String) throws(StoreOpenError) {
        guard PrivateFile.create(path, for: directory) else {
            throw StoreOpenError(
                reason: .unwritable,
                path: path,
                message: "Cannot be created. Check the directory's owner and mode, and the space on its disk."
            )
        }
    }

    /// Examines an existing file without changing it.
    ///
    /// - Parameter isWhole: whether every page is read.
    private static func inspect(
        _ path: String,
        isWhole: Bool,
        mayBeEmpty: Bool,
        _ logger: Logger,
        _ progress: @escaping @Sendable (OpeningProgress) -> Void
    ) throws(StoreOpenError) {
        guard !PageEnd.isCut(path) else {
            throw StoreOpenError(
                reason: .damaged,
                path: path,
                message: "The file is damaged (it was cut: its last page is not whole). \(restoreAdvice)"
            )
        }
        let found: (applicationID: Int32, version: Int, isEmpty: Bool, problem: String?)
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(2)
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            found = try queue.read { db in
                (
                    try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0,
                    try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0,
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_schema") == 0,
                    isWhole
                        ? try check(
                            db,
                            bytes: fileSize(path),
                            "the last run did not close the database: checking it",
                            logger
                        ) { progress(.working) } : "ok"
                )
            }
            try queue.close()
        } catch {
            throw openError(error, path: path)
        }
        if found.isEmpty, found.applicationID == 0 {
            // Either the first start was killed before it wrote anything, or this file is not a database of Hermes.
            guard mayBeEmpty, fileSize(path) > 0 || fileSize(path + "-wal") > 0 else {
                throw StoreOpenError(
                    reason: .damaged,
                    path: path,
                    message: "The database is empty. If nothing was ever stored here, delete it. \(restoreAdvice)"
                )
            }
            return
        }
        guard found.applicationID == StoreSchema.applicationID else {
            throw StoreOpenError(
                reason: .notHermes,
                path: path,
                message: "This is another program's database. Set data.directory to another place."
            )
        }
        guard found.version <= StoreSchema.version else {
            throw StoreOpenError(
                reason: .newer,
                path: path,
                message: """
                    A newer version of Hermes wrote this (schema \(found.version), this version knows \
                    \(StoreSchema.version)). Install that version or a newer one.
                    """
            )
        }
        guard found.problem == "ok" else {
            throw StoreOpenError(
                reason: .damaged,
                path: path,
                message: "The file is damaged (\(found.problem ?? "no answer")). \(restoreAdvice)"
            )
        }
    }

    /// Checks every page of the file. The log shows the beginning, the elapsed time every five seconds, and the end.
    ///
    /// - Parameters:
    ///   - bytes: the size of the file.
    ///   - message: the log's first line.
    ///   - working: called every five seconds, on another thread.
    /// - Returns: "ok", or the first problem.
    static func check(
        _ db: Database,
        bytes: Int,
        _ message: Logger.Message,
        _ logger: Logger,
        working: @escaping @Sendable () -> Void = {}
    ) throws -> String? {
        let began = ContinuousClock.now
        logger.notice(message, metadata: ["MiB": "\(bytes >> 20)"])
        let report: @Sendable (Int64) -> Void = { seconds in
            logger.notice(
                "still checking the database",
                metadata: ["seconds": "\(seconds)", "MiB": "\(bytes >> 20)"]
            )
            working()
        }
        let problem = try LongStep.run(report) { try String.fetchOne(db, sql: "PRAGMA quick_check(1)") }
        logger.notice("database checked", metadata: ["took": "\(ContinuousClock.now - began)"])
        return problem
    }

    static func fileSize(_ path: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.size] as? NSNumber)?.intValue ?? 0
    }

    private static func openError(_ error: any Error, path: String) -> StoreOpenError {
        guard let error = error as? DatabaseError else {
            return StoreOpenError(reason: .failed, path: path, message: "Cannot be opened: \(error).")
        }
        let detail = error.message ?? "SQLite code \(error.resultCode.rawValue)"
        return switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB:
            StoreOpenError(
                reason: .damaged,
                path: path,
                message: "The file is damaged (\(detail)). \(restoreAdvice)"
            )
        case .SQLITE_ERROR where ["no such table", "no such column", "no such index"].contains { detail.hasPrefix($0) }:
            StoreOpenError(
                reason: .damaged,
                path: path,
                message: "A part of the database is missing (\(detail)). \(restoreAdvice)"
            )
        case .SQLITE_FULL:
            StoreOpenError(reason: .diskFull, path: path, message: "The disk is full. Free some space and start again.")
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_CANTOPEN, .SQLITE_AUTH:
            StoreOpenError(
                reason: .unwritable,
                path: path,
                message: "Cannot be opened for writing (\(detail)). Check the owner and mode of file and directory."
            )
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            StoreOpenError(
                reason: .locked,
                path: path,
                message: "Another process has locked the file (\(detail)). Stop that process first."
            )
        default:
            StoreOpenError(reason: .failed, path: path, message: "Cannot be opened (\(detail)).")
        }
    }
}
