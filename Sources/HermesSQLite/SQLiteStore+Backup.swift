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

    package func backup(to path: String) async throws(HermesError) {
        guard !FileManager.default.fileExists(atPath: path) else {
            throw HermesError(.invalidArgument, "The backup would overwrite a file. Choose a new name.")
        }
        // An interrupted backup may have left this file.
        try? FileManager.default.removeItem(atPath: path + ".partial")
        guard PrivateFile.create(path + ".partial") else {
            throw HermesError(.invalidArgument, "The backup cannot be written: its directory is missing or read-only.")
        }
        defer { try? FileManager.default.removeItem(atPath: path + ".partial") }
        let isCancelled = CancellationMark()
        let copied: Result<Void, HermesError> = await withTaskCancellationHandler {
            do throws(HermesError) {
                return .success(
                    try await read { db in try Self.copy(db, to: path + ".partial", unless: isCancelled) }
                )
            } catch {
                return .failure(error)
            }
        } onCancel: {
            isCancelled.set()
        }
        try copied.get()
        do {
            try await Self.convert(path + ".partial")
        } catch {
            throw failure(error)
        }
        do {
            // Fails if the file was created meanwhile; an incomplete backup never has the final name.
            try FileManager.default.moveItem(atPath: path + ".partial", toPath: path)
        } catch {
            throw HermesError(.invalidArgument, "The backup file cannot be renamed.", cause: error)
        }
    }

    /// Copies this reader's snapshot while commits continue. The copy is one file, marked as a copy.
    private static func copy(_ db: Database, to path: String, unless isCancelled: CancellationMark) throws {
        let copy = try DatabaseQueue(path: path)
        try copy.writeWithoutTransaction { destination in
            // Copies in steps, so that a server that stops does not wait for the end.
            try db.backup(to: destination, pagesPerStep: pagesPerStep) { _ in
                if isCancelled.isSet { throw CancellationError() }
            }
            _ = try String.fetchOne(destination, sql: "PRAGMA journal_mode = DELETE")
            try destination.execute(sql: "UPDATE store SET is_copy = 1")
        }
        try copy.close()
    }

    /// Rewrites the copy if an older version created the database, so that the copy can return free space.
    private static func convert(_ path: String) async throws {
        let copy = try DatabaseQueue(path: path)
        try await copy.writeWithoutTransaction { db in
            guard try Int.fetchOne(db, sql: "PRAGMA auto_vacuum") != 2 else { return }
            try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL")
            try db.execute(sql: "VACUUM")
        }
        try copy.close()
    }
}
