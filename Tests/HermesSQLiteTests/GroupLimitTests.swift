// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Testing

@testable import HermesSQLite

@Suite("In how many groups one may be", .inTurns)
struct GroupLimitTests {
    /// Creates a world with three people.
    private func world(_ settings: StoreSettings, in directory: TemporaryDirectory?) async throws -> StoreWorld {
        if let directory { return try await StoreWorld(store: directory.openStore(settings: settings), people: 3) }
        return try await StoreWorld(store: MemoryStore(settings: settings), people: 3)
    }

    private func makeContacts(_ one: Int, _ other: Int, in world: StoreWorld) throws {
        _ = try world.commit(.contact(.request, by: world[one], peer: world[other].user, message: ""))
        _ = try world.commit(.contact(.accept, by: world[other], peer: world[one].user, message: ""))
    }

    @Test(arguments: [false, true])
    func `nobody joins more groups than the limit says, by whatever way`(isInMemory: Bool) async throws {
        let directory = try TemporaryDirectory()
        let settings = StoreSettings(maxGroups: 2)
        let world = try await world(settings, in: isInMemory ? nil : directory)
        func create(_ person: Int, with members: [Int]) throws -> WriteOutcome {
            let create = GroupCommand.create(name: "g", members: members.map { world[$0].user })
            return try world.commit(.group(create, by: world[person].user))
        }
        guard case .groupChanged(let first, _) = try create(0, with: [1]), case .groupChanged = try create(0, with: []),
            case .groupChanged = try create(1, with: [])
        else { throw ConformanceFailure(description: "refused") }
        // The limit applies to owners, to members from the beginning, and to added members.
        for outcome in [try create(0, with: []), try create(2, with: [1])] {
            guard case .refused(let error) = outcome else { throw ConformanceFailure(description: "\(outcome)") }
            #expect(error.code == .tooLarge)
        }
        guard case .groupChanged(let other, _) = try create(2, with: []) else {
            throw ConformanceFailure(description: "refused")
        }
        let add = GroupCommand.changeMembers(other.id, MemberChanges(added: [world[1].user]))
        #expect(try world.refusal(.group(add, by: world[2].user)) == .tooLarge)
        // Within the limit, all commands work as before.
        try makeContacts(0, 2, in: world)
        let change = GroupCommand.changeMembers(first.id, MemberChanges(added: [world[2].user]))
        guard case .groupChanged = try world.commit(.group(change, by: world[0].user)) else {
            throw ConformanceFailure(description: "refused")
        }
    }

    @Test
    func `the number of an account's groups follows every change, and is right in a file of the version before`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 4)
        let users = world.people.map(\.user)
        func isRight(_ store: SQLiteStore, _ counts: [Int]) async throws -> Bool {
            try await store.pool.read { db in
                try users.map { user in
                    let numbers = try ["SELECT groups FROM groups_of_user", "SELECT count(*) FROM group_member"].map {
                        try Int.fetchOne(db, sql: "\($0) WHERE user = ?", arguments: [user.rawValue]) ?? 0
                    }
                    return numbers[0] == numbers[1] ? numbers[0] : -1
                } == counts
            }
        }
        for members in [[users[1]], [users[1], users[2]]] {
            _ = try world.commit(.group(.create(name: "g", members: members), by: users[0]))
        }
        #expect(try await isRight(store, [2, 2, 1, 0]))
        let groups = try await store.groups(of: users[0], after: nil, limit: 9)
        let group = try #require(groups.first).id
        let change = MemberChanges(added: [users[3]], removed: [users[1]])
        for command in [GroupCommand.changeMembers(group, change), .change(group, GroupChange(name: "h"))] {
            guard case .groupChanged = try world.commit(.group(command, by: users[0])) else {
                throw ConformanceFailure(description: "refused")
            }
        }
        let before = [2, 1, 1, 1]
        #expect(try await isRight(store, before))
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.takeBackPartsOfPublications()
            try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier >= '021'; PRAGMA user_version = 20")
        }
        let again = try directory.openStore()
        #expect(try await isRight(again, before))
        while case .deleted(_, isDone: false) = try StoreWorld(store: again, people: world.people)
            .commit(.deleteAccount(users[1]))
        {}
        #expect(try await isRight(again, [2, 0, 1, 1]))
        try again.close()
    }

    @Test(arguments: [false, true])
    func `strangers add an account to half of its groups, contacts and itself to all`(isInMemory: Bool) async throws {
        let directory = try TemporaryDirectory()
        let settings = StoreSettings(maxGroups: 4)
        let world = try await world(settings, in: isInMemory ? nil : directory)
        try makeContacts(1, 2, in: world)
        /// Whether a group of these people can be created. The creator leaves the group at once, to stay below the
        /// limit.
        func makes(_ person: Int, with members: [Int]) throws -> Bool {
            let create = GroupCommand.create(name: "g", members: members.map { world[$0].user })
            guard case .groupChanged(let group, _) = try world.commit(.group(create, by: world[person].user)) else {
                return false
            }
            if !members.isEmpty { _ = try world.commit(.group(.leave(group.id), by: world[person].user)) }
            return true
        }
        #expect(try makes(0, with: [2]))
        #expect(try makes(0, with: [2]))
        #expect(try !makes(0, with: [2]))
        #expect(try makes(1, with: [2]))
        #expect(try makes(2, with: []))
        #expect(try !makes(1, with: [2]))
        #expect(try !makes(2, with: []))
    }
}
