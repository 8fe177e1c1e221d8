// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

/// A damaged row stays, and must not keep other rows from being deleted.
@Suite("Purging beside damaged rows", .inTurns)
struct PurgeDamageTests {
    private static let late = StoreWorld.later(.seconds(61))

    /// Numbers that cannot belong to a user.
    private static let noUsers: [Int64] = [0, -1, .min, 1 << 31, .max]

    private func open(_ directory: TemporaryDirectory) async throws -> (SQLiteStore, StoreWorld) {
        let store = try directory.openStore(settings: StoreSettings(eventPeriod: .seconds(60)))
        return (store, try await StoreWorld(store: store, people: 4))
    }

    /// Checks that expired entries of the last person, and an expired publication, are deleted.
    private func checkPurge(_ store: SQLiteStore, _ world: StoreWorld) async throws {
        try world.send("text", from: 2, to: 3, lifetime: .seconds(60))
        let request = WriteOperation.contact(.request, by: world[2], peer: world[3].user, message: "")
        _ = try world.commit(request)
        let sessions = SessionWorld(store)
        let id = try sessions.open("c", expiry: nil).id
        let soon = PublicationDetails(expiresAt: StoreWorld.later(.seconds(60)))
        let publication = sessions.publication("text", topic: "t", soon)
        try sessions.publish(publication, [PublicationTarget(session: id, qos: .atLeastOnce)])
        let messenger = Messenger(over: store, time: ManualClock(now: Self.late))
        try await messenger.housekeeping(now: Self.late, batch: 3)
        #expect(try await world.inbox(3) == ["1-2:hole"])
        #expect(try await sessions.queue(id).isEmpty)
        // Nothing is left to do, although the damaged row is still there.
        try await world.purge(at: Self.late, limit: 3)
        await messenger.shutdown()
        try store.close()
    }

    @Test(arguments: [Int64.max, (1 << 60) + 1, 1_000, -1, .min])
    func `an entry with a seq that cannot be`(_ seq: Int64) async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory)
        try world.send("a", from: 0, to: 1)
        try world.send("b", from: 0, to: 1)
        try world.send("c", from: 0, to: 1, lifetime: .seconds(60))
        try await store.pool.write { db in
            try db.execute(
                sql: "UPDATE inbox_fresh SET seq = ? WHERE user = ? AND seq = 1",
                arguments: [seq, world[1].user.rawValue]
            )
        }
        if seq > 0 { try world.acknowledge(1, upTo: 2) }
        try await checkPurge(store, world)
        let oldest = try await DatabaseQueue(path: directory.database).read { db in
            try Int64.fetchOne(
                db,
                sql: "SELECT oldest FROM inbox_head WHERE user = ?",
                arguments: [world[1].user.rawValue]
            )
        }
        // The second entry is not acknowledged if the first one could be deleted with it.
        #expect(oldest == (seq > 0 ? 4 : 2))
    }

    @Test(
        arguments: [
            "UPDATE inbox_fresh SET user = ? WHERE user = 2", "INSERT INTO inbox_gone (user) VALUES (?)",
            "UPDATE inbox_head SET user = ?, acknowledged = head WHERE user = 2",
        ],
        noUsers
    )
    func `a row of a user that cannot be`(_ damage: String, _ user: Int64) async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory)
        let request = WriteOperation.contact(.request, by: world[0], peer: world[1].user, message: "")
        _ = try world.commit(request)
        try await store.pool.write { db in try db.execute(sql: damage, arguments: [user]) }
        try await checkPurge(store, world)
    }

    @Test
    func `more of them than one step looks at`() async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory)
        try await store.pool.write { db in
            for user in -9...0 {
                try db.execute(
                    sql: """
                        INSERT INTO inbox_fresh (user, seq, kind, committed_at, expires_at, payload)
                        VALUES (?1, 1, 1, 0, 0, x'');
                        INSERT INTO inbox_head (user, head, oldest, acknowledged) VALUES (?1, 1, 1, 1);
                        INSERT INTO inbox_gone (user) VALUES (?1);
                        """
                        .replacing("?1", with: "\(user)")
                )
            }
        }
        try await checkPurge(store, world)
    }

    @Test(arguments: ["sender = 0", "refs = 1 << 40", "refs = \(Int64.max)"])
    func `expired messages, more than one step looks at`(_ damage: String) async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory)
        for number in 0..<10 { try world.send("\(number)", from: 0, to: 1, lifetime: .seconds(30)) }
        try await store.pool.write { db in try db.execute(sql: "UPDATE message SET \(damage)") }
        try await checkPurge(store, world)
    }

    @Test(arguments: [1, Int64.max, .min])
    func `a record of a message with references that cannot be`(_ references: Int64) async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory)
        try world.send("a", from: 0, to: 1)
        for person in 0...1 { try world.acknowledge(person) }
        try await world.purge()
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE message SET refs = ?, due = 0", arguments: [references])
        }
        try await checkPurge(store, world)
    }

    @Test
    func `a record of a message without a sender`() async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory)
        try world.send("a", from: 0, to: 1)
        for person in 0...1 { try world.acknowledge(person) }
        try await world.purge()
        try await store.pool.write { db in try db.execute(sql: "UPDATE message SET sender = 0, due = 0") }
        try await checkPurge(store, world)
    }
}
