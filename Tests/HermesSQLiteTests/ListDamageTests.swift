// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

/// A list leaves out a damaged row, and contains all other rows.
@Suite("Lists with damaged rows", .inTurns)
struct ListDamageTests {
    private static let devices = ["phone-a", "phone-b", "phone-c"].map { StoreWorld.device($0) }

    /// Statements that give an account or a group, and all references to it, an impossibly large id.
    private static let noAccount = """
        UPDATE account SET id = 1 << 40 WHERE id = 3;
        UPDATE contact SET owner = 1 << 40 WHERE owner = 3;
        UPDATE contact SET peer = 1 << 40 WHERE peer = 3
        """
    private static let noGroup = """
        UPDATE group_member SET group_id = 1 << 40 WHERE group_id = (SELECT id FROM chat_group WHERE name = 'g2');
        UPDATE chat_group SET id = 1 << 40 WHERE name = 'g2'
        """

    private final class Count: Sendable {
        let number = Mutex(0)
        var value: Int { number.withLock { $0 } }
    }

    /// Opens a store with four accounts. Each has three devices. The first one has a token for each device, three
    /// requests for contact and three groups.
    private func open(_ directory: TemporaryDirectory, _ told: Count) async throws -> (SQLiteStore, StoreWorld) {
        let store = try SQLiteStore.open(
            directory: directory.path,
            logger: TemporaryDirectory.silent,
            damaged: { told.number.withLock { $0 += 1 } }
        )
        let world = try await StoreWorld(store: store, people: 4, devices: Self.devices)
        for person in 1...3 {
            let request = WriteOperation.contact(.request, by: world[person], peer: world[0].user, message: "")
            guard case .eventAppended = try world.commit(request) else {
                throw ConformanceFailure(description: "refused")
            }
            let create = GroupCommand.create(name: "g\(person)", members: [world[1].user])
            guard case .groupChanged = try world.commit(.group(create, by: world[0].user)) else {
                throw ConformanceFailure(description: "refused")
            }
        }
        try await change(
            store,
            """
            INSERT INTO token (hash, user, device_id, created_at)
            VALUES (x'01', 1, 'phone-a', 3), (x'02', 1, 'phone-b', 2), (x'03', 1, 'phone-c', 1);
            INSERT INTO kept_name (key, user) VALUES ('a', 1), ('b', 2), ('c', 3)
            """
        )
        return (store, world)
    }

    /// Changes the database in a way in which no version of Hermes changes it.
    private func change(_ store: SQLiteStore, _ sql: String) async throws {
        try await store.pool.write { db in
            try db.execute(sql: "PRAGMA ignore_check_constraints = ON; \(sql); PRAGMA ignore_check_constraints = OFF")
        }
    }

    /// A list, and a change that damages some of its rows.
    struct DamagedList: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let damage: String
        var damaged = 1
        let sound: [String]
        let read: @Sendable (SQLiteStore, UserID) async throws -> [String]
    }

    private static let lists: [DamagedList] = [
        DamagedList(
            testDescription: "deletions",
            damage: """
                UPDATE account SET is_disabled = 2; UPDATE account SET id = -1 WHERE id = 1;
                UPDATE account SET id = 1 << 40 WHERE id = 4
                """,
            damaged: 2,
            sound: ["2", "3"],
            read: { store, _ in try await store.deletions().map(\.description) }
        ),
        DamagedList(
            testDescription: "accounts",
            damage: noAccount,
            sound: ["User1", "User2", "User4"],
            read: { store, _ in try await store.accounts(after: nil, limit: 9).map(\.nickName.rawValue) }
        ),
        DamagedList(
            testDescription: "accounts by name",
            damage: noAccount,
            sound: ["User1", "User2", "User4"],
            read: { store, _ in
                try await store.accounts(after: nil, named: "user", limit: 9).found.map(\.nickName.rawValue)
            }
        ),
        DamagedList(
            testDescription: "kept names",
            damage: "UPDATE kept_name SET user = 0 WHERE key = 'b'",
            sound: ["a", "c"],
            read: { store, _ in try await store.keptNames().map(\.key).sorted() }
        ),
        DamagedList(
            testDescription: "devices, one with an impossible place",
            damage: "UPDATE device SET cursor = -1 WHERE user = 1 AND device_id = 'phone-b'",
            sound: ["phone-a", "phone-c"],
            read: { store, user in try await store.devices(of: user).map(\.description.id.rawValue) }
        ),
        DamagedList(
            testDescription: "devices, one with an impossible id",
            damage: "UPDATE device SET device_id = 'a b' WHERE user = 1 AND device_id = 'phone-b'",
            sound: ["phone-a", "phone-c"],
            read: { store, user in try await store.devices(of: user).map(\.description.id.rawValue) }
        ),
        DamagedList(
            testDescription: "devices by id",
            damage: "UPDATE device SET user = 1 << 40 WHERE user = 2 AND device_id = 'phone-b'",
            sound: ["1", "3", "4"],
            read: { store, _ in
                // The damaged row does not take the place of a sound one.
                try await store.devices(containing: "phone-b", limit: 3).map(\.owner.description).sorted()
            }
        ),
        DamagedList(
            testDescription: "tokens",
            damage: "UPDATE token SET device_id = 'a b' WHERE hash = x'02'",
            sound: ["phone-a", "phone-c"],
            read: { store, user in try await store.tokens(of: user).map(\.device.rawValue) }
        ),
        DamagedList(
            testDescription: "contacts",
            damage: noAccount,
            sound: ["User2", "User4"],
            read: { store, user in
                try await store.contacts(of: user, after: nil, limit: 9).map(\.account.nickName.rawValue)
            }
        ),
        DamagedList(
            testDescription: "groups",
            damage: noGroup,
            sound: ["g1", "g3"],
            read: { store, user in try await store.groups(of: user, after: nil, limit: 9).map(\.name) }
        ),
        DamagedList(
            testDescription: "groups by name",
            damage: noGroup,
            sound: ["g1", "g3"],
            read: { store, _ in try await store.groups(after: nil, named: "g", limit: 9).found.map(\.name) }
        ),
    ]

    @Test(arguments: lists)
    func `the rows beside it are read, and it is reported once`(_ list: DamagedList) async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let (store, world) = try await open(directory, told)
        try await change(store, list.damage)
        for _ in 0..<2 { #expect(try await list.read(store, world[0].user) == list.sound) }
        #expect(told.value == list.damaged)
        try store.close()
    }

    @Test func `pages of one row each have all rows beside it`() async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory, Count())
        try await change(store, "\(Self.noAccount); \(Self.noGroup)")
        let user = world[0].user
        var accounts: [Account] = []
        while let next = try await store.accounts(after: accounts.last?.id, limit: 1).first { accounts.append(next) }
        #expect(accounts.map(\.nickName.rawValue) == ["User1", "User2", "User4"])
        var contacts: [Contact] = []
        while let next = try await store.contacts(of: user, after: contacts.last?.account.id, limit: 1).first {
            contacts.append(next)
        }
        #expect(contacts.map(\.account.nickName.rawValue) == ["User2", "User4"])
        var groups: [GroupSummary] = []
        while let next = try await store.groups(of: user, after: groups.last?.id, limit: 1).first {
            groups.append(next)
        }
        #expect(groups.map(\.name) == ["g1", "g3"])
        let first = try await store.accounts(after: accounts.first?.id, named: "user", limit: 2)
        #expect(first.found == Array(accounts.dropFirst()))
        let rest = try await store.accounts(after: first.next, named: "user", limit: 2)
        #expect(rest.found.isEmpty && rest.next == nil)
        let lastGroups = try await store.groups(after: groups.last?.id, named: "g", limit: 1)
        #expect(lastGroups.found.isEmpty && lastGroups.next == nil)
        try store.close()
    }

    @Test func `a read of the row itself fails, and so does one of a group that has it as a member`() async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory, Count())
        let user = world[0].user
        let group = try #require(try await store.groups(of: user, after: nil, limit: 1).first?.id)
        #expect(try await store.group(group) != nil)
        try await change(
            store,
            """
            UPDATE device SET cursor = -1 WHERE user = 1 AND device_id = 'phone-b';
            UPDATE token SET device_id = 'a b' WHERE hash = x'02';
            UPDATE group_member SET role = 77 WHERE user = 2
            """
        )
        await #expect(throws: HermesError.self) {
            try await store.standing(.account(.id(user)), device: Self.devices[1], address: nil)
        }
        await #expect(throws: HermesError.self) { try await store.owner(of: TokenHash(bytes: [2])) }
        await #expect(throws: HermesError.self) { try await store.group(group) }
        try store.close()
    }

    @Test func `an account is deleted although one of its contacts cannot be an account`() async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory, Count())
        try await change(store, Self.noAccount)
        var isDone = false
        while !isDone {
            guard case .deleted(_, let done) = try world.commit(.deleteAccount(world[0].user)) else {
                throw ConformanceFailure(description: "refused")
            }
            isDone = done
        }
        let left = try await store.pool.read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM contact WHERE owner = 1")
        }
        #expect(left == 0)
        try store.close()
    }

    @Test func `a push for everyone reaches everyone else`() async throws {
        let directory = try TemporaryDirectory()
        let (store, world) = try await open(directory, Count())
        try await change(store, Self.noAccount)
        let push = world.push("sale")
        _ = try world.push(.accept(PushJob(push: push, target: .everyone), claim: nil))
        var reached: Set<UserID> = []
        var isDone = false
        while !isDone {
            let outcome = try world.push(.fanOut(push.id, limit: 500))
            reached.formUnion(outcome.deliveries.map(\.user))
            isDone = outcome.isDone
        }
        #expect(reached == [world[0].user, world[1].user, world[3].user])
        try store.close()
    }
}
