// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesSQLite
import HermesTestKit
import Testing

@Suite("In how many groups one may be")
struct GroupLimitTests {
    /// Three people.
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
        // As the owner, as a member from the start, and as one who is added.
        for outcome in [try create(0, with: []), try create(2, with: [1])] {
            guard case .refused(let error) = outcome else { throw ConformanceFailure(description: "\(outcome)") }
            #expect(error.code == .tooLarge)
        }
        guard case .groupChanged(let other, _) = try create(2, with: []) else { return }
        let add = GroupCommand.changeMembers(other.id, MemberChanges(added: [world[1].user]))
        #expect(try world.refusal(.group(add, by: world[2].user)) == .tooLarge)
        // In the limit all goes on as before.
        try makeContacts(0, 2, in: world)
        let change = GroupCommand.changeMembers(first.id, MemberChanges(added: [world[2].user]))
        guard case .groupChanged = try world.commit(.group(change, by: world[0].user)) else {
            throw ConformanceFailure(description: "refused")
        }
    }

    @Test(arguments: [false, true])
    func `strangers add an account to half of its groups, contacts and itself to all`(isInMemory: Bool) async throws {
        let directory = try TemporaryDirectory()
        let settings = StoreSettings(maxGroups: 4)
        let world = try await world(settings, in: isInMemory ? nil : directory)
        try makeContacts(1, 2, in: world)
        /// Whether a group of these is made. Its maker leaves at once, to stay below the limit.
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
