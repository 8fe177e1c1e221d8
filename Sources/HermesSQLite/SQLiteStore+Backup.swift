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

    /// Writes the backup to a new file beside the final one and renames it at the end. The new file has a random name,
    /// so no other file is touched, and an incomplete backup never has the final name.
    package func backup(to path: String) async throws(HermesError) {
        guard !isBackingUp.exchange(true, ordering: .acquiring) else {
            throw HermesError(.overloaded, "Another backup is running. Wait until it has ended, then try again.")
        }
        defer { isBackingUp.store(false, ordering: .releasing) }
        guard !FileManager.default.fileExists(atPath: path) else {
            throw HermesError(.invalidArgument, "The backup would overwrite a file. Choose a new name.")
        }
        let partial = "\(path).partial-\(String(UInt32.random(in: 0...UInt32.max), radix: 16))"
        guard PrivateFile.create(partial) else {
            throw HermesError(.invalidArgument, "The backup cannot be written: its directory is missing or read-only.")
        }
        defer { try? FileManager.default.removeItem(atPath: partial) }
        let isCancelled = CancellationMark()
        let copied: Result<Void, HermesError> = await withTaskCancellationHandler {
            await copy(to: partial, unless: isCancelled)
        } onCancel: {
            isCancelled.set()
        }
        try copied.get()
        do {
            // Fails if the file was created meanwhile.
            try FileManager.default.moveItem(atPath: partial, toPath: path)
        } catch {
            throw HermesError(.invalidArgument, "The backup file cannot be renamed.", cause: error)
        }
    }

    private func copy(to path: String, unless isCancelled: CancellationMark) async -> Result<Void, HermesError> {
        do {
            // One connection for all steps: if the file were opened again by its name, it could be another file.
            let copy = try DatabaseQueue(path: path)
            try await pool.read { try Self.copy($0, to: copy, unless: isCancelled) }
            try await copy.writeWithoutTransaction { try Self.convert($0) }
            try copy.close()
            return .success(())
        } catch is CancellationError {
            return .failure(HermesError(.shuttingDown, "The backup was cancelled."))
        } catch {
            return .failure(failure(error))
        }
    }

    /// Copies this reader's snapshot while commits continue. The copy is one file, marked as a copy.
    private static func copy(_ db: Database, to copy: DatabaseQueue, unless isCancelled: CancellationMark) throws {
        try copy.writeWithoutTransaction { destination in
            // Copies in steps, so that a server that stops does not wait for the end.
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
