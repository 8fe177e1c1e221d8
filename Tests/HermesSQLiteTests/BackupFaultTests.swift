// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Logging
import Synchronization
import Testing

@testable import HermesSQLite

@Suite("Backups that cannot be written", .inTurns)
struct BackupFaultTests {
    /// Collects the messages of errors.
    private final class Errors: Sendable {
        private let messages = Mutex<[String]>([])

        var all: [String] { messages.withLock { $0 } }

        func add(_ message: String) { messages.withLock { $0.append(message) } }
    }

    private struct ErrorHandler: LogHandler {
        let errors: Errors
        var metadataProvider: Logger.MetadataProvider?
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.error

        init(_ errors: Errors) { self.errors = errors }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { errors.add(event.message.description) }
    }

    @Test
    func `an error of the backup's file or disk is told from one of the store`() {
        let problems: [(ResultCode, String?)] = [
            (.SQLITE_FULL, "disk of /b is full"), (.SQLITE_READONLY, "/b cannot be opened"),
            (.SQLITE_READONLY_DIRECTORY, "/b cannot be opened"), (.SQLITE_PERM, "/b cannot be opened"),
            (.SQLITE_AUTH, "/b cannot be opened"), (.SQLITE_CANTOPEN, "/b cannot be opened"),
            (.SQLITE_IOERR, "disk of /b reported an error"), (.SQLITE_IOERR_WRITE, "disk of /b reported an error"),
            (.SQLITE_IOERR_FSYNC, "disk of /b reported an error"), (.SQLITE_IOERR_READ, nil),
            (.SQLITE_IOERR_SHORT_READ, nil), (.SQLITE_CORRUPT, nil), (.SQLITE_NOTADB, nil), (.SQLITE_BUSY, nil),
            (.SQLITE_INTERRUPT, nil), (.SQLITE_MISUSE, nil), (.SQLITE_NOMEM, nil),
        ]
        for (code, expected) in problems {
            let problem = SQLiteStore.problem(DatabaseError(resultCode: code), at: "/b")
            #expect((problem == nil) == (expected == nil), "\(code)")
            if let problem, let expected { #expect(problem.contains(expected), "\(code)") }
        }
    }

    /// Whether this process may mount file systems.
    static let canMount: Bool = {
        guard let mountPoint = try? TemporaryDirectory() else { return false }
        guard (try? BackupFaultTests.mountDisk(mountPoint)) == true else { return false }
        return (try? BackupFaultTests.unmountDisk(mountPoint)) == true
    }()

    private static func mountDisk(_ directory: TemporaryDirectory) throws -> Bool {
        try run("/bin/mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", directory.path])
    }

    private static func unmountDisk(_ directory: TemporaryDirectory) throws -> Bool {
        try run("/bin/umount", ["-l", directory.path])
    }

    @Test func `a place that does not exist is named, with the cause`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let path = directory.path + "/missing/copy.db"
        let error = await #expect(throws: HermesError.self) { try await store.backup(to: path) }
        #expect(error?.message.contains("the directory of \(path) does not exist") == true)
        #expect(error?.message.contains("full") == false)
        try store.close()
    }

    @Test(.enabled(if: canMount))
    func `a full disk of the backup is told as such, and is no failure of the store`() async throws {
        let mountPoint = try TemporaryDirectory()
        try #require(try Self.mountDisk(mountPoint))
        defer { _ = try? Self.unmountDisk(mountPoint) }
        let directory = try TemporaryDirectory()
        let errors = Errors()
        let store = try SQLiteStore.open(
            directory: directory.path,
            logger: Logger(label: "test") { _ in ErrorHandler(errors) }
        )
        let world = try await StoreWorld(store: store)
        for number in 0..<150 { try world.send(String(repeating: "\(number % 10)", count: 16_000), from: 0, to: 1) }
        let path = mountPoint.path + "/copy.db"
        do throws(HermesError) {
            try await store.backup(to: path)
            Issue.record("the backup fits")
        } catch {
            #expect(error.code == .storageUnavailable)
            #expect(error.message.contains("The backup cannot be written: the disk of \(path) is full"))
        }
        #expect(errors.all.isEmpty)
        #expect(try FileManager.default.contentsOfDirectory(atPath: mountPoint.path).isEmpty)
        try await store.backup(to: directory.path + "/copy.db")
        #expect(try world.send("after", from: 0, to: 1).inboxSeq == 151)
        try store.close()
    }

    private static func run(_ path: String, _ arguments: [String]) throws -> Bool {
        guard FileManager.default.isExecutableFile(atPath: path) else { return false }
        return try ChildProcess(path, arguments).waitUntilExit() == 0
    }
}
