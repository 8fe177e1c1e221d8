// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesSQLite
import HermesTestKit
import Testing

@Suite("When things go wrong", .inTurns)
struct SQLiteStoreFaultTests {
    @Test
    func `a copy of the files at any moment opens to a prefix of the commits`() async throws {
        let directory = try TemporaryDirectory()
        let world = try await StoreWorld(store: directory.openStore())
        for round in 1...8 {
            for index in 0..<60 {
                let batch = (0..<5).map { position in
                    WriteOperation.append(
                        world.message("\((round - 1) * 300 + index * 5 + position + 1)", from: 0, to: 1)
                    )
                }
                _ = try world.store.commit(batch, now: StoreWorld.now)
            }
            // This is the state that a killed process leaves. The log may also be cut anywhere in its last commit.
            let copy = try TemporaryDirectory()
            for suffix in ["", "-wal"] {
                let data = try Data(contentsOf: URL(fileURLWithPath: directory.database + suffix))
                let cut = suffix.isEmpty || round % 2 == 0 ? 0 : Int.random(in: 1...6000)
                try data.dropLast(min(cut, data.count)).write(to: URL(fileURLWithPath: copy.database + suffix))
            }
            let restarted = StoreWorld(store: try copy.openStore(), people: world.people)
            var found: [String] = []
            while true {
                let page = try await restarted.inbox(1, after: UInt64(found.count))
                if page.isEmpty { break }
                found += page
            }
            #expect(found.count % 5 == 0, "half a commit")
            #expect(round % 2 == 1 || found.count == round * 300, "a commit was lost")
            #expect(found == found.indices.map { "\($0 + 1):\($0 + 1)" })
            #expect(try restarted.send("next", from: 0, to: 1).inboxSeq == UInt64(found.count) + 1)
        }
    }

    @Test
    func `a full disk refuses the batch, loses nothing, and is forgotten when there is room`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        try store.limitSize(pages: 120)
        try await fillUp(world) { try store.limitSize(pages: 100_000) }
    }

    @Test(.enabled(if: BackupFaultTests.canMount))
    func `a disk that is really full, too`() async throws {
        let mountPoint = try TemporaryDirectory()
        try #require(try run("/bin/mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", mountPoint.path]))
        defer { _ = try? run("/bin/umount", ["-l", mountPoint.path]) }
        let directory = try TemporaryDirectory(in: mountPoint.path)
        let world = try await StoreWorld(store: directory.openStore())
        let ballast = mountPoint.path + "/ballast"
        try Data(repeating: 1, count: 900_000).write(to: URL(fileURLWithPath: ballast))
        try await fillUp(world) { try FileManager.default.removeItem(atPath: ballast) }
    }

    /// Sends until the store is full, makes room, and continues.
    private func fillUp(_ world: StoreWorld, makeRoom: () async throws -> Void) async throws {
        let text = String(repeating: "x", count: 1000)
        var accepted = 0
        var failure: HermesError?
        while failure == nil, accepted < 10_000 {
            let batch = (0..<10).map {
                WriteOperation.append(world.message("\(accepted + $0) \(text)", from: 0, to: 1))
            }
            do throws(HermesError) {
                _ = try world.store.commit(batch, now: StoreWorld.now)
                accepted += 10
            } catch {
                failure = error
            }
        }
        #expect(failure?.code == .storageUnavailable)
        #expect(failure?.message.contains("full") == true, "\(String(describing: failure))")
        #expect(failure?.retryAfter != nil)
        #expect(accepted > 0)
        let position = try await world.store.position(of: world[1].user)
        #expect(position.head == UInt64(accepted), "nothing of the refused batch, all of the others")
        await #expect(throws: HermesError.self) {
            for index in 0..<100 {
                let name = StoreWorld.name("late \(index) \(text)")
                _ = try await world.store.create(
                    NewAccount(nickName: name, password: PasswordHash(phc: text)),
                    now: StoreWorld.now
                )
            }
        }
        try await makeRoom()
        #expect(try world.send("after", from: 0, to: 1).inboxSeq == UInt64(accepted) + 1)
        #expect(try await world.inbox(1, after: UInt64(accepted)) == ["\(accepted + 1):after"])
    }

    @Test
    func `a backup is a store of its own, taken while work goes on, and starts a new epoch`() async throws {
        let directory = try TemporaryDirectory()
        let target = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        for index in 1...500 { try world.send("\(index)", from: 0, to: 1) }
        async let done = store.backup(to: target.database)
        for index in 501...700 { try world.send("\(index)", from: 0, to: 1) }
        let accounts = try await done
        #expect(accounts == 2)
        #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == [SQLiteStore.fileName])
        let mode = try FileManager.default.attributesOfItem(atPath: target.database)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(try await world.store.position(of: world[1].user).head == 700)

        let copy = StoreWorld(store: try target.openStore(), people: world.people)
        let position = try await copy.store.position(of: world[1].user)
        #expect((500...700).contains(position.head))
        #expect(try await copy.inbox(1).count == Int(position.head))
        let epoch = try await world.store.position(of: world[1].user).epoch
        #expect(position.epoch != epoch, "seqs after the backup are used a second time")
        try await expectError(.invalidArgument) { try await store.backup(to: target.database) }
        try await expectError(.invalidArgument) { try await store.backup(to: target.path + "/missing/file") }
    }

    @Test
    func `a backup that is cancelled ends early and leaves no file`() async throws {
        let directory = try TemporaryDirectory()
        let world = try await StoreWorld(store: directory.openStore())
        // These are more pages than one step copies.
        for number in 0..<600 { _ = try world.send(String(repeating: "\(number % 10)", count: 16_000), from: 0, to: 1) }
        let (store, path) = (world.store, directory.path + "/copy.db")
        let backup = Task { try await store.backup(to: path) }  // Awaited below.
        backup.cancel()
        await #expect(throws: HermesError.self) { try await backup.value }
        #expect(!FileManager.default.fileExists(atPath: path))
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(!names.contains { $0.hasPrefix("copy.db") })
        try await store.backup(to: path)
        #expect(FileManager.default.fileExists(atPath: path))
    }

    @Test
    func `of two backups at a time one is refused, and the other is whole`() async throws {
        let directory = try TemporaryDirectory()
        let world = try await StoreWorld(store: directory.openStore())
        for index in 1...300 { try world.send("\(index)", from: 0, to: 1) }
        for round in 1...5 {
            let target = try TemporaryDirectory()
            // This directory does not belong to the backup, so it stays.
            let other = target.database + ".partial"
            try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
            let store = world.store
            let codes = await withTaskGroup(of: HermesError.Code?.self, returning: [HermesError.Code?].self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        do throws(HermesError) {
                            try await store.backup(to: target.database)
                            return nil
                        } catch {
                            return error.code
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(codes.count { $0 == nil } == 1, "round \(round): \(codes)")
            #expect(codes.allSatisfy { $0 == nil || $0 == .overloaded || $0 == .invalidArgument })
            #expect(FileManager.default.fileExists(atPath: other))
            let copy = StoreWorld(store: try target.openStore(), people: world.people)
            #expect(try await copy.inbox(1).count == 300)
        }
    }

    @Test
    func `content leaves the file when nobody waits for it`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        let secret = "a very particular secret"
        try world.send(secret, from: 0, to: 1, clientID: "c")
        for person in 0...1 { try world.acknowledge(person) }
        try await world.purge()
        try store.close()
        let data = try Data(contentsOf: URL(fileURLWithPath: directory.database))
        #expect(data.range(of: Data(secret.utf8)) == nil)
    }

    @Test
    func `entries are found wherever they lie: fresh, settled, or some of each`() async throws {
        let directory = try TemporaryDirectory()
        let world = try await StoreWorld(store: directory.openStore(sweepRows: 4_000))
        var count = 0
        for _ in 0..<10 {
            let batch = (0..<256).map { position in
                WriteOperation.append(
                    world.message("\(count + position + 1)", from: 0, to: 1, clientID: "c\(count + position)")
                )
            }
            _ = try world.store.commit(batch, now: StoreWorld.now)
            count += 256
        }
        #expect(count * 2 > 4_000)
        var seq: UInt64 = 0
        while seq < count {
            let page = try await world.store.entries(of: world[1].user, after: seq, limit: 1000)
            try StoreWorld.checkContiguity(page, after: seq)
            for entry in page.entries { #expect(StoreWorld.summary(entry) == "\(entry.seq):\(entry.seq)") }
            seq = page.entries.last?.seq ?? .max
        }
        for index in [0, 1_200, count - 1] {
            let again = world.message("\(index + 1)", from: 0, to: 1, clientID: "c\(index)")
            guard case .duplicate = try world.commit(.append(again)) else {
                throw ConformanceFailure(description: "sent twice: \(index)")
            }
        }
        try world.acknowledge(1, upTo: 2_400)
        try await world.purge()
        #expect(try await world.store.position(of: world[1].user).oldest == 2_401)
        #expect(try await world.inbox(1, after: 2_399, limit: 2) == ["2400-2400:hole", "2401:2401"])
    }

    private func run(_ path: String, _ arguments: [String]) throws -> Bool {
        guard FileManager.default.isExecutableFile(atPath: path) else { return false }
        return try ChildProcess(path, arguments).waitUntilExit() == 0
    }
}
