// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("Lists of conversations in SQLite", .inTurns)
struct ConversationListTests {
    @Test(arguments: ConversationReader.Query.all)
    func `no query reads other accounts' rows or sorts`(sql: String) async throws {
        let directory = try TemporaryDirectory()
        let plan = try await directory.queryPlan(of: sql)
        #expect(!plan.isEmpty)
        for step in plan { #expect(step.hasPrefix("SEARCH "), "\(plan)") }
        // The first step reads in the order of the list.
        #expect(plan.first?.contains("USING") == true && plan.first?.contains(">?") == true, "\(plan)")
    }

    @Test
    func `in a file of the version before, all that is behind the mark is unread`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 2)
        for sender in [0, 1, 0] { try world.send("text", from: sender, to: 1 - sender) }
        _ = try world.commit(.markRead(world.conversation(0, 1), by: world[0].user, upTo: 1))
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.takeBackConversationLists()
            try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier >= '017'; PRAGMA user_version = 16")
        }
        let again = StoreWorld(store: try directory.openStore(), people: world.people)
        let found = try await again.store.conversations(of: world[0].user, after: nil, limit: 9)
        #expect(found.map(\.unread) == [2] && found.map(\.lastAt) == [nil] && found.map(\.readUpTo) == [1])
        try again.send("text", from: 0, to: 1)
        #expect(try await again.list(0) == ["user:2 2"], "from now on it is known whose messages are")
        #expect(try await again.list(1) == ["user:1 4"])
    }
}
