// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Logging
import Synchronization
import Testing

@testable import HermesSQLite

/// An entry with a seq just above the head has the seq of a later entry.
@Suite("Entries with damaged numbers", .inTurns)
struct SeqDamageTests {
    private func texts(_ world: StoreWorld) async throws -> [String] {
        try await world.inbox(1).compactMap { $0.split(separator: ":").last.map(String.init) }
            .filter { $0.hasPrefix("text") }
    }

    /// - Parameters:
    ///   - isSettled: whether the damaged row is in the permanent table.
    ///   - isCached: whether the writer has the inbox in its cache.
    @Test(arguments: [false, true], [false, true])
    func `no sound entry gets lost, and the store opens again`(_ isSettled: Bool, _ isCached: Bool) async throws {
        let directory = try TemporaryDirectory()
        // A sweep begins when the head has passed the damaged row.
        let store = try directory.openStore(sweepRows: 12)
        let world = try await StoreWorld(store: store)
        let user = world[1].user
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        try await store.pool.write { db in
            if isSettled { try BatchWriter.settle(db) }
            let table = isSettled ? "inbox" : "inbox_fresh"
            try db.execute(sql: "UPDATE \(table) SET seq = 5 WHERE user = ? AND seq = 3", arguments: [user.rawValue])
        }
        if !isCached { store.cache.withLock { $0.forget(user) } }
        var sent: [String] = []
        for number in 0..<20 {
            sent.append("text \(number)")
            try world.send("text \(number)", from: 0, to: 1)
            #expect(try await texts(world) == sent)
        }
        let fresh = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM inbox_fresh") ?? -1 }
        #expect(fresh < 40, "swept")
        try store.close()

        let again = try directory.openStore()
        let later = StoreWorld(store: again, people: world.people)
        #expect(try await texts(later) == sent)
        try later.send("text", from: 0, to: 1)
        #expect(try await texts(later) == sent + ["text"])
        try again.close()
    }

    @Test(arguments: [false, true])
    func `one in the queue of a session stops no other session, and the store opens again`(
        _ isSettled: Bool
    ) async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let sessions = SessionWorld(store)
        let (one, other) = (try sessions.open("one").id, try sessions.open("other").id)
        for text in ["1", "2"] { try sessions.publish(text, to: [one]) }
        try await store.pool.write { db in
            if isSettled { try SessionWriter.settle(db) }
            let table = isSettled ? "session_queue" : "session_queue_fresh"
            try db.execute(sql: "UPDATE \(table) SET seq = 3 WHERE session = ? AND seq = 2", arguments: [one.rawValue])
        }
        // The publication may be refused, but the call must end.
        _ = try? sessions.publish("3", to: [one])
        try sessions.publish("4", to: [other])
        #expect(try await sessions.queue(other) == ["1:4"])
        try store.close()

        let again = try directory.openStore()
        let later = SessionWorld(again)
        try later.publish("5", to: [other])
        #expect(try await later.queue(other) == ["1:4", "2:5"])
        if isSettled { #expect(try await later.queue(one) == ["1:1", "3:3"]) }
        try again.close()
    }

    @Test
    func `a head that is too low moves above the entries`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.execute(sql: "UPDATE inbox_head SET head = 1 WHERE user = ?", arguments: [world[1].user.rawValue])
        }
        let again = try directory.openStore()
        let later = StoreWorld(store: again, people: world.people)
        try later.send("d", from: 0, to: 1)
        #expect(try await later.inbox(1) == ["1:a", "2:b", "3:c", "4:d"])
        try again.close()
    }

    @Test(
        arguments: ["head = -1", "oldest = -1", "acknowledged = -1", "head = 1 << 61, oldest = -1"],
        [true, false]
    )
    func `a damaged row of an inbox is rebuilt, and no seq is assigned twice`(
        _ damage: String,
        readsFirst: Bool
    ) async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        let user = world[1].user
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.execute(sql: "UPDATE inbox_head SET \(damage) WHERE user = ?", arguments: [user.rawValue])
        }
        let again = try directory.openStore()
        let later = StoreWorld(store: again, people: world.people)
        let head = damage.hasPrefix("head") ? 3 + InboxRow.jump : 3
        if readsFirst {
            let position = try await again.position(of: user)
            #expect(position.head == head && position.oldest == 1 && position.entries == 3)
        }
        try later.send("d", from: 0, to: 1)
        let hole = head > 3 ? ["4-\(head):hole"] : []
        #expect(try await later.inbox(1) == ["1:a", "2:b", "3:c"] + hole + ["\(head + 1):d"])
        let entries = try await again.pool.read { db in
            let sql = "SELECT entries FROM inbox_head WHERE user = ?"
            return try Int.fetchOne(db, sql: sql, arguments: [user.rawValue])
        }
        #expect(entries == 4)
        try later.acknowledge(1)
        try await later.purge()
        #expect(try await again.position(of: user).oldest == head + 2)
        try again.close()
    }

    @Test
    func `a rebuilt row is reported once, after its commit`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        try world.send("a", from: 0, to: 1)
        let user = world[1].user
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.execute(sql: "UPDATE inbox_head SET head = -1 WHERE user = ?", arguments: [user.rawValue])
            try db.execute(sql: "UPDATE conversation SET last_seq = -1")
        }
        let recorder = LogRecorder()
        let again = try SQLiteStore.open(directory: directory.path, logger: recorder.logger(.error))
        func reports() -> Int { recorder.all.filter { $0["was"] != nil }.count }
        // The commit rebuilds the row first, and then finds the damaged conversation.
        let later = StoreWorld(store: again, people: world.people)
        #expect(try later.refusal(.append(later.message("b", from: 0, to: 1))) == .internalError)
        #expect(reports() == 0)
        #expect(try await again.position(of: user).head == 1 + InboxRow.jump)
        #expect(reports() == 1)
        #expect(try await again.position(of: user).head == 1 + InboxRow.jump)
        #expect(reports() == 1)
        try again.close()
    }

    @Test
    func `a rebuilt row is behind all that a device has acknowledged`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        try world.acknowledge(1)
        try await world.purge()
        let user = world[1].user
        try await store.pool.write { db in
            let sql = "UPDATE inbox_head SET head = -1, oldest = -1 WHERE user = ?"
            try db.execute(sql: sql, arguments: [user.rawValue])
        }
        let position = try await store.position(of: user)
        #expect(position.head == 3 + InboxRow.jump && position.oldest == position.head + 1)
        try world.send("d", from: 0, to: 1)
        #expect(try await world.inbox(1, after: position.head) == ["\(position.head + 1):d"])
        try store.close()
    }

    @Test
    func `a rebuilt row is behind all marks, and a damaged mark does not prevent it`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        let user = world[1].user
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE inbox_head SET head = -1 WHERE user = ?", arguments: [user.rawValue])
        }
        let token = PushToken(stored: .apns, text: "a", appID: "org.example")
        try await store.setPushToken(token, of: StoreWorld.phone, user, shown: .other, now: StoreWorld.now)
        let mark = try await store.pool.read { try Int64.fetchOne($0, sql: "SELECT pushed_up_to FROM push_token") }
        #expect(mark == 0)
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE push_token SET pushed_up_to = -1")
            let mark = "INSERT INTO webhook_mark (user, reported_up_to) VALUES (?, 100)"
            try db.execute(sql: mark, arguments: [user.rawValue])
        }
        #expect(try await store.position(of: user).head == 100 + InboxRow.jump)
        try store.close()
    }

    @Test
    func `JavaScript can express the numbers of a rebuilt row`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        let (other, user) = (world[0].user, world[1].user)
        let tooHigh = InboxRow.maxKnown + 1
        try await store.pool.write { db in
            try BatchWriter.settle(db)
            try db.execute(
                sql: "UPDATE inbox SET seq = ? WHERE user = ? AND seq = 3",
                arguments: [tooHigh, user.rawValue]
            )
            try db.execute(
                sql: "INSERT INTO webhook_mark (user, reported_up_to) VALUES (?, ?)",
                arguments: [user.rawValue, tooHigh]
            )
            try db.execute(sql: "UPDATE inbox_head SET head = -1, oldest = ?", arguments: [tooHigh])
            try db.execute(
                sql: "UPDATE device SET cursor = ? WHERE user = ?",
                arguments: [tooHigh, other.rawValue]
            )
        }
        for person in [other, user] { store.cache.withLock { $0.forget(person) } }
        let position = try await store.position(of: user)
        #expect(position.head == 2 + InboxRow.jump && position.oldest == 1)
        await #expect(throws: HermesError.self) { _ = try await store.position(of: other) }
        // The highest cursor that counts.
        try await store.pool.write { db in
            let sql = "UPDATE device SET cursor = ? WHERE user = ?"
            try db.execute(sql: sql, arguments: [InboxRow.maxKnown, other.rawValue])
        }
        try world.send("d", from: 1, to: 0)
        let head = try await store.position(of: other).head
        #expect(head > UInt64(InboxRow.maxKnown) + InboxRow.jump && head + InboxRow.jump / 2 < 1 << 53)
        try store.close()
    }

    @Test
    func `a row that could not be rebuilt costs no further try until something is written to the inbox`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        let user = world[1].user
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE inbox_head SET head = -1 WHERE user = ?", arguments: [user.rawValue])
            try db.execute(sql: "UPDATE device SET cursor = -1 WHERE user = ?", arguments: [user.rawValue])
        }
        store.cache.withLock { $0.forget(user) }
        await #expect(throws: HermesError.self) { _ = try await store.position(of: user) }
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE device SET cursor = 0 WHERE user = ?", arguments: [user.rawValue])
        }
        await #expect(throws: HermesError.self) { _ = try await store.position(of: user) }
        try world.send("a", from: 0, to: 1)
        #expect(try await store.position(of: user).head == InboxRow.jump + 1)
        try store.close()
    }

    @Test
    func `an inbox with nothing but damaged entries is counted with them`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        let user = world[1].user
        try world.send("a", from: 0, to: 1)
        try await store.pool.write { db in
            let far = "UPDATE inbox_fresh SET seq = 1 << 40 WHERE user = ?1"
            try db.execute(sql: far, arguments: [user.rawValue])
            try db.execute(sql: "UPDATE inbox_head SET oldest = 2 WHERE user = ?1", arguments: [user.rawValue])
        }
        store.cache.withLock { $0.forget(user) }
        try world.send("b", from: 0, to: 1)
        let cached = store.cache.withLock { $0.inboxes[user] }
        let inbox = try #require(cached)
        #expect(inbox.use.entries == 2 && inbox.head == 2)
        #expect(try await world.inbox(1, after: 1) == ["2:b"])
        try store.close()
    }
}
