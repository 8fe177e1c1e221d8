// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import Logging

extension SQLiteStore {
    /// The result of ``restore(_:in:logger:)``.
    package struct Restored: Sendable, Hashable {
        /// The size of the new database.
        package let bytes: Int
        /// The number of accounts in the new database.
        package let accounts: Int
        /// The folder with the files of the former database; nil if there was none.
        package let replaced: String?
    }

    /// Replaces a data directory's database with a copy of a database. The server that opens the copy begins a new
    /// epoch.
    ///
    /// The former files are kept in a folder of the directory. They may be damaged, because nothing reads them. If
    /// the copy is refused, nothing in the directory changes. However the process ends, the directory has the former
    /// database or the new one (``DatabaseReplacement``).
    ///
    /// - Parameters:
    ///   - file: a file that ``backup(to:)`` wrote, or the database of a server that was stopped or killed. If such a
    ///     database has a log, the log must be next to it.
    ///   - directory: the data directory, which must exist.
    ///   - logger: gets the progress of the check.
    package static func restore(
        _ file: String,
        in directory: String,
        logger: Logger
    ) throws(StoreOpenError) -> Restored {
        try restore(file, in: directory, now: Date(), logger: logger) { _ in }
    }

    /// - Parameters:
    ///   - now: the time for the name of the folder with the former files.
    ///   - done: called after each step.
    static func restore(
        _ file: String,
        in directory: String,
        now: Date,
        logger: Logger,
        _ done: (DatabaseReplacement.Step) -> Void
    ) throws(StoreOpenError) -> Restored {
        let source = URL(fileURLWithPath: file).resolvingSymlinksInPath().path
        try refuseUnlessDatabase(source)
        let lock = try DirectoryLock(directory: directory)
        defer { lock.release() }
        let replacement = DatabaseReplacement(directory: directory)
        guard source != replacement.partial else {
            throw StoreOpenError(
                reason: .damaged,
                path: source,
                message: "This is the unfinished copy of an earlier restore. Restore the backup itself."
            )
        }
        try replacement.refuseJournal()
        replacement.removePartial()
        do throws(StoreOpenError) {
            try replacement.copy(from: source)
            done(.copied)
            let accounts = try prepare(replacement.partial, from: file, logger)
            done(.checked)
            // This comes after the copy, because the original file may be in the folder that an interrupted restore
            // has left.
            try replacement.clearEarlier(now: now)
            let bytes = fileSize(replacement.partial)
            let replaced = try replacement.place(now: now, done)
            return Restored(bytes: bytes, accounts: accounts, replaced: replaced)
        } catch {
            replacement.removePartial()
            throw error
        }
    }

    /// Refuses a path that does not lead to a regular file, and a file with a rollback journal. Opening a pipe, for
    /// example, would wait for the pipe's other end.
    private static func refuseUnlessDatabase(_ source: String) throws(StoreOpenError) {
        let type = try? FileManager.default.attributesOfItem(atPath: source)[.type] as? FileAttributeType
        guard type == .typeRegular else {
            throw StoreOpenError(
                reason: .notHermes,
                path: source,
                message: type == nil ? "There is no such file." : "This is not a file."
            )
        }
        guard fileSize(source + "-journal") == 0 else {
            throw StoreOpenError(
                reason: .damaged,
                path: source,
                message: "The file is not complete: an interrupted change lies in \(source)-journal."
            )
        }
    }

    /// Checks a copy, makes it one file without a log, and marks it as a copy.
    ///
    /// - Parameters:
    ///   - partial: the copy.
    ///   - file: the original, for people.
    /// - Returns: the number of accounts.
    private static func prepare(
        _ partial: String,
        from file: String,
        _ logger: Logger
    ) throws(StoreOpenError) -> Int {
        guard !PageEnd.isCut(partial) else { throw damaged(file, "it was cut: its last page is not whole") }
        do {
            let queue = try DatabaseQueue(path: partial)
            let accounts = try queue.writeWithoutTransaction { db -> Int in
                try refuseForeign(db, file)
                // If there is a log, this writes the log into the file. Only after that is the size of the file
                // complete.
                let mode = try String.fetchOne(db, sql: "PRAGMA journal_mode = DELETE")
                guard mode == "delete" else { throw damaged(file, "its log cannot be used") }
                let problem = try check(db, bytes: fileSize(partial), "checking the copy", logger)
                guard problem == "ok" else { throw damaged(file, problem ?? "no answer") }
                try db.execute(sql: "UPDATE store SET is_copy = 1")
                guard db.changesCount == 1 else { throw damaged(file, "it has no epoch") }
                return try Int.fetchOne(db, sql: "SELECT count(*) FROM account") ?? 0
            }
            try queue.close()
            return accounts
        } catch {
            if let error = error as? StoreOpenError { throw error }
            throw restoreError(error, file)
        }
    }

    /// Refuses the database of another program or of a newer version.
    private static func refuseForeign(_ db: Database, _ file: String) throws {
        let id = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        guard id == StoreSchema.applicationID else {
            throw StoreOpenError(
                reason: .notHermes,
                path: file,
                message: "This is no database of Hermes. Name a file that \"hermes backup\" has written."
            )
        }
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        guard version <= StoreSchema.version else {
            throw StoreOpenError(
                reason: .newer,
                path: file,
                message: """
                    A newer version of Hermes wrote this (schema \(version), this version knows \
                    \(StoreSchema.version)). Restore it with that version or a newer one.
                    """
            )
        }
    }

    private static func damaged(_ file: String, _ problem: String) -> StoreOpenError {
        StoreOpenError(
            reason: .damaged,
            path: file,
            message: "The file is damaged (\(problem)), or no backup of Hermes. Restore another backup."
        )
    }

    private static func restoreError(_ error: any Error, _ file: String) -> StoreOpenError {
        guard let error = error as? DatabaseError else {
            return StoreOpenError(reason: .failed, path: file, message: "Cannot be restored: \(error).")
        }
        let detail = error.message ?? "SQLite code \(error.resultCode.rawValue)"
        return switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR: damaged(file, detail)
        case .SQLITE_FULL:
            StoreOpenError(
                reason: .diskFull,
                path: file,
                message: "The disk of the data directory is full. Free some space and try again."
            )
        default: StoreOpenError(reason: .failed, path: file, message: "Cannot be restored (\(detail)).")
        }
    }
}
