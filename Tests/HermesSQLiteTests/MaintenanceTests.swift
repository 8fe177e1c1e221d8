// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("What the files hold beside what is stored", .inTurns)
struct MaintenanceTests {
    private static let mark = "very-particular-secret"

    /// The files of a directory that contain the mark.
    private func marks(in directory: TemporaryDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { file in
            let data = try Data(contentsOf: URL(fileURLWithPath: directory.path + "/" + file))
            return data.range(of: Data(Self.mark.utf8)) != nil
        }
    }

    /// Stores messages of all lengths, events and publications with the mark, and delivers all of them.
    private func fill(_ world: StoreWorld, _ sessions: SessionWorld) async throws {
        let queue = try sessions.open("queue").id
        var places: [UInt64] = []
        for round in 0..<30 {
            let batch = (0..<50).map { index in
                let number = round * 50 + index
                let text = "\(number) \(Self.mark) " + String(repeating: Self.mark, count: number % 7 == 0 ? 300 : 2)
                return WriteOperation.append(world.message(text, from: number % 2, to: 1, clientID: "c\(number)"))
            }
            _ = try world.store.commit(batch, now: StoreWorld.now)
            for index in 0..<10 {
                let text = Self.mark + String(repeating: "x", count: index * 150)
                places += try sessions.publish(text, to: [queue])
            }
            let push = Push(
                id: MessageID(high: 77, low: UInt64(round)),
                content: PushContent(title: Self.mark, body: Self.mark),
                expiresAt: StoreWorld.later(.seconds(3600))
            )
            _ = try world.store.commit(
                [.push(.append(push, recipients: world.people.map(\.user), claim: nil))],
                now: StoreWorld.now
            )
            // Some of the data is purged soon, some later.
            if round % 3 == 0 {
                for person in 0...1 { try world.acknowledge(person) }
                try await world.purge()
            }
        }
        try sessions.change(.completed(queue, places))
        for person in 0...1 { try world.acknowledge(person) }
        try await world.purge()
        try await world.store.maintain(uptime: .seconds(5))
    }

    @Test
    func `what is deleted is in no file a minute later, while the server runs`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        try await fill(world, SessionWorld(store))
        #expect(!(try marks(in: directory)).isEmpty, "the test looks in the wrong place")
        try await store.maintain(uptime: .seconds(5) + SQLiteStore.logPeriod)
        #expect(try marks(in: directory) == [])
        try store.close()
    }

    @Test
    func `what is deleted is in no file after a clean stop`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        try await fill(world, SessionWorld(store))
        try store.close()
        #expect(try marks(in: directory) == [])
    }

    @Test
    func `a reader at work does not hold up the writer; the log is emptied once it is done`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        try world.send(Self.mark, from: 0, to: 1)
        try await store.maintain(uptime: .zero)
        let snapshot = try store.pool.makeSnapshot()
        defer { try? store.close() }
        _ = try await snapshot.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM message") }
        try world.send(Self.mark, from: 0, to: 1)
        try await store.maintain(uptime: SQLiteStore.logPeriod)
        #expect(SQLiteStore.fileSize(directory.database + "-wal") > 0)
        try snapshot.close()
        try await store.maintain(uptime: SQLiteStore.logPeriod + .seconds(1))
        #expect(SQLiteStore.fileSize(directory.database + "-wal") == 0)
    }

    @Test
    func `free pages go back to the file system, a few at a time; some stay`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        let text = String(repeating: "x", count: 20_000)
        for round in 0..<40 {
            let batch = (0..<50).map { WriteOperation.append(world.message("\(round) \($0) \(text)", from: 0, to: 1)) }
            _ = try store.commit(batch, now: StoreWorld.now)
        }
        func pages() async throws -> Int {
            try await store.pool.read { try Int.fetchOne($0, sql: "PRAGMA page_count") ?? 0 }
        }
        let full = try await pages()
        for person in 0...1 { try world.acknowledge(person) }
        try await world.purge(at: StoreWorld.later(.seconds(1000 * 86_400)))
        try await store.maintain(uptime: .zero)
        let first = try await pages()
        // The file also shrinks by the pages with records about the removed pages.
        #expect(first < full && full - first <= 8 * SQLiteStore.vacuumSlice + 8, "\(full) to \(first)")
        for _ in 0..<200 { try await store.maintain(uptime: .zero) }
        let last = try await pages()
        #expect(last < full / 4, "\(last) of \(full)")
        #expect(last >= 1_000)
        #expect(SQLiteStore.excessPages(free: 1_024, all: 1_100) == 0)
        #expect(SQLiteStore.excessPages(free: 3_000, all: 10_000) == 500)
        try store.close()
        #expect(SQLiteStore.fileSize(directory.database) == last * 4096)
    }

    @Test
    func `a backup of an older version's file can give back pages, too`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        _ = try await StoreWorld(store: store)
        try store.close()
        let queue = try DatabaseQueue(path: directory.database)
        try await queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = NONE; VACUUM")
        }
        try queue.close()
        let old = try directory.openStore()
        #expect(try await old.pool.read { try Int.fetchOne($0, sql: "PRAGMA auto_vacuum") } == 0)
        try await old.maintain(uptime: .zero)
        let target = try TemporaryDirectory()
        try await old.backup(to: target.database)
        #expect(try FileManager.default.contentsOfDirectory(atPath: target.path) == [SQLiteStore.fileName])
        let copy = try target.openStore()
        #expect(try await copy.pool.read { try Int.fetchOne($0, sql: "PRAGMA auto_vacuum") } == 2)
        #expect(try await copy.accounts(after: nil, limit: 9).count == 2)
    }
}
