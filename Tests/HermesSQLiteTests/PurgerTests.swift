// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("Purging")
struct PurgerTests {
    @Test(arguments: Purger.Query.all)
    func `no query reads what it does not delete`(sql: String) async throws {
        let directory = try TemporaryDirectory()
        try directory.openStore().close()
        let plan = try await DatabaseQueue(path: directory.database).read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(sql.replacing("?", with: "1"))")
                .map { $0["detail"] as String }
        }
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
}
