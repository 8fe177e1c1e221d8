// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for the deletion of an account, for every store.
enum AccountDeletionConformance {
    static let cases = [
        ConformanceCase("An account goes with its devices, tokens and inbox; its name is kept, its number used") {
            makeStore in
            let world = try await StoreWorld(makeStore)
            let store = world.store
            let user = world[1].user
            let token = TokenHash(bytes: Array(repeating: 7, count: 32))
            let phone = DeviceDescription(id: StoreWorld.phone)
            _ = try await store.open(phone, of: user, token: token, now: StoreWorld.now)
            try await store.setPushToken(
                PushToken(stored: .apns, text: "t", appID: "app"),
                of: StoreWorld.phone,
                user,
                shown: .other,
                now: StoreWorld.now
            )
            try world.send("a", from: 0, to: 1)
            try expectEqual(try await store.usersToPush(after: nil, limit: 9), [user])
            try world.delete(1)
            try expect(try await store.find(.id(user)) == nil)
            try expect(try await store.find(.nickName(world[1].nickName)) == nil)
            try expect(try await store.owner(of: token) == nil)
            try expectEqual(try await store.devices(of: user), [])
            try expectEqual(try await store.pushTargets(of: user), [])
            try expectEqual(try await store.devicesWithPushTokens(after: nil, limit: 9), [])
            try expectEqual(try await store.usersToPush(after: nil, limit: 9), [])
            try expectEqual(try await world.inbox(1), [])
            try expectEqual(try await store.position(of: user).head, 0)
            try expectEqual(try await store.accounts(after: nil, limit: 9).map(\.id), [world[0].user])
            try await expectError(.notFound) {
                try await store.open(phone, of: user, token: nil, now: StoreWorld.now)
            }
            try expectEqual(try world.refusal(.deleteAccount(user)), .notFound, "once is enough")
            try expectEqual(try world.refusal(.append(world.message("b", from: 0, to: 1))), .notFound)
            try expectEqual(try world.refusal(.append(world.message("c", from: 1, to: 0))), .notFound)
            try expectEqual(try world.refusal(.acknowledge(user, StoreWorld.phone, upTo: 1)), .notFound)
            let new = NewAccount(nickName: world[1].nickName, password: PasswordHash(phc: "$new$"))
            let kept = KeptName(key: world[1].nickName.key, user: user)
            try expectEqual(try await store.keptNames(), [kept])
            try await expectError(.nameTaken) { try await store.create(new, now: StoreWorld.now) }
            try await store.free(kept)
            let next = try await store.create(new, now: StoreWorld.now)
            try expect(next.id > user)
            try expectEqual(try await store.position(of: next.id).head, 0)
        },
        ConformanceCase("What others have of a deleted account's messages stays, and can be recalled") {
            makeStore in
            let settings = StoreSettings(historyPeriod: .seconds(3600))
            let world = try await StoreWorld(makeStore, people: 3, settings: settings)
            try world.send("a", from: 1, to: 0)
            let receipt = try world.send("b", from: 0, to: 1)
            try world.delete(1)
            try await world.purge()
            try expectEqual(try await world.inbox(0), ["1:a", "2:b"])
            let history = try await world.store.history(of: world.conversation(0, 1), before: nil, limit: 9)
            try expectEqual(history.map(\.sender), [world[1].user, world[0].user])
            try expectEqual(history.map(\.senderName), ["", "User1"], "who is gone has no name")
            let recall = WriteOperation.recall(
                receipt.messageID,
                world.conversation(0, 1),
                by: world[0].user,
                notBefore: StoreWorld.now
            )
            guard case .eventAppended(let told) = try world.commit(recall) else {
                throw ConformanceFailure(description: "not recalled")
            }
            try expectEqual(told.map(\.user), [world[0].user])
        },
        ConformanceCase("A recall that nobody can be told of is a recall all the same") { makeStore in
            var settings = StoreSettings(historyPeriod: .seconds(3600))
            settings.inbox = InboxBudget(maxEntries: 40, maxBytes: 1 << 20)
            let world = try await StoreWorld(makeStore, people: 3, settings: settings)
            // The sender's inbox has no room for its own copies of further messages.
            for number in 1...10 { try world.send("\(number)", from: 0, to: 1) }
            let receipt = try world.send("a", from: 0, to: 2)
            try world.delete(2)
            let recall = WriteOperation.recall(
                receipt.messageID,
                world.conversation(0, 2),
                by: world[0].user,
                notBefore: StoreWorld.now
            )
            for _ in 1...2 {
                guard case .eventAppended(let told) = try world.commit(recall) else {
                    throw ConformanceFailure(description: "not recalled")
                }
                try expectEqual(told.count, 0)
            }
            let history = try await world.store.history(of: world.conversation(0, 2), before: nil, limit: 9)
            try expectEqual(history.map(\.isRecalled), [true])
        },
        ConformanceCase("A deleted inbox is purged, step by step, and what it alone held with it") { makeStore in
            let world = try await StoreWorld(makeStore, devices: [])
            for index in 1...5 { try world.send("m\(index)", from: 0, to: 1) }
            try world.delete(0)
            try world.delete(1)
            var steps = 0
            while try await world.store.purge(now: StoreWorld.now, limit: 3) > 0 { steps += 1 }
            try expect(steps < 100)
            for kept in try await world.store.keptNames() { try await world.store.free(kept) }
            let other = try await StoreWorld(store: world.store, people: 1)
            try expectEqual(try await other.inbox(0), [])
        },
        ConformanceCase("A deleted owner's group goes to an administrator, else to a member, else away") {
            makeStore in
            let world = try await StoreWorld(makeStore, people: 4)
            let led = try world.group([0, 1, 2, 3], administrator: 2)
            let plain = try world.group([0, 1, 3])
            let alone = try world.group([0])
            let other = try world.group([1, 0])
            try world.delete(0)
            let first = try await world.store.group(led)
            try expectEqual(first?.users, [1, 2, 3].map { world[$0].user })
            try expectEqual(first?.member(world[2].user)?.role, .owner)
            try expectEqual(first?.summary.memberCount, 3)
            try expectEqual(try await world.store.group(plain)?.member(world[1].user)?.role, .owner)
            try expect(try await world.store.group(alone) == nil)
            try expectEqual(try await world.store.group(other)?.users, [world[1].user])
            try expectEqual(
                try await world.inbox(2, after: 2),
                ["3:membersRemoved by 1 1", "4:changed by 1"]
            )
            let leave = GroupCommand.dissolve(plain)
            guard case .groupChanged = try world.commit(.group(leave, by: world[1].user)) else {
                throw ConformanceFailure(description: "the heir is not the owner")
            }
        },
        ConformanceCase("Contacts are told as if they were removed; blocks are forgotten") { makeStore in
            let world = try await StoreWorld(makeStore, people: 5)
            func contact(_ command: ContactCommand, _ one: Int, _ other: Int) throws {
                _ = try world.commit(.contact(command, by: world[one], peer: world[other].user, message: ""))
            }
            try contact(.request, 0, 1)
            try contact(.accept, 1, 0)
            try contact(.request, 2, 0)
            try contact(.block, 0, 3)
            try contact(.block, 4, 0)
            try world.delete(0)
            try expectEqual(try await world.inbox(1), ["1:requested by 1", "2:removed by 1"])
            try expectEqual(try await world.inbox(2), ["1:declined by 1"])
            for person in 3...4 { try expectEqual(try await world.inbox(person), []) }
            for person in 1...4 {
                let left = try await world.store.contacts(of: world[person].user, after: nil, limit: 9)
                try expectEqual(left, [])
            }
            try world.send("still", from: 1, to: 3)
        },
        ConformanceCase("MQTT sessions under the name go with it, and nobody else's") { makeStore in
            let world = try await StoreWorld(makeStore)
            let sessions = SessionWorld(world.store)
            let gone = try sessions.open("phone", owner: .account(world[1].user), expiry: nil)
            let kept = try sessions.open("phone", owner: .account(world[0].user), expiry: nil)
            try sessions.publish("a", to: [gone.id, kept.id])
            try world.delete(1)
            try expectEqual(try await world.store.sessions().map(\.id), [kept.id])
            try expectEqual(try sessions.publish("b", to: [gone.id, kept.id]), [0, 2])
            try await sessions.purge(at: StoreWorld.now)
            try expectEqual(try await sessions.queue(gone.id), [])
            try expectEqual(try await sessions.queue(kept.id), ["1:a", "2:b"])
            let next = try sessions.open("phone", owner: .account(world[1].user))
            try expect(!next.wasPresent && next.id > gone.id)
        },
        ConformanceCase("Within one batch an account is gone from its place on") { makeStore in
            let world = try await StoreWorld(makeStore)
            let outcomes = try world.store.commit(
                [
                    .append(world.message("a", from: 1, to: 0)), .deleteAccount(world[1].user),
                    .append(world.message("b", from: 0, to: 1)), .append(world.message("c", from: 0, to: 0)),
                ],
                now: StoreWorld.now
            )
            guard case .refused(let error) = outcomes[2], error.code == .notFound else {
                throw ConformanceFailure(description: "\(outcomes[2])")
            }
            try expectEqual(try await world.inbox(0), ["1:a", "2:c"])
        },
    ]
}

extension StoreWorld {
    fileprivate func delete(_ person: Int) throws {
        for _ in 0..<1_000 {
            let outcome = try commit(.deleteAccount(people[person].user))
            guard case .deleted(_, let isDone) = outcome else {
                throw ConformanceFailure(description: "refused: \(outcome)")
            }
            if isDone { return }
        }
        throw ConformanceFailure(description: "a deletion never comes to an end")
    }

    /// Creates a group of these people. The first is the owner.
    fileprivate func group(_ members: [Int], administrator: Int? = nil) throws -> GroupID {
        let owner = people[members[0]].user
        let create = GroupCommand.create(name: "group", members: members.dropFirst().map { people[$0].user })
        guard case .groupChanged(let group, _) = try commit(.group(create, by: owner)) else {
            throw ConformanceFailure(description: "no group")
        }
        if let administrator {
            let role = MemberChanges.Role(user: people[administrator].user, role: .administrator)
            _ = try commit(.group(.changeMembers(group.id, MemberChanges(roles: [role])), by: owner))
        }
        return group.id
    }
}
