// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import HermesCore
import Synchronization

/// Tells a task's work on another thread that the task is cancelled.
private final class CancellationMark: Sendable {
    private let mark = Atomic(false)

    var isSet: Bool { mark.load(ordering: .relaxed) }

    func set() { mark.store(true, ordering: .relaxed) }
}

extension SQLiteStore {
    private static let pagesPerStep: CInt = 1_024

    /// Writes the backup to a new file in the directory of the final path, and renames this file at the end. The new
    /// file has a random name, so no other file is touched, and an incomplete backup never has the final name.
    @discardableResult
    package func backup(to path: String) async throws(HermesError) -> Int? {
        guard !isBackingUp.exchange(true, ordering: .acquiring) else {
            throw HermesError(.overloaded, "Another backup is running. Wait until it has ended, then try again.")
        }
        defer { isBackingUp.store(false, ordering: .releasing) }
        guard !FileManager.default.fileExists(atPath: path) else {
            throw HermesError(.invalidArgument, "The backup would overwrite a file. Choose a new name.")
        }
        let partial = "\(path).partial-\(String(UInt32.random(in: 0...UInt32.max), radix: 16))"
        if let number = PrivateFile.failureToCreate(partial) {
            throw HermesError(.invalidArgument, "The backup cannot be written: \(Self.problem(number, at: path))")
        }
        defer { try? FileManager.default.removeItem(atPath: partial) }
        let isCancelled = CancellationMark()
        let copied: Result<Int?, HermesError> = await withTaskCancellationHandler {
            await copy(to: partial, for: path, unless: isCancelled)
        } onCancel: {
            isCancelled.set()
        }
        let accounts = try copied.get()
        do {
            // This fails if somebody has created the file meanwhile.
            try FileManager.default.moveItem(atPath: partial, toPath: path)
            DirectoryFlush.flush(URL(fileURLWithPath: path).deletingLastPathComponent().path)
            return accounts
        } catch {
            throw HermesError(.invalidArgument, "The backup file cannot be renamed.", cause: error)
        }
    }

    /// - Parameter path: the final name of the file `partial`, for people.
    /// - Returns: the number of accounts in the copy; nil if damage in the copy prevents the count.
    private func copy(
        to partial: String,
        for path: String,
        unless isCancelled: CancellationMark
    ) async -> Result<Int?, HermesError> {
        do {
            // All steps use one connection. If the file were opened again by its name, it could be another file.
            let copy = try Self.writing(path) { try DatabaseQueue(path: partial) }
            try await pool.read { db in
                try Self.writing(path) { try Self.copy(db, to: copy, unless: isCancelled) }
            }
            let accounts = try await copy.writeWithoutTransaction { db in
                try Self.writing(path) {
                    try Self.convert(db)
                    return try? Int.fetchOne(db, sql: "SELECT count(*) FROM account")
                }
            }
            try Self.writing(path) { try copy.close() }
            return .success(accounts)
        } catch is CancellationError {
            return .failure(HermesError(.shuttingDown, "The backup was cancelled."))
        } catch let refusal as HermesError {
            // The store has not failed.
            return .failure(refusal)
        } catch {
            return .failure(failure(error))
        }
    }

    /// Runs a step that writes the backup. Throws a `HermesError` if the file or its disk fails; other errors may
    /// come from the store.
    private static func writing<Value>(_ path: String, _ step: () throws -> Value) throws -> Value {
        do {
            return try step()
        } catch let error as DatabaseError {
            guard let problem = problem(error, at: path) else { throw error }
            throw HermesError(.storageUnavailable, "The backup cannot be written: \(problem)", cause: error)
        }
    }

    /// Explains the system's error number for a backup that cannot be created.
    static func problem(_ number: Int32, at path: String) -> String {
        switch number {
        case ENOENT, ENOTDIR: "the directory of \(path) does not exist. Create it, or choose another place."
        case EACCES, EPERM: "the server's user may not create \(path). Change the permissions of its directory."
        case EROFS: "the disk of \(path) is mounted read-only. Choose another place."
        case ENOSPC, EDQUOT: "the disk of \(path) is full. Free some space there, or choose another place."
        default: "\(path) cannot be created: \(String(cString: strerror(number)))."
        }
    }

    /// Explains an error of the backup's file or disk; nil if it may be an error of the store.
    static func problem(_ error: DatabaseError, at path: String) -> String? {
        switch error.resultCode {
        case .SQLITE_FULL:
            "the disk of \(path) is full. Free some space there, or choose a place on another disk."
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH, .SQLITE_CANTOPEN:
            "\(path) cannot be opened for writing. Check the permissions of its directory and how its disk is mounted."
        case .SQLITE_IOERR where !failedReads.contains(error.extendedResultCode):
            "the disk of \(path) reported an error or is full. Look into the system's log and check the free space."
        default:
            nil
        }
    }

    /// Errors of reading a disk, which may be the store's disk.
    private static let failedReads: [ResultCode] = [.SQLITE_IOERR_READ, .SQLITE_IOERR_SHORT_READ]

    /// Copies this reader's snapshot while commits continue. The copy is one file, marked as a copy.
    private static func copy(_ db: Database, to copy: DatabaseQueue, unless isCancelled: CancellationMark) throws {
        try copy.writeWithoutTransaction { destination in
            // Copies in steps, so that a server that stops does not wait for the end of the copy.
            try db.backup(to: destination, pagesPerStep: pagesPerStep) { _ in
                if isCancelled.isSet { throw CancellationError() }
            }
            _ = try String.fetchOne(destination, sql: "PRAGMA journal_mode = DELETE")
            try destination.execute(sql: "UPDATE store SET is_copy = 1")
            guard destination.changesCount == 1 else { throw StoreFailure.damagedRow }
        }
    }

    /// Rewrites the copy if an older version created the database, so that the copy can return free space.
    private static func convert(_ copy: Database) throws {
        guard try Int.fetchOne(copy, sql: "PRAGMA auto_vacuum") != 2 else { return }
        try copy.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
        try copy.execute(sql: "VACUUM")
    }
}
