// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import GRDBSQLite
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

/// Counting the entries of an inbox delays the writer. So each transaction writes the counts together with the entries.
@Suite("The counts of inboxes", .inTurns)
struct InboxCountsTests {
    /// Checks that the counts of all inboxes, in the table and in the cache, match their rows.
    private func check(_ store: SQLiteStore) async throws {
        let rows = try await store.pool.read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT h.user, h.entries, h.bytes, count(e.user) AS found, coalesce(sum(e.weight), 0) AS weight
                    FROM inbox_head h LEFT JOIN (
                        SELECT user, weight FROM inbox UNION ALL SELECT user, weight FROM inbox_fresh) e
                    ON e.user = h.user GROUP BY h.user
                    """
            )
            .map { row in
                (
                    user: row["user"] as Int,
                    stored: Holding(entries: row["entries"], bytes: row["bytes"]),
                    found: Holding(entries: row["found"], bytes: row["weight"])
                )
            }
        }
        for row in rows {
            #expect(row.stored == row.found, "user \(row.user)")
            let user = try #require(UserID(row.user))
            let cached = store.cache.withLock { $0.inboxes[user]?.use }
            #expect(cached == nil || cached == row.found, "user \(row.user)")
        }
        #expect(!rows.isEmpty)
    }

    /// Checks the counts that the store has made when it was opened.
    private func checkUnread(_ store: SQLiteStore, _ world: StoreWorld) async throws {
        let rows = try await store.pool.read { db in
            try Row.fetchAll(
                db,
                sql: "SELECT user, source, weight FROM inbox UNION ALL SELECT user, source, weight FROM inbox_fresh"
            )
            .map { (user: $0["user"] as Int64, source: $0["source"] as Int64, weight: $0["weight"] as Int) }
        }
        for person in world.people {
            let number = Int64(person.user.rawValue)
            let expected = rows.filter { $0.source == number && $0.user != number }.reduce(0) { $0 + $1.weight }
            #expect(store.unread[person.user] == expected, "\(number)")
        }
        let all = rows.reduce(into: Holding()) { $0.add($1.weight) }
        #expect(store.inboxes.now.holding == all)
    }

    /// A batch of random operations of eight people. The last two may be deleted.
    private func batch(
        _ world: StoreWorld,
        _ group: GroupID,
        at now: Timestamp,
        deleting: Bool,
        _ random: inout SplitMix
    ) -> [WriteOperation] {
        var batch: [WriteOperation] = []
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            let one = Int.random(in: 0..<8, using: &random)
            let other = Int.random(in: 0..<8, using: &random)
            let text = String(repeating: "x", count: Int.random(in: 0..<50, using: &random))
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<4:
                let lifetime: Duration? = Bool.random(using: &random) ? .seconds(50) : nil
                batch.append(.append(world.message(text, from: one, to: other, at: now, lifetime: lifetime)))
            case 4..<6:
                batch.append(.append(world.message(text, from: one % 4, to: group)))
            case 6..<8:
                let push = world.push(text, collapseKey: Bool.random(using: &random) ? "key" : "")
                let recipients = one == other ? [one] : [one, other]
                batch.append(.push(.append(push, recipients: recipients.map { world[$0].user }, claim: nil)))
            case 8..<10:
                let seq = UInt64.random(in: 0..<300, using: &random)
                batch.append(.acknowledge(world[one].user, StoreWorld.phone, upTo: seq))
            case 10:
                batch.append(.contact(.request, by: world[one], peer: world[other].user, message: text))
            default:
                guard deleting else { continue }
                batch.append(.deleteAccount(world[one < 4 ? 6 : 7].user))
            }
        }
        return batch
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func `whatever is sent, pushed, acknowledged, purged, swept and deleted, they are those of the rows`(
        seed: UInt64
    ) async throws {
        var random = SplitMix(state: seed)
        let directory = try TemporaryDirectory()
        let settings = StoreSettings(
            recordPeriod: .seconds(300),
            eventPeriod: .seconds(200),
            inbox: InboxBudget(maxEntries: 60, maxBytes: 1 << 20)
        )
        var store = try directory.openStore(settings: settings, sweepRows: 100)
        let devices = [StoreWorld.phone, StoreWorld.tablet]
        var world = try await StoreWorld(store: store, people: 8, devices: devices)
        let create = GroupCommand.create(name: "group", members: (1..<4).map { world[$0].user })
        guard case .groupChanged(let group, _) = try world.commit(.group(create, by: world[0].user)) else {
            throw ConformanceFailure(description: "no group")
        }
        var now = StoreWorld.now
        for round in 0..<200 {
            now = now.advanced(by: .seconds(Int.random(in: 0...10, using: &random)))
            let operations = batch(world, group.id, at: now, deleting: round > 150, &random)
            _ = try store.commit(operations, now: now)
            switch Int.random(in: 0..<8, using: &random) {
            case 0..<3:
                _ = try await store.purge(now: now, limit: Int.random(in: 1...40, using: &random))
            case 3:
                let user = world[Int.random(in: 0..<6, using: &random)].user
                try await store.revoke(.device(StoreWorld.tablet, of: user), now: now)
            case 4 where round % 3 == 0:
                try store.close()
                store = try directory.openStore(settings: settings, sweepRows: 100)
                world = StoreWorld(store: store, people: world.people)
                try await checkUnread(store, world)
            default:
                break
            }
            try await check(store)
        }
        try store.close()
    }

    @Test
    func `a file of the version before gets them`() async throws {
        let directory = try TemporaryDirectory()
        let before = try directory.openStore()
        let people = try await StoreWorld(store: before, people: 3).people
        for number in 0..<5 { try StoreWorld(store: before, people: people).send("\(number)", from: 0, to: 1) }
        try before.close()
        // The earlier entries are in the permanent table. The later entries are in the fresh table.
        let second = try directory.openStore()
        for number in 0..<4 { try StoreWorld(store: second, people: people).send("\(number)", from: 2, to: 1) }
        try second.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.takeBackCountsOfInboxes()
            try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier >= '028'; PRAGMA user_version = 27")
        }
        let store = try directory.openStore()
        try await check(store)
        let entries = try await store.pool.read { db in
            try Int.fetchAll(db, sql: "SELECT entries FROM inbox_head ORDER BY user")
        }
        #expect(entries == [5, 9, 4])
        try store.close()
    }

    @Test(arguments: ["entries", "bytes"], [Int64.max, .min, -1])
    func `counts that cannot be are replaced by those of the rows`(_ column: String, _ number: Int64) async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        let user = world[1].user
        func damage() async throws {
            try await store.pool.write { db in
                try db.execute(
                    sql: "UPDATE inbox_head SET \(column) = ? WHERE user = ?",
                    arguments: [number, user.rawValue]
                )
            }
        }
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        try await damage()
        store.cache.withLock { $0.forget(user) }
        try world.send("d", from: 0, to: 1)
        try await check(store)
        try world.acknowledge(1, upTo: 2)
        try await damage()
        try await world.purge()
        try await check(store)
        try store.close()
    }

    @Test
    func `counts that are too high end with the inbox`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        for person in 0...1 { try world.acknowledge(person) }
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE inbox_head SET entries = entries + 5, bytes = bytes + 700")
        }
        try await world.purge()
        try await check(store)
        try store.close()
    }

    private final class Counter {
        var count = 0
    }

    /// The steps that SQLite takes on the writer while `body` runs.
    private func steps(_ store: SQLiteStore, _ body: () throws -> Void) throws -> Int {
        let counter = Counter()
        let pointer = Unmanaged.passUnretained(counter).toOpaque()
        store.pool.writeWithoutTransaction { db in
            sqlite3_progress_handler(
                db.sqliteConnection,
                1,
                { pointer in
                    if let pointer { Unmanaged<Counter>.fromOpaque(pointer).takeUnretainedValue().count += 1 }
                    return 0
                },
                pointer
            )
        }
        defer {
            withExtendedLifetime(counter) {
                store.pool.writeWithoutTransaction { sqlite3_progress_handler($0.sqliteConnection, 0, nil, nil) }
            }
        }
        try body()
        return counter.count
    }

    @Test
    func `after a start, an inbox with many entries costs a message no more than one with few`() async throws {
        let directory = try TemporaryDirectory()
        let before = try directory.openStore()
        let people = try await StoreWorld(store: before, people: 4).people
        let filling = StoreWorld(store: before, people: people)
        let batch = (0..<20_000).map { _ in WriteOperation.append(filling.message("x", from: 0, to: 1)) }
        _ = try before.commit(batch, now: StoreWorld.now)
        try before.close()
        let store = try directory.openStore()
        let world = StoreWorld(store: store, people: people)
        let few = try steps(store) { try world.send("x", from: 2, to: 3) }
        let many = try steps(store) { try world.send("x", from: 2, to: 1) }
        #expect(few > 0 && many <= few + 200, "\(few) \(many)")
        let entries = store.cache.withLock { $0.inboxes[people[1].user]?.use.entries }
        #expect(entries == 20_001)
        try store.close()
    }

    @Test
    func `a message to a group counts a part of the members' inboxes by source, the next ones the rest`() async throws {
        let directory = try TemporaryDirectory()
        // The shares of members are checked in inboxes with an eighth of the limit or more, which is 10,000 entries.
        let settings = StoreSettings(inbox: InboxBudget(maxEntries: 80_000))
        let before = try directory.openStore(settings: settings)
        let people = try await StoreWorld(store: before, people: 6).people
        let filling = StoreWorld(store: before, people: people)
        let create = GroupCommand.create(name: "group", members: people.dropFirst().map(\.user))
        guard case .groupChanged(let made, _) = try filling.commit(.group(create, by: people[0].user)) else {
            throw ConformanceFailure(description: "no group")
        }
        let group = made.id
        let batch = (0..<10_000).map { WriteOperation.append(filling.message("x", from: $0 % 2, to: group)) }
        _ = try before.commit(batch, now: StoreWorld.now)
        try before.close()

        let store = try directory.openStore(settings: settings)
        let world = StoreWorld(store: store, people: people)
        var counted: [Int] = []
        for _ in 0..<3 {
            let read = try await store.statements {
                let outcome = try world.commit(.append(world.message("x", from: 0, to: group)))
                guard case .appended(_, let deliveries) = outcome else {
                    throw ConformanceFailure(description: "\(outcome)")
                }
                #expect(deliveries.count == 6)
            }
            counted.append(read.count { $0.contains("SELECT source, weight FROM inbox WHERE") })
        }
        // After three inboxes of 10,000 entries, the message has reached the limit of counted entries.
        #expect(BatchWriter.maxCounted == 25_000 && counted == [3, 3, 0], "\(counted)")
        try store.close()
    }

    /// A full inbox needs no count, so it must not use up the number of entries that a message may count.
    @Test
    func `a full inbox of a member does not lift the limits of the other members`() async throws {
        let directory = try TemporaryDirectory()
        let before = try directory.openStore(settings: StoreSettings(inbox: InboxBudget(maxEntries: 1_000_000)))
        let people = try await StoreWorld(store: before, people: 4).people
        let filling = StoreWorld(store: before, people: people)
        let create = GroupCommand.create(name: "group", members: [people[2].user, people[3].user])
        guard case .groupChanged(let made, _) = try filling.commit(.group(create, by: people[0].user)) else {
            throw ConformanceFailure(description: "no group")
        }
        var batch = (0..<26_000).map { _ in WriteOperation.append(filling.message("x", from: 1, to: 0)) }
        batch += (0..<7_000).map { _ in WriteOperation.append(filling.message("x", from: 2, to: made.id)) }
        _ = try before.commit(batch, now: StoreWorld.now)
        try before.close()

        // The sender's inbox is full. The group has more than a quarter of each other inbox.
        let store = try directory.openStore(settings: StoreSettings(inbox: InboxBudget(maxEntries: 26_000)))
        let world = StoreWorld(store: store, people: people)
        for _ in 0..<2 {
            let outcome = try world.commit(.append(world.message("x", from: 0, to: made.id)))
            #expect(outcome.deliveries.isEmpty, "\(outcome)")
        }
        try store.close()
    }

    @Test
    func `a cache that is full forgets a part of it`() throws {
        var cache = WriterCache()
        let users = (1...WriterCache.maxEntries + 1).compactMap { UserID($0) }
        for user in users {
            cache.inboxes[user] = WriterCache.Inbox(head: 0, oldest: 1, acknowledged: 0)
        }
        for user in users.prefix(1_000) { cache.keep(InboxShares(), of: user) }
        cache.trim()
        #expect(cache.inboxes.count == WriterCache.maxEntries / 2 + 1)
        let size = cache.inboxes.values.reduce(0) { $0 + ($1.shares?.size ?? 0) }
        #expect(cache.sharesSize == size)
        cache.trim()
        #expect(cache.inboxes.count == WriterCache.maxEntries / 2 + 1)
    }

    @Test(arguments: FreshTables.inbox.both.map(UnreadLedger.entriesSQL) + [SQLiteStore.deletionsSQL])
    func `no statement of the start sorts rows, or reads all accounts`(sql: String) async throws {
        let directory = try TemporaryDirectory()
        let plan = try await directory.queryPlan(of: sql)
        #expect(!plan.isEmpty && !plan.contains { $0.contains("TEMP B-TREE") }, "\(plan)")
        for step in plan where step.contains("account") { #expect(step.contains("account_leaving"), "\(step)") }
    }
}
