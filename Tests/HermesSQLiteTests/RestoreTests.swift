// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("Restoring a backup", .inTurns)
struct RestoreTests {
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)

    private func create(_ name: String, in store: SQLiteStore) async throws {
        let account = NewAccount(nickName: StoreWorld.name(name), password: PasswordHash(phc: "$none$"))
        _ = try await store.create(account, now: StoreWorld.now)
    }

    /// The number of accounts and the epoch of a directory's database.
    private func opened(_ directory: TemporaryDirectory) async throws -> (accounts: Int, epoch: UInt64) {
        let store = try directory.openStore()
        let accounts = try await store.accounts(after: nil, limit: 9).count
        try store.close()
        return (accounts, store.epoch)
    }

    /// Makes a backup with one account, and the files of the killed server, which then had two accounts. The second
    /// account is only in the log.
    private func backedUpAndKilled() async throws -> (
        backup: TemporaryDirectory, left: TemporaryDirectory, epoch: UInt64
    ) {
        let (backup, directory, left) = (try TemporaryDirectory(), try TemporaryDirectory(), try TemporaryDirectory())
        let store = try directory.openStore()
        try await create("Early", in: store)
        try await store.backup(to: backup.database)
        try await create("Late", in: store)
        for file in try FileManager.default.contentsOfDirectory(atPath: directory.path) where !file.hasSuffix("-shm") {
            try FileManager.default.copyItem(atPath: directory.path + "/" + file, toPath: left.path + "/" + file)
        }
        try #require(SQLiteStore.fileSize(left.database + "-wal") > 0)
        try store.close()
        return (backup, left, store.epoch)
    }

    private func restore(
        _ file: String,
        in directory: TemporaryDirectory,
        _ done: (DatabaseReplacement.Step) -> Void = { _ in }
    ) throws -> SQLiteStore.Restored {
        try SQLiteStore.restore(file, in: directory.path, now: Self.now, logger: TemporaryDirectory.silent, done)
    }

    private func reason(_ body: () throws -> SQLiteStore.Restored) -> StoreOpenError.Reason? {
        do {
            _ = try body()
            return nil
        } catch {
            return (error as? StoreOpenError)?.reason
        }
    }

    /// Copies the present state of a directory. Two names of one file stay two names of one file.
    private func snapshot(_ directory: TemporaryDirectory) throws -> TemporaryDirectory {
        let copy = try TemporaryDirectory()
        try ChildProcess.run("/bin/cp", ["-a", directory.path + "/.", copy.path])
        return copy
    }

    /// The contents of all files of a directory, by their paths.
    private func contents(_ directory: TemporaryDirectory) throws -> [String: Data] {
        var all: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: directory.path) {
            all[name] = FileManager.default.contents(atPath: directory.path + "/" + name)
        }
        return all
    }

    private func folders(_ directory: TemporaryDirectory) throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        return names.filter { $0.hasPrefix("replaced-") }.sorted()
    }

    /// The numbers of accounts in the replaced databases that a directory keeps.
    private func kept(_ directory: TemporaryDirectory) async throws -> [Int] {
        var all: [Int] = []
        for folder in try folders(directory) {
            let copy = try TemporaryDirectory()
            try ChildProcess.run("/bin/cp", ["-a", "\(directory.path)/\(folder)/.", copy.path])
            all.append(try await opened(copy).accounts)
        }
        return all
    }

    @Test
    func `a backup replaces the database of a killed server, which is kept with its log`() async throws {
        let (backup, left, epoch) = try await backedUpAndKilled()
        let restored = try restore(backup.database, in: left)
        #expect(restored.accounts == 1)
        #expect(restored.bytes == SQLiteStore.fileSize(left.database))
        #expect(restored.replaced == left.path + "/replaced-20270115T080000Z")
        #expect(!FileManager.default.fileExists(atPath: left.database + "-wal"))
        for name in ["hermes.db", "replaced-20270115T080000Z"] {
            let attributes = try FileManager.default.attributesOfItem(atPath: left.path + "/" + name)
            let mode = (attributes[.posixPermissions] as? NSNumber)?.intValue ?? 0
            #expect(mode & 0o077 == 0, "\(name)")
        }
        let now = try await opened(left)
        #expect(now.accounts == 1 && now.epoch != epoch)
        #expect(try await kept(left) == [2])
        #expect(try await opened(left).epoch == now.epoch, "told once")
    }

    @Test
    func `a directory without a database gets one`() async throws {
        let (backup, _, epoch) = try await backedUpAndKilled()
        let directory = try TemporaryDirectory()
        #expect(try restore(backup.database, in: directory).replaced == nil)
        let now = try await opened(directory)
        #expect(now.accounts == 1 && now.epoch != epoch)
        #expect(try folders(directory).isEmpty)
    }

    @Test
    func `a restore is undone with the database that it has kept, whose log counts`() async throws {
        let (backup, left, epoch) = try await backedUpAndKilled()
        let folder = try #require(try restore(backup.database, in: left).replaced)
        let before = try contents(left).filter { $0.key.hasPrefix("replaced-") }
        let again = try restore(folder + "/hermes.db", in: left)
        #expect(again.accounts == 2)
        #expect(again.replaced == folder + "-2")
        let now = try await opened(left)
        #expect(now.accounts == 2 && now.epoch != epoch)
        // The original files were only read.
        let after = try contents(left).filter { before.keys.contains($0.key) }
        #expect(after == before)
    }

    @Test
    func `the log beside a backup is not its own`() async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        try FileManager.default.copyItem(atPath: left.database + "-wal", toPath: backup.database + "-wal")
        #expect(try restore(backup.database, in: left).accounts == 1)
    }

    @Test
    func `a damaged database is replaced, and kept as it is`() async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        let damaged = Data(repeating: 7, count: 5_000)
        try damaged.write(to: URL(fileURLWithPath: left.database))
        let folder = try #require(try restore(backup.database, in: left).replaced)
        #expect(FileManager.default.contents(atPath: folder + "/hermes.db") == damaged)
        #expect(try await opened(left).accounts == 1)
    }

    @Test(arguments: DatabaseReplacement.Step.allCases)
    func `a restore that ends after a step leaves the former database or the new one, and can be repeated`(
        _ step: DatabaseReplacement.Step
    ) async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        var snapshots: [TemporaryDirectory] = []
        _ = try restore(backup.database, in: left) { done in
            guard done == step else { return }
            do {
                for _ in 0..<3 { snapshots.append(try snapshot(left)) }
            } catch {
                Issue.record(error)
            }
        }
        try #require(snapshots.count == 3)
        let isPlaced =
            switch step {
            case .copied, .checked, .linked: false
            case .placed, .named, .cleared: true
            }
        #expect(try await opened(snapshots[0]).accounts == (isPlaced ? 1 : 2))
        // The restore is repeated at once, and after a server has run.
        #expect(try await opened(snapshots[2]).accounts == (isPlaced ? 1 : 2))
        for ended in snapshots[1...] {
            #expect(try restore(backup.database, in: ended).accounts == 1)
            #expect(try await opened(ended).accounts == 1)
            #expect(try await kept(ended).contains(2))
            let names = try FileManager.default.contentsOfDirectory(atPath: ended.path)
            #expect(!names.contains { $0.contains(".restoring") || $0.contains(".replaced") }, "\(names)")
        }
    }

    @Test
    func `what an interrupted restore has left can be restored, and stays if a copy is refused`() async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        var interrupted: TemporaryDirectory?
        _ = try restore(backup.database, in: left) { step in
            guard step == .placed else { return }
            do { interrupted = try snapshot(left) } catch { Issue.record(error) }
        }
        let directory = try #require(interrupted)
        let file = directory.path + "/text"
        try Data("dear diary".utf8).write(to: URL(fileURLWithPath: file))
        let before = try contents(directory)
        #expect(reason { try restore(file, in: directory) } == .damaged)
        let after = try contents(directory).filter { $0.key != "hermes.lock" }
        #expect(after == before.filter { $0.key != "hermes.lock" })
        #expect(try restore(directory.database + ".replaced/hermes.db", in: directory).accounts == 2)
        #expect(try await opened(directory).accounts == 2)
        #expect(try await kept(directory).sorted() == [1, 2])
    }

    @Test
    func `a copy that is no usable backup is refused, and nothing is changed`() async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        let good = try Data(contentsOf: URL(fileURLWithPath: backup.database))
        try #require(good.count > 40_000)
        var (head, middle) = (good, good)
        head.replaceSubrange(0..<4_096, with: Data(repeating: 0xDE, count: 4_096))
        middle.replaceSubrange(8_192..<24_576, with: Data(repeating: 0xDE, count: 16_384))
        let before = try contents(left)
        let damages: [(String, Data, StoreOpenError.Reason)] = [
            ("the head", head, .damaged), ("pages in the middle", middle, .damaged),
            ("cut off", good.prefix(good.count / 8_192 * 4_096), .damaged),
            ("one byte missing", good.dropLast(), .damaged), ("most of a page missing", good.dropLast(4_090), .damaged),
            ("a text", Data("dear diary".utf8), .damaged), ("empty", Data(), .notHermes),
        ]
        for (name, bytes, expected) in damages {
            try bytes.write(to: URL(fileURLWithPath: backup.database))
            #expect(reason { try restore(backup.database, in: left) } == expected, "\(name)")
            #expect(try contents(left) == before, "\(name)")
        }
        try good.write(to: URL(fileURLWithPath: backup.database))
        let own = "PRAGMA application_id = \(StoreSchema.applicationID); PRAGMA user_version = 1"
        let changes: [(String, StoreOpenError.Reason)] = [
            ("PRAGMA user_version = 99", .newer), ("PRAGMA application_id = 7", .notHermes),
            ("\(own); DROP TABLE store", .damaged),
        ]
        for (sql, expected) in changes {
            let queue = try DatabaseQueue(path: backup.database)
            try await queue.writeWithoutTransaction { try $0.execute(sql: sql) }
            try queue.close()
            #expect(reason { try restore(backup.database, in: left) } == expected, "\(sql)")
            #expect(try contents(left) == before, "\(sql)")
        }
        #expect(reason { try restore(backup.path, in: left) } == .notHermes)
        #expect(reason { try restore(backup.path + "/none", in: left) } == .notHermes)
        try good.write(to: URL(fileURLWithPath: backup.database))
        try Data("x".utf8).write(to: URL(fileURLWithPath: backup.database + "-journal"))
        #expect(reason { try restore(backup.database, in: left) } == .damaged)
        #expect(try contents(left) == before)
    }

    @Test
    func `nothing is replaced while a server uses the directory`() async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        let store = try left.openStore()
        let names = try FileManager.default.contentsOfDirectory(atPath: left.path).sorted()
        #expect(reason { try restore(backup.database, in: left) } == .locked)
        #expect(try FileManager.default.contentsOfDirectory(atPath: left.path).sorted() == names)
        #expect(try await store.accounts(after: nil, limit: 9).count == 2)
        try store.close()
    }

    @Test
    func `a rollback journal beside the former database is not left beside the new one`() async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        try Data("x".utf8).write(to: URL(fileURLWithPath: left.database + "-journal"))
        let before = try contents(left)
        #expect(reason { try restore(backup.database, in: left) } == .failed)
        #expect(try contents(left) == before)
    }

    @Test
    func `the unfinished copy of an earlier restore is no backup`() async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        let partial = left.database + ".restoring"
        try FileManager.default.copyItem(atPath: backup.database, toPath: partial)
        #expect(reason { try restore(partial, in: left) } == .damaged)
        #expect(FileManager.default.fileExists(atPath: partial))
        // The unfinished copy does not affect a restore of the backup.
        #expect(try restore(backup.database, in: left).accounts == 1)
        #expect(!FileManager.default.fileExists(atPath: partial))
    }

    @Test
    func `a database behind a link is replaced where it is`() async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        let directory = try TemporaryDirectory()
        try FileManager.default.createSymbolicLink(atPath: directory.database, withDestinationPath: left.database)
        let folder = try #require(try restore(backup.database, in: directory).replaced)
        #expect(folder.hasSuffix(URL(fileURLWithPath: left.path).lastPathComponent + "/replaced-20270115T080000Z"))
        #expect(try await opened(directory).accounts == 1)
        let type = try FileManager.default.attributesOfItem(atPath: directory.database)[.type] as? FileAttributeType
        #expect(type == .typeSymbolicLink)
    }

    @Test(.enabled(if: DirectoryOwnerTests.isRoot))
    func `what root restores belongs to the owner of the directory`() async throws {
        let (backup, left, _) = try await backedUpAndKilled()
        try #require(chown(left.path, 54_321, 54_321) == 0)
        let folder = try #require(try restore(backup.database, in: left).replaced)
        for path in [left.database, folder] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect((attributes[.ownerAccountID] as? NSNumber)?.intValue == 54_321, "\(path)")
        }
    }
}
