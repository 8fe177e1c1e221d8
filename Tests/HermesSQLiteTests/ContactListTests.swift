// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import GRDBSQLite
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("Lists of contacts in SQLite", .inTurns)
struct ContactListTests {
    private static let strangers = 200

    /// The first person has the last three people in the list: one asks, one is blocked, and one is a friend. `block`
    /// makes all people in between block the first person.
    private func world(_ store: SQLiteStore) async throws -> StoreWorld {
        let world = try await StoreWorld(store: store, people: Self.strangers + 4)
        func contact(_ command: ContactCommand, by person: Int, to other: Int) throws {
            let operation = WriteOperation.contact(command, by: world[person], peer: world[other].user, message: "")
            guard case .eventAppended = try world.commit(operation) else {
                throw ConformanceFailure(description: "refused")
            }
        }
        let last = Self.strangers + 1
        try contact(.request, by: last, to: 0)
        try contact(.block, by: 0, to: last + 1)
        try contact(.request, by: last + 2, to: 0)
        try contact(.accept, by: 0, to: last + 2)
        return world
    }

    private func block(_ world: StoreWorld) throws {
        for stranger in 1...Self.strangers {
            let block = WriteOperation.contact(.block, by: world[stranger], peer: world[0].user, message: "")
            guard case .eventAppended = try world.commit(block) else {
                throw ConformanceFailure(description: "refused")
            }
        }
    }

    private func steps(_ path: String, _ user: UserID) async throws -> (rows: Int, steps: Int) {
        try await DatabaseQueue(path: path).read { db in
            let statement = try db.makeStatement(sql: SocialReader.contactQuery)
            statement.arguments = [Int64(user.rawValue), 0, 99]
            let rows = try Row.fetchAll(statement).count
            return (rows, Int(sqlite3_stmt_status(statement.sqliteStatement, SQLITE_STMTSTATUS_VM_STEP, 0)))
        }
    }

    @Test
    func `A list costs by what stands in it, however many strangers block the account`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await world(store)
        let user = world[0].user
        let before = try await steps(directory.database, user)
        try block(world)
        let after = try await steps(directory.database, user)
        #expect(before.rows == 3 && after.rows == 3)
        #expect(after.steps <= before.steps + 10, "\(before.steps) \(after.steps)")
        let states = try await store.contacts(of: user, after: nil, limit: 99).map(\.state)
        #expect(states == [.incoming, .blocked, .accepted])
        // Accounts that block another account are still found, and have the other account in their own lists.
        let strangers = world.people[1...Self.strangers].map(\.user)
        #expect(try await store.blockers(of: user, among: strangers) == Set(strangers))
        #expect(try await store.contacts(of: strangers[0], after: nil, limit: 9).map(\.state) == [.blocked])
        try store.close()
    }

    @Test
    func `A file of the version before has the same lists`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await world(store)
        try block(world)
        let users = world.people.map(\.user)
        var lists: [[ContactState]] = []
        for user in users { lists.append(try await store.contacts(of: user, after: nil, limit: 9).map(\.state)) }
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.takeBackListsOfContacts()
            try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier >= '019'; PRAGMA user_version = 18")
        }
        let again = try directory.openStore()
        for (user, list) in zip(users, lists) {
            #expect(try await again.contacts(of: user, after: nil, limit: 9).map(\.state) == list)
        }
    }
}
