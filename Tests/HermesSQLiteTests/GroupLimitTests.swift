// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesSQLite
import HermesTestKit
import Testing

@Suite("In how many groups one may be")
struct GroupLimitTests {
    @Test("Nobody joins more groups than the limit says, by whatever way", arguments: [false, true])
    func limit(isInMemory: Bool) async throws {
        let directory = try TemporaryDirectory()
        let settings = StoreSettings(maxGroups: 2)
        let world: StoreWorld =
            if isInMemory {
                try await StoreWorld(store: MemoryStore(settings: settings), people: 3)
            } else {
                try await StoreWorld(store: directory.openStore(settings: settings), people: 3)
            }
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
        let change = GroupCommand.changeMembers(first.id, MemberChanges(added: [world[2].user]))
        guard case .groupChanged = try world.commit(.group(change, by: world[0].user)) else {
            throw ConformanceFailure(description: "refused")
        }
    }
}
