// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for the owners of sessions.
extension SessionStoreConformance {
    static let owners = [
        ConformanceCase("Owners have sessions of their own, however much their names look alike") { makeStore in
            let world = try await StoreWorld(makeStore)
            let sessions = SessionWorld(world.store)
            let user = world[0].user
            let owners: [SessionOwner] = [
                .anonymous, .account(user), .subject(world[0].nickName.key), .subject("\(user.rawValue)"),
                .subject(SessionOwner.account(user).stored), .subject("bob"), .subject("\u{301}bob"),
                .subject("\u{1F3FB}bob"),
            ]
            let ids = try owners.map { try sessions.open("a", owner: $0).id }
            try expectEqual(Set(ids).count, owners.count)
            for (owner, id) in zip(owners, ids) {
                let again = try sessions.open("a", owner: owner)
                try expect(again.wasPresent && again.id == id)
            }
            let found = try await world.store.sessions().sorted { $0.id < $1.id }
            try expectEqual(found.map(\.key.owner), owners)
            try expectEqual(found.map(\.payer), owners.map { CommitSource($0) ?? .server })
        },
        ConformanceCase("A rename moves nothing, and tells what was queued before it") { makeStore in
            let world = try await StoreWorld(makeStore)
            let sessions = SessionWorld(world.store)
            let user = world[0].user
            let own = try sessions.open("a", owner: .account(user), expiry: nil).id
            let others = try [SessionOwner.account(world[1].user), .subject(world[0].nickName.key)].map {
                try sessions.open("a", owner: $0, expiry: nil).id
            }
            for text in ["x", "y"] { try sessions.publish(text, to: [own] + others) }
            for change in [
                AccountChange(avatarURL: "https://example.org/a.png"), AccountChange(nickName: world[0].nickName),
            ] {
                _ = try await world.store.update(user, change)
                try expectEqual(try sessions.open("a", owner: .account(user)).renamedAt, 0)
            }
            _ = try await world.store.update(user, AccountChange(nickName: StoreWorld.name("Another")))
            try sessions.publish("z", to: [own])
            let again = try sessions.open("a", owner: .account(user))
            try expect(again.wasPresent && again.id == own)
            try expectEqual(again.renamedAt, 2)
            try expectEqual(again.head, 3)
            try expectEqual(try await sessions.queue(own), ["1:x", "2:y", "3:z"])
            let found = try await world.store.sessions().filter { $0.renamedAt > 0 }
            try expectEqual(found.map(\.id), [own])
            try await world.store.free(KeptName(key: world[0].nickName.key, user: user))
            _ = try await world.store.update(user, AccountChange(nickName: world[0].nickName))
            try expectEqual(try sessions.open("a", owner: .account(user)).renamedAt, 3)
        },
        ConformanceCase("Operators find sessions by the names that their owners have now") { makeStore in
            let world = try await StoreWorld(makeStore)
            let sessions = SessionWorld(world.store)
            let user = world[0].user
            _ = try await world.store.update(user, AccountChange(nickName: StoreWorld.name("Newer")))
            for owner in [SessionOwner.account(user), .subject("newest"), .anonymous] {
                _ = try sessions.open("c", owner: owner)
            }
            func names(_ text: String) async throws -> [String] {
                try await world.store.sessions(after: nil, containing: text, limit: 9, searched: .max).map(\.ownerName)
            }
            try expectEqual(try await names(""), ["newer", "newest", ""])
            try expectEqual(try await names("NEWE"), ["newer", "newest"])
            try expectEqual(try await names("newer"), ["newer"])
            try expectEqual(try await names(world[0].nickName.key), [])
            try expectEqual(try await names(SessionOwner.account(user).stored), [])
            try expectEqual(try await names("C"), ["newer", "newest", ""])
        },
    ]
}
