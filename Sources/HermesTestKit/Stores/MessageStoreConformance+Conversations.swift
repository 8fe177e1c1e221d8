// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore

extension MessageStoreConformance {
    static let conversations = [
        ConformanceCase("Conversations are listed by the other account, then by group, page by page") { makeStore in
            let world = try await StoreWorld(makeStore, people: 5)
            try expectEqual(try await world.list(2), [])
            for other in [4, 0, 2, 3] { try world.send("hello", from: 2, to: other) }
            try world.send("others", from: 0, to: 1)
            let groups = [try world.create([2]), try world.create([1]), try world.create([2])]
            try expectEqual(groups.map(\.rawValue), [1, 2, 3])
            let expected = ["user:1 0", "user:3 0", "user:4 0", "user:5 0", "group:1 0", "group:3 0"]
            for limit in [1, 2, 3, 5, 6, 1_000_000] {
                var found: [String] = []
                var place: ConversationPlace?
                while true {
                    let user = world[2].user
                    let page = try await world.store.conversations(of: user, after: place, limit: limit)
                    try expect(page.count <= limit)
                    found += page.map(StoreWorld.summary)
                    guard page.count == limit, let last = page.last else { break }
                    place = last.place
                }
                try expectEqual(found, expected, "pages of \(limit)")
            }
            for limit in [0, -1, .min] { try expectEqual(try await world.list(2, limit: limit), []) }
            try expectEqual(try await world.list(2, after: ConversationPlace(text: "user:3")).first, "user:4 0")
            try expectEqual(
                try await world.list(2, after: ConversationPlace(text: "user:2147483647")),
                ["group:1 0", "group:3 0"]
            )
            try expectEqual(try await world.list(2, after: ConversationPlace(text: "group:2147483647")), [])
        },
        ConformanceCase("Unread are the messages of others behind the mark, until they are recalled") { makeStore in
            let world = try await StoreWorld(makeStore)
            let conversation = world.conversation(0, 1)
            for index in 1...3 { try world.send("\(index)", from: 0, to: 1) }
            try world.send("4", from: 1, to: 0)
            let fifth = try world.send("5", from: 0, to: 1)
            try expectEqual(try await world.list(0), ["user:2 1"])
            try expectEqual(try await world.list(1), ["user:1 4"])
            _ = try world.commit(.markRead(conversation, by: world[1].user, upTo: 2))
            try expectEqual(try await world.list(1), ["user:1 2"])
            try expectEqual(try await world.list(0), ["user:2 1"], "the other's mark is not mine")
            _ = try world.commit(
                .recall(fifth.messageID, conversation, by: world[0].user, notBefore: Timestamp(rawValue: 0))
            )
            try expectEqual(try await world.list(1), ["user:1 1"])
            // A read mark that is not ahead of the present one changes nothing. A mark beyond the last message is
            // moved back to the last message.
            _ = try world.commit(.markRead(conversation, by: world[1].user, upTo: 1))
            try expectEqual(try await world.list(1), ["user:1 1"])
            _ = try world.commit(.markRead(conversation, by: world[1].user, upTo: .max))
            try expectEqual(try await world.list(1), ["user:1 0"])
            try world.send("6", from: 0, to: 1, at: StoreWorld.later(.seconds(9)))
            let found = try await world.store.conversations(of: world[1].user, after: nil, limit: 9)
            let expected = ConversationSummary(
                place: .user(world[0].user),
                name: "User1",
                lastSeq: 6,
                lastAt: StoreWorld.later(.seconds(9)),
                readUpTo: 5,
                unread: 1
            )
            try expectEqual(found, [expected])
        },
        ConformanceCase("What is unread stays so when it is delivered, deleted and forgotten") { makeStore in
            let world = try await StoreWorld(makeStore)
            for sender in [0, 1, 0, 0] { try world.send("text", from: sender, to: 1 - sender) }
            for person in 0...1 { try world.acknowledge(person) }
            try await world.purge(at: StoreWorld.later(.seconds(40 * 24 * 3600)))
            try expectEqual(try await world.inbox(1), ["1-4:hole"])
            try expectEqual(try await world.list(0), ["user:2 1"])
            try expectEqual(try await world.list(1), ["user:1 3"])
        },
        ConformanceCase("Of the messages before the last 64, own ones count as unread, too") { makeStore in
            let world = try await StoreWorld(makeStore)
            for index in 0..<100 { try world.send("\(index)", from: index % 2, to: 1 - index % 2) }
            // All of the 36 messages before the last 64 count as unread, and half of the last 64.
            try expectEqual(try await world.list(0), ["user:2 68"])
            try expectEqual(try await world.list(1), ["user:1 68"])
            _ = try world.commit(.markRead(world.conversation(0, 1), by: world[0].user, upTo: 36))
            try expectEqual(try await world.list(0), ["user:2 32"])
        },
        ConformanceCase("A conversation with oneself has nothing unread") { makeStore in
            let world = try await StoreWorld(makeStore)
            for _ in 1...70 { try world.send("note", from: 1, to: 1) }
            _ = try world.commit(.markRead(world.conversation(1, 1), by: world[1].user, upTo: 10))
            try expectEqual(try await world.list(1), ["user:2 0"])
            try expectEqual(try await world.list(0), [])
        },
        ConformanceCase("In a group, what was said before a member joined is not unread") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            let group = try world.create([1])
            for sender in [0, 0, 1] { _ = try world.commit(world.talk("text", sender, group)) }
            let join = GroupCommand.changeMembers(group, MemberChanges(added: [world[2].user]))
            _ = try world.commit(.group(join, by: world[0].user))
            try expectEqual(try await world.list(2), ["group:1 0"])
            for sender in [0, 1, 2] { _ = try world.commit(world.talk("text", sender, group)) }
            // The store still knows which messages are a member's own after the member's role has changed.
            let promotion = MemberChanges.Role(user: world[1].user, role: .administrator)
            _ = try world.commit(
                .group(.changeMembers(group, MemberChanges(roles: [promotion])), by: world[0].user)
            )
            try expectEqual(try await world.list(0), ["group:1 3"])
            try expectEqual(try await world.list(1), ["group:1 4"])
            try expectEqual(try await world.list(2), ["group:1 2"])
            _ = try world.commit(.markRead(.group(group), by: world[1].user, upTo: 5))
            try expectEqual(try await world.list(1), ["group:1 1"])
            _ = try world.commit(.group(.leave(group), by: world[1].user))
            try expectEqual(try await world.list(1), [], "who left has it no longer")
        },
        ConformanceCase("A recalled message of a group is unread for nobody") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            let group = try world.create([1, 2])
            guard case .appended(let receipt, _) = try world.commit(world.talk("a", 0, group)) else {
                throw ConformanceFailure(description: "not appended")
            }
            for sender in [0, 1] { _ = try world.commit(world.talk("b", sender, group)) }
            try expectEqual(try await world.list(2), ["group:1 3"])
            let recall = WriteOperation.recall(
                receipt.messageID,
                .group(group),
                by: world[0].user,
                notBefore: Timestamp(rawValue: 0)
            )
            _ = try world.commit(recall)
            try expectEqual(try await world.list(2), ["group:1 2"])
            try expectEqual(try await world.list(1), ["group:1 1"])
        },
        ConformanceCase("Names are today's, and empty once an account is deleted") { makeStore in
            let world = try await StoreWorld(makeStore)
            try world.send("a", from: 0, to: 1)
            let user = world[1].user
            _ = try await world.store.update(world[0].user, AccountChange(nickName: StoreWorld.name("Renamed")))
            let renamed = try await world.store.conversations(of: user, after: nil, limit: 9)
            try expectEqual(renamed.map(\.name), ["Renamed"])
            for _ in 0..<100 {
                guard case .deleted(_, false) = try world.commit(.deleteAccount(world[0].user)) else { break }
            }
            let deleted = try await world.store.conversations(of: user, after: nil, limit: 9)
            try expectEqual(deleted.map(\.name), [""])
            try expectEqual(try await world.list(1), ["user:1 1"])
        },
    ]
}

extension StoreWorld {
    /// Returns a person's conversations in short form, each with the number of unread messages: "user:2 3".
    package func list(
        _ person: Int,
        after place: ConversationPlace? = nil,
        limit: Int = 1000
    ) async throws -> [String] {
        try await store.conversations(of: people[person].user, after: place, limit: limit).map(Self.summary)
    }

    package static func summary(_ conversation: ConversationSummary) -> String {
        "\(conversation.place.text) \(conversation.unread)"
    }
}
