// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

@Suite("Opening a data directory", .inTurns)
struct SQLiteStoreOpeningTests {
    @Test
    func `what was committed is there after a restart, with the same epoch`() async throws {
        let directory = try TemporaryDirectory()
        var people: [Principal] = []
        var epoch: UInt64 = 0
        do {
            let world = try await StoreWorld(store: directory.openStore())
            for index in 1...3 { try world.send("\(index)", from: 0, to: 1, clientID: "c\(index)") }
            try world.acknowledge(1, upTo: 1)
            epoch = try await world.store.position(of: world[0].user).epoch
            people = world.people
        }
        let world = StoreWorld(store: try directory.openStore(), people: people)
        #expect(try await world.store.position(of: world[0].user).epoch == epoch)
        #expect(try await world.inbox(1) == ["1:1", "2:2", "3:3"])
        #expect(try await world.store.devices(of: world[1].user).map(\.cursor) == [1])
        guard case .duplicate = try world.commit(.append(world.message("2", from: 0, to: 1, clientID: "c2"))) else {
            throw ConformanceFailure(description: "sent twice")
        }
        #expect(try world.send("4", from: 1, to: 0).conversationSeq == 4)
    }

    @Test
    func `who pays for sessions, queues and retained messages is known after a restart`() async throws {
        var settings = StoreSettings()
        settings.queuedMessages = SharedLimit(100, perAccount: 20, perAddress: 3)
        let directory = try TemporaryDirectory()
        let address = CommitSource(host: "10.0.0.1")
        var used = Holding()
        do {
            let world = SessionWorld(try directory.openStore(settings: settings))
            let id = try world.open("a", owner: .anonymous, from: "10.0.0.1").id
            for _ in 1...3 { try world.publish("x", to: [id]) }
            var publication = world.publication("x")
            publication.source = address
            try world.change(.retain(publication))
            used = world.store.queues.statistics.used
            #expect(used.entries == 3)
        }
        let world = SessionWorld(try directory.openStore(settings: settings))
        #expect(world.store.queues.statistics.used == used)
        #expect(try await world.store.sessions().map(\.payer) == [address])
        #expect(try await world.store.retained().map(\.source) == [address])
        let again = try world.open("b", owner: .anonymous, from: "10.0.0.1").id
        let other = try world.open("c", owner: .anonymous, from: "10.0.0.2").id
        #expect(try world.publish("y", to: [again, other]) == [0, 1])
        let durable = DurableSessions(
            store: world.store,
            time: ManualClock(),
            settings: DurableSettings(
                sessions: SharedLimit(100, perAddress: 2),
                retainedMessages: SharedLimit(9, perAddress: 1)
            )
        )
        try await durable.load()
        #expect(durable.statistics.sessions == 3)
        let results = Mutex<[HermesError.Code?]>([])
        for (topic, source) in [("more", address), ("more", CommitSource(host: "10.0.0.3"))] {
            let publication = world.publication("x", topic: topic)
            await withCheckedContinuation { continuation in
                durable.retain(publication, source: source) { result in
                    if case .failure(let error) = result {
                        results.withLock { $0.append(error.code) }
                    } else {
                        results.withLock { $0.append(nil) }
                    }
                    continuation.resume()
                }
            }
        }
        #expect(results.withLock { $0 } == [.quotaExceeded, nil])
        await durable.shutdown()
    }

    @Test
    func `what waits counts as much after a restart as before`() async throws {
        var settings = StoreSettings()
        settings.inbox = InboxBudget(maxEntries: 40, maxBytes: 1 << 20)
        settings.maxUnreadBytes = 3_000
        let directory = try TemporaryDirectory()
        var people: [Principal] = []
        do {
            let world = try await StoreWorld(store: directory.openStore(settings: settings), people: 3)
            for _ in 1...10 { try world.send("x", from: 0, to: 1) }
            try world.acknowledge(1, upTo: 3)
            try await world.purge()
            for _ in 1...3 { try world.send("x", from: 0, to: 1) }
            #expect(try world.refusal(.append(world.message("x", from: 0, to: 1))) == .inboxFull)
            people = world.people
        }
        let world = StoreWorld(store: try directory.openStore(settings: settings), people: people)
        #expect(try world.refusal(.append(world.message("x", from: 0, to: 1))) == .inboxFull)
        // 10 messages wait, and each counts as 129 bytes.
        let rest = String(repeating: "y", count: 3_000 - 10 * 129 - InboxBudget.entryBytes)
        #expect(try world.refusal(.append(world.message(rest + "y", from: 0, to: 2))) == .tooMuchUnread)
        try world.send(rest, from: 0, to: 2)
        try world.acknowledge(1)
        try await world.purge()
        try world.send("x", from: 0, to: 1)
    }

    @Test
    func `files are for their owner alone`() async throws {
        let parent = try TemporaryDirectory()
        let path = parent.path + "/a/b"
        let store = try SQLiteStore.open(directory: path, logger: TemporaryDirectory.silent)
        for (file, mode) in [("", 0o700), ("/hermes.db", 0o600), ("/hermes.db-wal", 0o600), ("/hermes.lock", 0o600)] {
            let attributes = try FileManager.default.attributesOfItem(atPath: path + file)
            #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == mode, "\(file)")
        }
        try store.close()
    }

    @Test(arguments: [false, true])
    func `a directory is for one server at a time`(isFileRemoved: Bool) async throws {
        let directory = try TemporaryDirectory()
        do {
            let first = try directory.openStore()
            if isFileRemoved { try FileManager.default.removeItem(atPath: directory.path + "/hermes.lock") }
            #expect(reason { try directory.openStore() } == .locked)
            _ = try await StoreWorld(store: first, people: 1)
        }
        let second = try directory.openStore()
        #expect(try await second.accounts(after: nil, limit: 9).count == 1)
    }

    @Test
    func `a closed store says so`() async throws {
        let directory = try TemporaryDirectory()
        let world = try await StoreWorld(store: directory.openStore())
        let store = try #require(world.store as? SQLiteStore)
        try store.close()
        try store.close()
        try directory.openStore().close()
        await #expect(throws: HermesError.self) { try await store.position(of: world[0].user) }
        #expect(throws: HermesError.self) { try store.commit([WriteOperation](), now: StoreWorld.now) }
        #expect(FileManager.default.fileExists(atPath: directory.database + "-wal") == false)
    }

    @Test
    func `a newer version's file is refused and left alone`() async throws {
        let directory = try TemporaryDirectory()
        try directory.openStore().close()
        try await DatabaseQueue(path: directory.database).write { try $0.execute(sql: "PRAGMA user_version = 99") }
        let before = try Data(contentsOf: URL(fileURLWithPath: directory.database))
        #expect(reason { try directory.openStore() } == .newer)
        #expect(try Data(contentsOf: URL(fileURLWithPath: directory.database)) == before)
    }

    @Test
    func `another program's file is refused and left alone`() async throws {
        let directory = try TemporaryDirectory()
        try await DatabaseQueue(path: directory.database).write { try $0.execute(sql: "CREATE TABLE t (x)") }
        let before = try Data(contentsOf: URL(fileURLWithPath: directory.database))
        #expect(reason { try directory.openStore() } == .notHermes)
        #expect(try Data(contentsOf: URL(fileURLWithPath: directory.database)) == before)
    }

    @Test
    func `a pipe in the place of the file is refused, not waited for`() throws {
        let directory = try TemporaryDirectory()
        try #require(mkfifo(directory.database, 0o600) == 0)
        #expect(reason { try directory.openStore() } == .notHermes)
    }

    @Test
    func `garbage, an empty file and a cut file are refused as damaged`() async throws {
        for damage in ["garbage", "empty", "cut", "last byte", "header"] {
            let directory = try TemporaryDirectory()
            try await fill(directory)
            let url = URL(fileURLWithPath: directory.database)
            var data = try Data(contentsOf: url)
            switch damage {
            case "garbage": data = Data((0..<10_000).map { _ in UInt8.random(in: 0...255) })
            case "empty": data = Data()
            case "cut": data = data.prefix(data.count / 2 + 100)
            case "last byte": data = data.dropLast()
            default: data.replaceSubrange(0..<16, with: Data(repeating: 0, count: 16))
            }
            try data.write(to: url)
            #expect(reason { try directory.openStore() } == .damaged, "\(damage)")
        }
    }

    @Test
    func `a database without tables is refused, unless the first start was killed`() async throws {
        func writeEmptyDatabase(_ directory: TemporaryDirectory) throws {
            let queue = try DatabaseQueue(path: directory.database)
            try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA user_version = 0; VACUUM") }
            try queue.close()
            try #require(try Data(contentsOf: URL(fileURLWithPath: directory.database)).count >= 4096)
        }
        let restored = try TemporaryDirectory()
        try writeEmptyDatabase(restored)
        #expect(reason { try restored.openStore() } == .damaged)

        let overwritten = try TemporaryDirectory()
        try await fill(overwritten)
        try FileManager.default.removeItem(atPath: overwritten.database)
        try writeEmptyDatabase(overwritten)
        #expect(reason { try overwritten.openStore() } == .damaged)

        let killed = try TemporaryDirectory()
        try writeEmptyDatabase(killed)
        var record = RunRecord(directory: killed.path, database: killed.database)
        try record.markOpen(bootID: RunRecord.bootID, numbers: [])
        #expect(reason { try killed.openStore() } == nil)
    }

    @Test(arguments: 0..<24)
    func `flipped bytes are found at opening or do no harm`(round: Int) async throws {
        let directory = try TemporaryDirectory()
        try await fill(directory)
        let url = URL(fileURLWithPath: directory.database)
        var data = try Data(contentsOf: url)
        let page = 4096 * (round % (data.count / 4096))
        for _ in 0..<24 { data[page + Int.random(in: 100..<4096)] ^= UInt8.random(in: 1...255) }
        try data.write(to: url)
        // The result may be an error or an answer, but never a crash.
        do {
            let store = try directory.openStore()
            for id in 1...3 {
                guard let user = UserID(rawValue: Int32(id)) else { continue }
                _ = try? await store.entries(of: user, after: 0, limit: 1000)
                _ = try? await store.devices(of: user)
                _ = try? await store.find(.id(user))
            }
            _ = try? await store.purge(now: StoreWorld.later(.seconds(100 * 24 * 3600)), limit: 1000)
        } catch let error as StoreOpenError {
            #expect([.damaged, .notHermes, .newer, .failed].contains(error.reason), "\(error)")
            #expect(!error.message.isEmpty)
        }
    }

    @Test
    func `a place that cannot be written is named`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/file"
        try Data().write(to: URL(fileURLWithPath: file))
        #expect(
            reason { try SQLiteStore.open(directory: file + "/data", logger: TemporaryDirectory.silent) } == .unwritable
        )
        #expect(reason { try SQLiteStore.open(directory: "/proc/x", logger: TemporaryDirectory.silent) } == .unwritable)
    }

    /// Whether opening the directory checked the whole file.
    private func isChecked(_ directory: TemporaryDirectory) throws -> Bool {
        let isChecked = Atomic(false)
        let store = try SQLiteStore.open(directory: directory.path, logger: TemporaryDirectory.silent) {
            if $0 == .checking { isChecked.store(true, ordering: .relaxed) }
        }
        try store.close()
        return isChecked.load(ordering: .relaxed)
    }

    @Test
    func `the file is checked after an unclean end alone, or if something else wrote to it`() async throws {
        let directory = try TemporaryDirectory()
        #expect(try !isChecked(directory))
        try await fill(directory)
        #expect(try !isChecked(directory))
        // The copy is the state after a crash, in which the store was not closed.
        let crashed = try TemporaryDirectory()
        let store = try directory.openStore()
        for file in try FileManager.default.contentsOfDirectory(atPath: directory.path) where !file.hasSuffix("-shm") {
            try FileManager.default.copyItem(atPath: directory.path + "/" + file, toPath: crashed.path + "/" + file)
        }
        try store.close()
        #expect(try isChecked(crashed))
        #expect(try !isChecked(crashed))
        #expect(try !isChecked(directory))
        // A copy of a closed database is another file. It might be an old database in place of the present one.
        try FileManager.default.copyItem(atPath: directory.database, toPath: directory.database + ".copy")
        try FileManager.default.removeItem(atPath: directory.database)
        try FileManager.default.moveItem(atPath: directory.database + ".copy", toPath: directory.database)
        #expect(try isChecked(directory))
        // Another program writes to the database.
        try await DatabaseQueue(path: directory.database).write { try $0.execute(sql: "CREATE TABLE other (x)") }
        #expect(try isChecked(directory))
        // There is no record, or a record that cannot be read.
        let record = directory.path + "/hermes.run"
        #expect(try !isChecked(directory))
        try FileManager.default.removeItem(atPath: record)
        #expect(try isChecked(directory))
        try Data("hermes run 1\nclosed".utf8).write(to: URL(fileURLWithPath: record))
        #expect(try isChecked(directory))
        #expect(try !isChecked(directory))
    }

    @Test
    func `a log that was left is no clean end`() async throws {
        let directory = try TemporaryDirectory()
        try await fill(directory)
        try Data("x".utf8).write(to: URL(fileURLWithPath: directory.database + "-wal"))
        #expect(try isChecked(directory))
    }

    /// Fills a store with some pages of each kind of data.
    private func fill(_ directory: TemporaryDirectory) async throws {
        let world = try await StoreWorld(store: directory.openStore(), people: 3)
        for index in 0..<300 {
            try world.send("message number \(index)", from: index % 3, to: 1, clientID: "c\(index)")
        }
        try (world.store as? SQLiteStore)?.close()
    }

    private func reason(_ open: () throws -> SQLiteStore) -> StoreOpenError.Reason? {
        do {
            _ = try open()
            return nil
        } catch {
            return (error as? StoreOpenError)?.reason
        }
    }
}
