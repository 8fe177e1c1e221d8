// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Logging
import Testing

@testable import HermesSQLite

@Suite("Logs of other database files", .inTurns)
struct ForeignLogTests {
    private func create(_ name: String, in store: SQLiteStore) async throws {
        let account = NewAccount(nickName: StoreWorld.name(name), password: PasswordHash(phc: "$none$"))
        _ = try await store.create(account, now: StoreWorld.now)
    }

    private func accounts(in store: SQLiteStore) async throws -> Int {
        try await store.accounts(after: nil, limit: 9).count
    }

    /// Copies the files that a killed server leaves in the directory.
    private func killed(_ directory: TemporaryDirectory) throws -> TemporaryDirectory {
        let left = try TemporaryDirectory()
        for file in try FileManager.default.contentsOfDirectory(atPath: directory.path) where !file.hasSuffix("-shm") {
            try FileManager.default.copyItem(atPath: directory.path + "/" + file, toPath: left.path + "/" + file)
        }
        try #require(SQLiteStore.fileSize(left.database + "-wal") > 0)
        return left
    }

    /// Makes a backup with one account, and the files of the killed server, which then had two accounts.
    private func backedUpAndKilled() async throws -> (backups: TemporaryDirectory, left: TemporaryDirectory) {
        let (backups, directory) = (try TemporaryDirectory(), try TemporaryDirectory())
        let store = try directory.openStore()
        try await create("Early", in: store)
        try await store.backup(to: backups.database)
        try await create("Late", in: store)
        let left = try killed(directory)
        try store.close()
        return (backups, left)
    }

    private func restore(_ backup: String, in directory: TemporaryDirectory) throws {
        try FileManager.default.removeItem(atPath: directory.database)
        try FileManager.default.copyItem(atPath: backup, toPath: directory.database)
    }

    /// The names of the logs that were set aside.
    private func setAside(in directory: TemporaryDirectory) throws -> [String] {
        let files = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        return files.filter { $0.contains("-wal.set-aside") }.sorted()
    }

    @Test
    func `a backup beside the log of a killed server gets none of its commits, and the log is kept`() async throws {
        let (backups, left) = try await backedUpAndKilled()
        let log = try Data(contentsOf: URL(fileURLWithPath: left.database + "-wal"))
        try restore(backups.database, in: left)
        let warnings = LogRecorder()
        let store = try SQLiteStore.open(
            directory: left.path,
            logger: warnings.logger(.warning)
        )
        #expect(try await accounts(in: store) == 1)
        #expect(try Data(contentsOf: URL(fileURLWithPath: left.database + "-wal.set-aside")) == log)
        let files = warnings.all.compactMap { $0["files"]?.description }
        #expect(files.count == 1 && files[0].contains("hermes.db-wal.set-aside"))
        try store.close()
        // An earlier log that was set aside is not overwritten.
        try restore(backups.database, in: left)
        try log.write(to: URL(fileURLWithPath: left.database + "-wal"))
        let again = try left.openStore()
        #expect(try await accounts(in: again) == 1)
        #expect(try setAside(in: left) == ["hermes.db-wal.set-aside", "hermes.db-wal.set-aside-2"])
        try again.close()
    }

    @Test
    func `a server that is killed after it has opened a backup loses nothing`() async throws {
        let (backups, _) = try await backedUpAndKilled()
        let directory = try TemporaryDirectory()
        try FileManager.default.copyItem(atPath: backups.database, toPath: directory.database)
        let store = try directory.openStore()
        try await create("Later", in: store)
        let left = try killed(directory)
        try store.close()
        // The file itself is still marked as a copy. Only its log shows that a server has opened it.
        let alone = try TemporaryDirectory()
        try FileManager.default.copyItem(atPath: left.database, toPath: alone.database)
        let file = try DatabaseQueue(path: alone.database)
        #expect(try await file.read { try Bool.fetchOne($0, sql: "SELECT is_copy FROM store") } == true)
        try file.close()
        let again = try left.openStore()
        #expect(try await accounts(in: again) == 2)
        #expect(try setAside(in: left).isEmpty)
        try again.close()
    }

    @Test(arguments: [false, true])
    func `the log of a database that was moved away is kept`(isEmpty: Bool) async throws {
        let (_, left) = try await backedUpAndKilled()
        let log = try Data(contentsOf: URL(fileURLWithPath: left.database + "-wal"))
        try FileManager.default.removeItem(atPath: left.database)
        if isEmpty { try Data().write(to: URL(fileURLWithPath: left.database)) }
        let store = try? left.openStore()
        // An empty file is refused as damaged.
        #expect((store == nil) == isEmpty)
        if let store { #expect(try await accounts(in: store) == 0) }
        #expect(try Data(contentsOf: URL(fileURLWithPath: left.database + "-wal.set-aside")) == log)
        try store?.close()
    }

    @Test
    func `a damaged database is to be moved away with its log`() throws {
        let directory = try TemporaryDirectory()
        try Data(repeating: 1, count: 10_000).write(to: URL(fileURLWithPath: directory.database))
        do {
            _ = try directory.openStore()
            Issue.record("the file was opened")
        } catch let error as StoreOpenError {
            #expect(error.reason == .damaged)
            #expect(error.message.contains("Move hermes.db, hermes.db-wal and hermes.db-shm away together"))
        }
    }
}
