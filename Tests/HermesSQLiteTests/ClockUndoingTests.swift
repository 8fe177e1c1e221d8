// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

/// A wrong jump of the clock is undone step by step, while commits continue.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ClockUndoingTests {
    private static let year = Duration.seconds(366 * 86_400)
    /// The time that the clock shows after the wrong jump.
    private static let wrong = StoreWorld.later(year)
    private static let jump = ClockJump(since: StoreWorld.later(.seconds(-3_600)), end: StoreWorld.now, length: year)
    private static let setback = ClockSetback(
        length: year,
        since: StoreWorld.later(.seconds(600)),
        now: StoreWorld.later(.seconds(1_200))
    )

    /// Stores a push to each person while the clock is wrong. It expires an hour after it was stored.
    private func pushAtWrongTime(_ world: StoreWorld) throws {
        let push = world.push("sale", lifetime: Self.year + .seconds(3_600))
        let append = PushOperation.append(push, recipients: world.people.map(\.user), claim: nil)
        _ = try world.push(append, at: Self.wrong)
    }

    /// Returns the expiries of the entries that have one, by user.
    private func expiries(_ store: SQLiteStore) async throws -> [Int64: Int64] {
        try await store.pool.read { db in
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT user, expires_at FROM inbox WHERE expires_at IS NOT NULL
                    UNION ALL SELECT user, expires_at FROM inbox_fresh WHERE expires_at IS NOT NULL
                    """
            )
            var found: [Int64: Int64] = [:]
            for row in rows { found[row["user"] as Int64] = row["expires_at"] as Int64 }
            return found
        }
    }

    private func freshRows(_ store: SQLiteStore) async throws -> Int? {
        try await store.pool.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM inbox_fresh") }
    }

    @Test
    func `an entry that a commit between two steps would move is found all the same`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(sweepRows: 4)
        let world = try await StoreWorld(store: store)
        try await store.record(Self.jump)
        try pushAtWrongTime(world)
        #expect(try await freshRows(store) == 2)
        let batch = ["a", "b"].map { WriteOperation.append(world.message($0, from: 0, to: 1)) }
        // The writer runs this commit after the step that reads the settled entries, and before the next step.
        try await store.pool.writeWithoutTransaction { db in
            db.trace { event in
                guard case .statement(let statement) = event else { return }
                guard statement.sql.contains("FROM inbox WHERE expires_at") else { return }
                store.pool.asyncWriteWithoutTransaction { db in
                    _ = try? store.commitBatch(batch, taking: { _ in nil }, now: StoreWorld.now, in: db)
                }
            }
        }
        try await store.takeBack(Self.setback)
        try await store.pool.writeWithoutTransaction { $0.trace(nil) }
        let right = StoreWorld.later(.seconds(3_600)).rawValue
        #expect(try await expiries(store) == [1: right, 2: right])
        #expect(try await world.inbox(1) == ["1:push sale", "2:a", "3:b"])
        // The next commit moves the remaining rows.
        #expect(try await freshRows(store) == 6)
        try world.send("c", from: 0, to: 1)
        #expect(try await freshRows(store) == 0)
        try store.close()
    }

    @Test func `too many rows do not stay fresh, however long the steps take`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(sweepRows: 1)
        let world = try await StoreWorld(store: store)
        store.keepsFresh.store(true, ordering: .relaxed)
        for number in 1...7 { try world.send("\(number)", from: 0, to: 1) }
        #expect(try await freshRows(store) == 14)
        try world.send("8", from: 0, to: 1)
        #expect(try await freshRows(store) == 0)
        try world.send("9", from: 0, to: 1)
        #expect(try await freshRows(store) == 2)
        store.keepsFresh.store(false, ordering: .relaxed)
        try world.send("10", from: 0, to: 1)
        #expect(try await freshRows(store) == 0)
        #expect(try await world.inbox(1).count == 10)
        try store.close()
    }

    @Test func `damaged entries do not hold up the others`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 3)
        try await store.record(Self.jump)
        try pushAtWrongTime(world)
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE inbox_fresh SET expires_at = \(Int64.max) WHERE user = 1")
            try db.execute(sql: "UPDATE inbox_fresh SET user = 1 << 40 WHERE user = 2")
        }
        try await store.takeBack(Self.setback)
        let found = try await expiries(store)
        #expect(found[3] == StoreWorld.later(.seconds(3_600)).rawValue)
        #expect(found[1 << 40] == Self.wrong.advanced(by: .seconds(3_600)).rawValue, "unchanged")
        try store.close()
    }
}
