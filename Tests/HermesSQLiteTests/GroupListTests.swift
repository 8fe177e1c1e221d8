// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import GRDBSQLite
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("Lists of groups in SQLite", .inTurns)
struct GroupListTests {
    private static let groups = 30
    private static let members = 40

    /// Creates a world in which the first person owns small groups. The second person owns the same number of large
    /// groups.
    private func world(_ store: SQLiteStore) async throws -> StoreWorld {
        let world = try await StoreWorld(store: store, people: Self.members + 1)
        let others = world.people.dropFirst(2).map(\.user)
        for (owner, members) in [(0, Array(others.prefix(1))), (1, others)] {
            for _ in 0..<Self.groups {
                let create = GroupCommand.create(name: "g", members: members)
                guard case .groupChanged = try world.commit(.group(create, by: world[owner].user)) else {
                    throw ConformanceFailure(description: "refused")
                }
            }
        }
        return world
    }

    /// The number of virtual machine steps that SQLite needs for a query.
    private func steps(
        _ sql: String,
        _ arguments: StatementArguments,
        _ db: Database
    ) throws -> (rows: Int, steps: Int) {
        let statement = try db.makeStatement(sql: sql)
        statement.arguments = arguments
        let rows = try Row.fetchAll(statement).count
        return (rows, Int(sqlite3_stmt_status(statement.sqliteStatement, SQLITE_STMTSTATUS_VM_STEP, 0)))
    }

    @Test
    func `a list costs by its groups, whatever their members`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await world(store)
        let lists = try await [0, 1].asyncMap { try await store.groups(of: world[$0].user, after: nil, limit: 99) }
        #expect(lists.map { Set($0.map(\.memberCount)) } == [[2], [Self.members]])
        let users = [world[0].user, world[1].user].map { Int64($0.rawValue) }
        try store.close()
        try await DatabaseQueue(path: directory.database).read { db in
            let (small, large) = (
                try steps(SocialReader.GroupQuery.ofUser, [users[0], 0, 99], db),
                try steps(SocialReader.GroupQuery.ofUser, [users[1], 0, 99], db)
            )
            #expect(small.rows == Self.groups && large.rows == Self.groups)
            #expect(large.steps <= small.steps + Self.groups, "\(small.steps) \(large.steps)")
            let last = try #require(try Int64.fetchOne(db, sql: "SELECT max(id) FROM chat_group"))
            let half = last - Int64(Self.groups)
            let (first, second) = (
                try steps(SocialReader.GroupQuery.named, [0, half, "", 99], db),
                try steps(SocialReader.GroupQuery.named, [half, last, "", 99], db)
            )
            #expect(first.rows == Self.groups && second.rows == Self.groups)
            #expect(second.steps <= first.steps + Self.groups, "\(first.steps) \(second.steps)")
        }
    }

    @Test
    func `the number of members follows every change, and is right in a file of the version before`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 4)
        let users = world.people.map(\.user)
        func count(_ world: StoreWorld) async throws -> [Int] {
            try await world.store.groups(of: users[0], after: nil, limit: 9).map(\.memberCount)
        }
        let create = GroupCommand.create(name: "g", members: [users[1]])
        guard case .groupChanged(let group, _) = try world.commit(.group(create, by: users[0])) else {
            throw ConformanceFailure(description: "refused")
        }
        #expect(try await count(world) == [2])
        let changes: [(GroupCommand, UserID, Int)] = [
            (.changeMembers(group.id, MemberChanges(added: [users[2], users[3]])), users[0], 4),
            (.changeMembers(group.id, MemberChanges(removed: [users[1]])), users[0], 3),
            (.leave(group.id), users[3], 2),
        ]
        for (command, user, expected) in changes {
            guard case .groupChanged = try world.commit(.group(command, by: user)) else {
                throw ConformanceFailure(description: "refused")
            }
            #expect(try await count(world) == [expected])
        }
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.takeBackNumbersOfMembers()
            try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier >= '018'; PRAGMA user_version = 17")
        }
        let again = StoreWorld(store: try directory.openStore(), people: world.people)
        #expect(try await count(again) == [2])
        while case .deleted(_, isDone: false) = try again.commit(.deleteAccount(users[2])) {}
        #expect(try await count(again) == [1])
    }
}

extension Array {
    fileprivate func asyncMap<Result>(_ transform: (Element) async throws -> Result) async rethrows -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await transform(element)) }
        return results
    }
}
