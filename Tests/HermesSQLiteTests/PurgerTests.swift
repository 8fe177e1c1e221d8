// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

@Suite("Purging", .inTurns)
struct PurgerTests {
    @Test(arguments: Purger.Query.all)
    func `no query reads what it does not delete`(sql: String) async throws {
        let directory = try TemporaryDirectory()
        let plan = try await directory.queryPlan(of: sql)
        #expect(!plan.isEmpty)
        for step in plan where !step.hasPrefix("LIST SUBQUERY") {
            let isIndexOfWork = step.hasPrefix("SCAN inbox_head USING") && step.hasSuffix("INDEX inbox_purgeable")
            #expect(step.hasPrefix("SEARCH ") || isIndexOfWork, "\(step)")
        }
    }

    @Test
    func `a record goes with its client id, wherever both lie`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        for index in 0..<20 { try world.send("\(index)", from: 0, to: 1, clientID: "c\(index)") }
        for person in 0...1 { try world.acknowledge(person) }
        try await world.purge(at: StoreWorld.later(.seconds(3600)), limit: 7)
        try await world.purge(at: StoreWorld.later(.seconds(25 * 3600)), limit: 7)
        try store.close()
        let counts = try await DatabaseQueue(path: directory.database).read { db in
            try ["message", "client_id", "client_id_fresh", "inbox", "inbox_fresh"].map { table in
                try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? -1
            }
        }
        #expect(counts == [0, 0, 0, 0, 0])
    }

    @Test
    func `an inbox is not counted again after a purge, because the purge subtracts what it deletes`() async throws {
        let directory = try TemporaryDirectory()
        let budget = InboxBudget(maxEntries: 200, maxBytes: 1 << 20)
        let store = try directory.openStore(settings: StoreSettings(inbox: budget))
        let world = try await StoreWorld(store: store, people: 4)
        let create = GroupCommand.create(name: "group", members: (1...3).map { world[$0].user })
        guard case .groupChanged(let made, _) = try world.commit(.group(create, by: world[0].user)) else {
            throw ConformanceFailure(description: "no group")
        }
        let group = made.id
        var generator = SplitMix(state: 5)
        var checks = 0
        for round in 0..<40 {
            for _ in 0..<20 {
                let sender = Int.random(in: 1...3, using: &generator)
                let lifetime: Duration? = Bool.random(using: &generator) ? .seconds(60) : nil
                if Bool.random(using: &generator) {
                    _ = try? world.send("text", from: sender, to: 0, lifetime: lifetime)
                } else {
                    _ = try? world.commit(.append(world.message("text", from: sender, to: group)))
                }
            }
            let head = try await store.position(of: world[0].user).head
            try world.acknowledge(0, upTo: head - min(head, UInt64.random(in: 5...60, using: &generator)))
            let now = round % 5 == 4 ? StoreWorld.later(.seconds(61 * round)) : StoreWorld.now
            _ = try await store.purge(now: now, limit: 7)
            let user = world[0].user
            let cached = try #require(store.cache.withLock { $0.inboxes[user] })
            let rows = try await store.pool.read { db in
                try Row.fetchAll(
                    db,
                    sql: """
                        SELECT seq, source, weight FROM inbox WHERE user = ?1 UNION ALL
                        SELECT seq, source, weight FROM inbox_fresh WHERE user = ?1
                        """,
                    arguments: [user.rawValue]
                )
                .map { (seq: $0["seq"] as Int64, source: $0["source"] as Int64, weight: $0["weight"] as Int) }
            }
            func holding(_ isCounted: (Int64) -> Bool) -> Holding {
                rows.reduce(into: Holding()) { if isCounted($1.source) { $0.add($1.weight) } }
            }
            #expect(cached.use == holding { _ in true })
            #expect(cached.oldest == rows.map(\.seq).min().map { UInt64($0) } ?? cached.head + 1)
            guard let shares = cached.shares else { continue }
            checks += 1
            var found = InboxShares()
            for row in rows { found.add(row.weight, from: row.source) }
            #expect(shares == found)
            var sources: [EntrySource] = [.server, .group(group, by: nil)]
            for person in world.people { sources += [.user(person.user), .group(group, by: person.user)] }
            for source in sources {
                let expected = holding { source.numbers.contains($0) || Self.formerNumber(of: source) == $0 }
                #expect(shares[source] == expected, "\(source)")
            }
        }
        #expect(checks >= 20, "\(checks)")
        try store.close()
    }

    /// Returns the form in which older versions stored a group's messages, without the member; nil for other sources.
    private static func formerNumber(of source: EntrySource) -> Int64? {
        if case .group(let group, nil) = source { -Int64(group.rawValue) } else { nil }
    }

    @Test
    func `nothing stays of a dissolved group, and nothing of what another group has goes`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 3)
        func group() throws -> GroupID {
            let create = GroupCommand.create(name: "group", members: [world[1].user, world[2].user])
            guard case .groupChanged(let made, _) = try world.commit(.group(create, by: world[0].user)) else {
                throw ConformanceFailure(description: "no group")
            }
            _ = try world.commit(.append(world.message("text", from: 0, to: made.id)))
            for person in 1...2 {
                _ = try world.commit(.markRead(.group(made.id), by: world[person].user, upTo: 1))
            }
            return made.id
        }
        func counts() async throws -> [Int] {
            try await store.pool.read { db in
                try ["conversation", "conversation_gone", "read_mark", "message"].map { table in
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? -1
                }
            }
        }
        let (gone, kept) = (try group(), try group())
        _ = try world.commit(.group(.leave(gone), by: world[2].user))
        #expect(try await counts() == [2, 0, 3, 2])
        _ = try world.commit(.group(.dissolve(gone), by: world[0].user))
        #expect(try await counts() == [2, 1, 2, 2])
        // The dissolved group's message still waits in the inboxes, so its conversation stays.
        try await world.purge(at: StoreWorld.later(.seconds(60)), limit: 100)
        #expect(try await counts() == [2, 1, 2, 2])
        for person in 0...2 { try world.acknowledge(person) }
        try await world.purge(at: StoreWorld.later(.seconds(60)), limit: 100)
        try await world.purge(at: StoreWorld.later(.seconds(25 * 3600)), limit: 100)
        try await world.purge(at: StoreWorld.later(.seconds(26 * 3600)), limit: 100)
        #expect(try await counts() == [1, 0, 2, 0])
        let receipt = try world.commit(.append(world.message("again", from: 0, to: kept)))
        guard case .appended(let sent, _) = receipt else { throw ConformanceFailure(description: "not sent") }
        #expect(sent.conversationSeq == 2)
    }

    @Test
    func `an older file's dissolved groups and left marks are found`() async throws {
        let directory = try TemporaryDirectory()
        var store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 2)
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.takeBackGoneConversations()
            try db.execute(
                sql: """
                    DELETE FROM grdb_migrations WHERE identifier >= '027'; PRAGMA user_version = 26;
                    INSERT INTO conversation (id, kind, a, b, last_seq) VALUES (7, 2, 77, 0, 1), (8, 2, 88, 0, 1),
                        (9, 1, 1, 2, 1);
                    INSERT INTO chat_group (id, name, avatar_url, is_muted, created_at) VALUES (88, 'g', '', 0, 0);
                    """
            )
            for (user, conversation) in [(0, 7), (0, 8), (1, 8), (0, 9)] {
                try db.execute(
                    sql: "INSERT INTO read_mark (user, conversation, seq) VALUES (?, ?, 1)",
                    arguments: [world[user].user.rawValue, conversation]
                )
            }
            try db.execute(
                sql: """
                    INSERT INTO group_member (group_id, user, role, muted_until, joined_after) VALUES (88, ?, 1, 0, 0)
                    """,
                arguments: [world[1].user.rawValue]
            )
        }
        store = try directory.openStore()
        let found = try await store.pool.read { db in
            (
                try Int.fetchAll(db, sql: "SELECT conversation FROM conversation_gone"),
                try Row.fetchAll(db, sql: "SELECT user, conversation FROM read_mark ORDER BY conversation")
                    .map { [$0["user"] as Int32, $0["conversation"]] }
            )
        }
        #expect(found.0 == [7])
        #expect(found.1 == [[world[1].user.rawValue, 8], [world[0].user.rawValue, 9]])
        try store.close()
    }
}
