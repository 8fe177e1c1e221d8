// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

/// A publication that was sent before it expired stays, but must not be read again by each purge.
@Suite("Purging the queues of sessions", .inTurns)
struct SessionPurgerTests {
    private let late = StoreWorld.later(.seconds(2))

    /// The number of rows that a purge without a limit would read.
    private func due(_ store: SQLiteStore) async throws -> Int {
        let now = late.rawValue
        let counts = try await store.pool.read { db in
            try FreshTables.queue.both.map { table in
                let sql = "SELECT count(*) FROM \(table) WHERE \(QueueExpiry.isDue)"
                return try Int.fetchOne(db, sql: sql, arguments: [now]) ?? -1
            }
        }
        return counts.reduce(0, +)
    }

    /// - Parameter settled: the number of publications in the permanent table; the others are in the fresh table.
    @Test(arguments: [0, 15, 40])
    func `what was sent before it expired is met once, a bounded amount at a time`(_ settled: Int) async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = SessionWorld(store)
        let ids = try ["a", "b"].map { try world.open($0).id }
        let soon = PublicationDetails(expiresAt: StoreWorld.later(.seconds(1)))
        let targets = ids.map { PublicationTarget(session: $0, qos: .atLeastOnce) }
        for number in 1...40 {
            try world.publish(world.publication("\(number)", topic: "t", soon), targets)
            guard number == settled else { continue }
            try await store.pool.write { try SessionWriter.settle($0) }
        }
        try world.publish(world.publication("waiting", topic: "t", soon), [targets[1]])
        for id in ids { try world.change(.close(id, sentUpTo: 40, expiresAt: nil)) }
        #expect(try await due(store) == 81)
        #expect(try await store.purgeSessions(now: late, limit: 7) == 7)
        #expect(try await due(store) == 74)
        try await world.purge(at: late, limit: 7)
        #expect(try await due(store) == 0)
        #expect(try await store.purgeSessions(now: late.advanced(by: .seconds(9)), limit: 1000) == 0)
        for id in ids {
            let queued = try await store.queued(of: id, after: 0, limit: 100, maxBytes: .max)
            #expect(queued.map(\.seq) == Array(1...40))
            #expect(queued.allSatisfy { $0.publication.details?.expiresAt == soon.expiresAt })
        }
        #expect(try await store.sessions().map(\.queuedCount) == [40, 40])
        try store.close()
    }
}
