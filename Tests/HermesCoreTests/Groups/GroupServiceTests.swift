// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

/// The cost of changes of groups for the account that makes them.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct GroupServiceTests {
    private let store = FakeStore()

    @Test
    func `whoever dissolves a group or removes members pays for everybody who is told`() async throws {
        var settings = MessageSettings()
        settings.groupEntriesPerHour = 30
        let messenger = Messenger(store.base, messages: store, settings: settings, time: ManualTime())
        try await addAccounts(6, to: store.base)
        let ann = try principal(1)
        let others = try (2...6).map { try user($0) }
        let groups = messenger.groups
        // Each operation costs 6 entries, because six accounts are told about the creation and about the dissolution.
        for _ in 1...2 {
            let group = try await groups.apply(.create(name: "group", members: others), by: ann)
            try await groups.apply(.dissolve(group.id), by: ann)
        }
        // The third group uses up the 30 entries of the hour.
        let group = try await groups.apply(.create(name: "group", members: others), by: ann)
        await #expect(throws: HermesError.self) {
            try await groups.apply(.changeMembers(group.id, MemberChanges(removed: others)), by: ann)
        }
        await messenger.shutdown()
    }

    @Test func `a change that the server could not store is free; one that it refused is not`() async throws {
        var settings = MessageSettings()
        settings.groupEntriesPerHour = 10
        let messenger = Messenger(store.base, messages: store, settings: settings, time: ManualTime())
        try await addAccounts(5, to: store.base)
        let others = try (2...5).map { try user($0) }
        func create(_ members: [UserID]) async -> HermesError.Code? {
            await code {
                _ = try await messenger.groups.apply(.create(name: "group", members: members), by: principal(1))
            }
        }
        store.fail(3)
        for _ in 1...3 { #expect(await create(others) == .storageUnavailable) }
        #expect(await create(others) == nil)
        let unknown = try user(99)
        #expect(await create(Array(others.dropLast()) + [unknown]) == .notFound)
        #expect(await create(others) == .rateLimited)
        await messenger.shutdown()
    }

    @Test
    func `whoever runs the server changes groups with the owner's rights, free of charge, and leaves each an owner`()
        async throws
    {
        var settings = MessageSettings()
        settings.groupEntriesPerHour = 10
        let messenger = Messenger(store.base, messages: store, settings: settings, time: ManualTime())
        try await addAccounts(4, to: store.base)
        let groups = messenger.groups
        let members = try (2...4).map { try user($0) }
        let id = try await groups.apply(.create(name: "group", members: members), by: principal(1)).id
        let muted = Timestamp(rawValue: .max)
        let mute = MemberChanges(roles: [.init(user: try user(2), role: nil, mutedUntil: muted)])
        try await groups.apply(.changeMembers(id, mute), by: principal(1))

        for role in [GroupRole.administrator, .member, .administrator] {
            let group = try await groups.administer(.setRole(role, of: user(2)), in: id)
            #expect(group.member(try user(2))?.role == role)
            #expect(group.member(try user(2))?.mutedUntil == muted, "a mute stays")
        }
        for refused in [GroupAdministration.remove(try user(1)), .setRole(.member, of: try user(1))] {
            await #expect(throws: HermesError.self) { try await groups.administer(refused, in: id) }
        }
        let heir = try await groups.administer(.setRole(.owner, of: user(3)), in: id)
        #expect(heir.members.map(\.role) == [.administrator, .administrator, .owner, .member])
        #expect(try await groups.administer(.setRole(.owner, of: user(3)), in: id) == heir, "nothing to do")
        let smaller = try await groups.administer(.remove(user(1)), in: id)
        #expect(smaller.users == [try user(2), try user(3), try user(4)])
        await #expect(throws: HermesError.self) { try await groups.administer(.remove(user(1)), in: id) }
        #expect(try await groups.administer(.dissolve, in: id).members.isEmpty)
        await #expect(throws: HermesError.self) { try await groups.administer(.dissolve, in: id) }
        await messenger.shutdown()
    }
}
