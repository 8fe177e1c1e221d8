// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesSQLite
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("When things go wrong with sessions", .inTurns)
struct SessionFaultTests {
    @Test
    func `a copy of the files at any moment opens to a prefix of the commits`() async throws {
        let directory = try TemporaryDirectory()
        let world = SessionWorld(try directory.openStore())
        let ids = try ["a", "b", "c"].map { try world.open($0).id }
        var published = 0
        for round in 1...6 {
            for _ in 0..<40 {
                // A commit is applied completely or not at all, so the queue, the retained publication and the packet
                // id have the same number.
                published += 1
                let publication = world.publication("\(published)", topic: "t")
                try world.publish(
                    publication,
                    ids.map { PublicationTarget(session: $0, qos: .exactlyOnce) },
                    received: ReceivedMark(session: ids[0], id: UInt16(published)),
                    retains: true
                )
            }
            let copy = try TemporaryDirectory()
            for suffix in ["", "-wal"] {
                let data = try Data(contentsOf: URL(fileURLWithPath: directory.database + suffix))
                let cut = suffix.isEmpty || round % 2 == 0 ? 0 : Int.random(in: 1...6000)
                try data.dropLast(min(cut, data.count)).write(to: URL(fileURLWithPath: copy.database + suffix))
            }
            // If only the process is killed, but not the machine, nothing is lost.
            var record = RunRecord(directory: copy.path, database: copy.database)
            try record.markOpen(bootID: RunRecord.bootID, numbers: [])
            let restarted = SessionWorld(try copy.openStore())
            let opened = try restarted.open("a")
            let head = Int(opened.head)
            #expect(round % 2 == 1 || head == published, "a commit was lost")
            for id in ids { #expect(try await restarted.queue(id) == (1...head).map { "\($0):\($0)" }) }
            #expect(opened.received == (1...head).map { UInt16($0) })
            #expect(try await restarted.retainedTexts() == ["\(head)"])
            #expect(try restarted.publish("next", to: ids) == ids.map { _ in UInt64(head) + 1 })
        }
    }

    @Test
    func `a full disk refuses the batch, loses nothing, and is forgotten when there is room`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = SessionWorld(store)
        let ids = try ["a", "b"].map { try world.open($0).id }
        try store.limitSize(pages: 150)
        let text = String(repeating: "x", count: 2000)
        var accepted = 0
        var failure: HermesError?
        while failure == nil, accepted < 10_000 {
            do {
                try world.publish(text, to: ids)
                accepted += 1
            } catch let error as HermesError {
                failure = error
            }
        }
        #expect(failure?.code == .storageUnavailable)
        #expect(accepted > 0)
        #expect(try await world.queue(ids[0]).count == accepted)
        try store.limitSize(pages: 100_000)
        #expect(try world.publish("after", to: ids) == [UInt64(accepted) + 1, UInt64(accepted) + 1])
        let session = try await store.sessions().first
        #expect(session?.queuedCount == accepted + 1)
    }

    @Test
    func `content leaves the file when its last subscriber has it, and nothing is left of anything`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = SessionWorld(store)
        let secret = "a very particular secret"
        let ids = try ["a", "b"].map { try world.open($0).id }
        let large = secret + String(repeating: "x", count: 5000)
        try world.publish(secret, to: ids)
        try world.publish(secret, to: [ids[0]])
        try world.publish(large, to: [ids[0]])
        try world.publish(large, to: ids)
        try world.change(.completed(ids[0], [1, 2, 3]))
        try world.change(.released(ids[0], 4))
        try world.change(.completed(ids[0], [4]))
        try world.change(.completed(ids[1], [1]))
        try world.change(.remove(ids[1]))
        try await world.purge(at: StoreWorld.now)
        try world.change(.remove(ids[0]))
        try await world.purge(at: StoreWorld.now)
        try store.close()
        let data = try Data(contentsOf: URL(fileURLWithPath: directory.database))
        #expect(data.range(of: Data(secret.utf8)) == nil)
        let counts = try await DatabaseQueue(path: directory.database).read { db in
            try [
                "session", "session_head", "session_gone", "session_queue", "session_queue_fresh", "session_released",
                "publication", "publication_refs",
            ].map { try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)") ?? -1 }
        }
        #expect(counts == counts.map { _ in 0 })
    }

    @Test
    func `queues are read and completed wherever they lie: fresh, settled, or some of each`() async throws {
        let directory = try TemporaryDirectory()
        let world = SessionWorld(try directory.openStore())
        let ids = try ["a", "b"].map { try world.open($0).id }
        let targets = ids.map { PublicationTarget(session: $0, qos: .atLeastOnce) }
        let count = 12_000
        for start in stride(from: 1, through: count, by: 500) {
            let operations = (start..<start + 500).map { number in
                SessionOperation.publish(
                    world.publication("\(number)"),
                    targets: number % 3 == 0 ? [targets[0]] : targets,
                    received: nil,
                    retains: false
                )
            }
            _ = try world.store.commit(operations, now: StoreWorld.now)
        }
        #expect(try await world.queue(ids[0]) == (1...count).map { "\($0):\($0)" })
        #expect(try await world.queue(ids[1]).count == count / 3 * 2)
        try world.change(.completed(ids[0], (9_000...11_990).map { UInt64($0) }))
        #expect(try await world.queue(ids[0], after: 8_998).prefix(2) == ["8999:8999", "11991:11991"])
        let page = try await world.store.queued(of: ids[0], after: 8_990, limit: 15, maxBytes: .max)
        #expect(page.map(\.seq) == Array(8_991...8_999) + Array(11_991...11_996))
        #expect(try await world.store.sessions().map(\.queuedCount) == [count - 2_991, count / 3 * 2])
    }

    @Test(arguments: SessionPurger.Query.all)
    func `purge finds its work by an index`(_ sql: String) async throws {
        let directory = try TemporaryDirectory()
        let plan = try await directory.queryPlan(of: sql)
        #expect(!plan.isEmpty)
        // The steps of the subquery follow this step.
        for step in plan where !step.hasPrefix("CORRELATED SCALAR SUBQUERY") {
            #expect(step.hasPrefix("SEARCH "), "\(step)")
        }
    }

    @Test
    func `a store of the version before is carried over`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        _ = try await StoreWorld(store: store)
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            let tables = try String.fetchAll(
                db,
                sql: """
                    SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT IN
                        ('store', 'account', 'device', 'token', 'conversation', 'message', 'client_id',
                         'client_id_fresh', 'inbox', 'inbox_fresh', 'inbox_head', 'contact', 'chat_group',
                         'group_member', 'groups_of_user', 'session_received_part', 'kept_name', 'audit',
                         'push_token', 'conversation_gone', 'grdb_migrations')
                    """
            )
            for table in tables { try db.execute(sql: "DROP TABLE \(table)") }
            for table in ["inbox", "inbox_fresh"] {
                for column in ["source", "weight"] { try db.execute(sql: "ALTER TABLE \(table) DROP COLUMN \(column)") }
            }
            try db.execute(sql: "ALTER TABLE device DROP COLUMN proof")
            try db.takeBackConversationLists()
            try db.execute(sql: "DROP TABLE audit; DROP TABLE push_token")
            try db.execute(sql: "ALTER TABLE group_member DROP COLUMN joined_after")
            try db.execute(sql: "ALTER TABLE chat_group DROP COLUMN is_history_open")
            try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier >= '003'; PRAGMA user_version = 2")
        }
        let world = SessionWorld(try directory.openStore())
        #expect(try !world.open("a").wasPresent)
        #expect(try await world.store.accounts(after: nil, limit: 9).count == 2)
    }
}
