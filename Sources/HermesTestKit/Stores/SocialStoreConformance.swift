// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for every ``SocialStore``, and for the behaviour of every ``MessageStore`` that depends on contacts and
/// groups.
package enum SocialStoreConformance {
    package static var cases: [ConformanceCase] { contacts + groups + groupMessages }

    private static let contacts = [
        ConformanceCase("A request, an answer and an end reach the other's inbox") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            try world.contact(.request, 0, 1, message: "hello")
            try world.contact(.request, 0, 1)
            try expectEqual(try await world.contacts(0), ["2:requested"])
            try expectEqual(try await world.contacts(1), ["1:incoming"])
            let asked = try await world.store.entries(of: world[1].user, after: 0, limit: 9).entries
            let expected = ContactEvent(kind: .requested, user: world[0].user, nickName: "User1", message: "hello")
            try expectEqual(asked.map(\.event), [.contact(expected)])
            try world.contact(.accept, 1, 0)
            try expectEqual(try await world.contacts(0), ["2:accepted"])
            try expectEqual(try await world.contacts(1), ["1:accepted"])
            try world.contact(.remove, 0, 1)
            try expectEqual(try await world.contacts(0), [])
            try expectEqual(try await world.contacts(1), [])
            try expectEqual(try await world.inbox(0), ["1:accepted by 2"])
            try expectEqual(try await world.inbox(1), ["1:requested by 1", "2:removed by 1"])
            try expectEqual(try world.refusal(world.contactOperation(.accept, 1, 0)), .notFound)
            guard case .refused(let refusal) = try world.commit(world.contactOperation(.request, 0, 0)) else {
                throw ConformanceFailure(description: "an account became its own contact")
            }
            try expectEqual(refusal.message, StoreRefusals.ownContact.message)
            try expectEqual(try await world.inbox(2), [])
        },
        ConformanceCase("A blocked sender's messages and requests are refused, at once and until unblocked") {
            makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            try world.send("a", from: 0, to: 1)
            try world.contact(.block, 1, 0)
            try expectEqual(try world.refusal(.append(world.message("b", from: 0, to: 1))), .forbidden)
            try expectEqual(try world.refusal(world.contactOperation(.request, 0, 1)), .forbidden)
            try world.send("c", from: 1, to: 0)
            try world.send("d", from: 2, to: 1)
            try expectEqual(try await world.contacts(1), ["1:blocked"])
            try expectEqual(try await world.contacts(0), [], "who is blocked is not told")
            // The block still applies after another operation has changed the account's rows.
            _ = try await world.store.open(
                DeviceDescription(id: StoreWorld.tablet),
                of: world[1].user,
                token: nil,
                now: StoreWorld.now
            )
            try expectEqual(try world.refusal(.append(world.message("e", from: 0, to: 1))), .forbidden)
            try world.contact(.unblock, 1, 0)
            try world.send("f", from: 0, to: 1)
            try expectEqual(try await world.inbox(1), ["1:a", "2:c", "3:d", "4:f"])
            try expectEqual(try await world.contacts(1), [])
        },
        ConformanceCase("A repetition gets the first receipt although the sender is blocked now") { makeStore in
            let world = try await StoreWorld(makeStore, people: 2)
            let receipt = try world.send("a", from: 0, to: 1, clientID: "x")
            try world.contact(.block, 1, 0)
            for _ in 1...2 {
                let again = world.message("a", from: 0, to: 1, clientID: "x")
                guard case .duplicate(let duplicate) = try world.commit(.append(again)) else {
                    throw ConformanceFailure(description: "not a duplicate")
                }
                try expectEqual(duplicate.messageID, receipt.messageID)
                // The second round tests the client ids after the purge has moved them to their final table.
                try await world.purge()
            }
            let fresh = world.message("b", from: 0, to: 1, clientID: "y")
            try expectEqual(try world.refusal(.append(fresh)), .forbidden)
            try world.contact(.unblock, 1, 0)
            try world.send("b", from: 0, to: 1, clientID: "y")
            try expectEqual(try await world.inbox(1), ["1:a", "2:b"])
        },
        ConformanceCase("Who blocks somebody is found among many") { makeStore in
            let world = try await StoreWorld(makeStore, people: 4)
            try world.contact(.block, 1, 0)
            try world.contact(.block, 3, 0)
            try world.contact(.block, 0, 2)
            let all = world.people.map(\.user)
            let blockers = try await world.store.blockers(of: world[0].user, among: all)
            try expectEqual(blockers, [world[1].user, world[3].user])
            try expectEqual(try await world.store.blockers(of: world[0].user, among: [world[2].user]), [])
            try world.contact(.unblock, 1, 0)
            try expectEqual(try await world.store.blockers(of: world[0].user, among: all), [world[3].user])
        },
        ConformanceCase("Read marks move ahead, no further than the last message, and between the two who may talk") {
            makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            func mark(_ reader: Int, _ other: Int, _ seq: UInt64) throws -> WriteOutcome {
                try world.commit(.markRead(world.conversation(reader, other), by: world[reader].user, upTo: seq))
            }
            _ = try mark(0, 1, 5)
            try expectEqual(try await world.inbox(1), [], "nothing was said")
            for text in ["a", "b", "c"] { try world.send(text, from: 1, to: 0) }
            for seq: UInt64 in [2, 2, 1, 9, 3, .max / 2] { _ = try mark(0, 1, seq) }
            try expectEqual(try await world.inbox(1, after: 3), ["4:read 2", "5:read 3"])
            try expectEqual(try await world.inbox(0, after: 3), ["4:read 2", "5:read 3"])
            // The other account's read marks are separate.
            _ = try mark(1, 0, 1)
            try expectEqual(try await world.inbox(0, after: 5), ["6:read 1"])
            // The read marks of a reader who is blocked by the other account, or who blocks it, reach only the reader's
            // own devices.
            try world.send("d", from: 1, to: 0)
            try world.contact(.block, 1, 0)
            _ = try mark(0, 1, 4)
            _ = try mark(1, 0, 4)
            try expectEqual(try await world.inbox(0, after: 6), ["7:d", "8:read 4"])
            try expectEqual(try await world.inbox(1, after: 6), ["7:d", "8:read 4"])
            guard let stranger = UserID(rawValue: 77) else {
                throw ConformanceFailure(description: "no user id")
            }
            let conversation = world.conversation(0, 1)
            try expectEqual(try world.refusal(.markRead(conversation, by: world[2].user, upTo: 1)), .forbidden)
            try expectEqual(try world.refusal(.markRead(conversation, by: stranger, upTo: 1)), .notFound)
            // After the other account is deleted, the reader still gets the mark of its conversation with itself.
            _ = try world.commit(.deleteAccount(world[1].user))
            try world.send("to myself", from: 0, to: 0)
            _ = try mark(0, 0, 1)
            try expectEqual(try await world.inbox(0, after: 8), ["9:to myself", "10:read 1"])
            // A mark of a deleted account's messages reaches only the reader.
            try world.send("before the end", from: 2, to: 0)
            _ = try world.commit(.deleteAccount(world[2].user))
            _ = try mark(0, 2, 1)
            try expectEqual(try await world.inbox(0, after: 10), ["11:before the end", "12:read 1"])
        },
        ConformanceCase("Within one batch a block counts from its place on") { makeStore in
            let world = try await StoreWorld(makeStore)
            let outcomes = try world.store.commit(
                [
                    .append(world.message("a", from: 0, to: 1)),
                    world.contactOperation(.block, 1, 0),
                    .append(world.message("b", from: 0, to: 1)),
                    world.contactOperation(.unblock, 1, 0),
                    .append(world.message("c", from: 0, to: 1)),
                ],
                now: StoreWorld.now
            )
            guard case .refused = outcomes[2] else { throw ConformanceFailure(description: "\(outcomes[2])") }
            try expectEqual(try await world.inbox(1), ["1:a", "2:c"])
        },
        ConformanceCase("Where contacts are required, strangers are refused") { makeStore in
            let world = try await StoreWorld(makeStore)
            func append(_ text: String) -> WriteOperation {
                let message = world.message(text, from: 0, to: 1)
                return .append(
                    MessageAppend(
                        id: message.id,
                        draft: message.draft,
                        sender: message.sender,
                        sentAt: message.sentAt,
                        expiresAt: message.expiresAt,
                        recipients: message.recipients,
                        requiresContact: true
                    )
                )
            }
            try expectEqual(try world.refusal(append("a")), .forbidden)
            try world.contact(.request, 0, 1)
            try expectEqual(try world.refusal(append("b")), .forbidden)
            try world.contact(.accept, 1, 0)
            guard case .appended = try world.commit(append("c")) else {
                throw ConformanceFailure(description: "not appended")
            }
        },
        ConformanceCase("Where contacts are required, strangers add nobody to a group") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            func command(_ command: GroupCommand) -> WriteOperation {
                .group(command, by: world[0].user, requiresContacts: true)
            }
            let create = command(.create(name: "group", members: [world[1].user]))
            try expectEqual(try world.refusal(create), .forbidden)
            try world.contact(.request, 0, 1)
            try expectEqual(try world.refusal(create), .forbidden)
            try world.contact(.accept, 1, 0)
            guard case .groupChanged(let group, _) = try world.commit(create) else {
                throw ConformanceFailure(description: "not created")
            }
            let add = command(.changeMembers(group.id, MemberChanges(added: [world[2].user])))
            try expectEqual(try world.refusal(add), .forbidden)
            try world.contact(.request, 2, 0)
            try world.contact(.accept, 0, 2)
            guard case .groupChanged(let grown, _) = try world.commit(add) else {
                throw ConformanceFailure(description: "not added")
            }
            try expectEqual(grown.members.count, 3)
        },
        ConformanceCase("Contacts are listed ascending, page by page, with today's names") { makeStore in
            let world = try await StoreWorld(makeStore, people: 6)
            for other in [4, 2, 3, 1, 5] { try world.contact(.request, 0, other) }
            try world.contact(.remove, 0, 3)
            let renamed = AccountChange(nickName: StoreWorld.name("Bob"), avatarURL: "https://example.org/b")
            _ = try await world.store.update(world[1].user, renamed)
            let first = try await world.store.contacts(of: world[0].user, after: nil, limit: 2)
            try expectEqual(first.map(\.account.id.rawValue), [2, 3])
            try expectEqual(first.first?.account.nickName.rawValue, "Bob")
            try expectEqual(first.first?.account.avatarURL, "https://example.org/b")
            let rest = try await world.store.contacts(of: world[0].user, after: first.last?.account.id, limit: 9)
            try expectEqual(rest.map(\.account.id.rawValue), [5, 6])
            try expectEqual(try await world.store.contacts(of: world[0].user, after: nil, limit: 0), [])
            let names = try await world.store.names(of: [world[1].user, world[2].user])
            try expectEqual(names, [world[1].user: "Bob", world[2].user: "User3"])
        },
        ConformanceCase("Nobody is a contact of oneself or of nobody") { makeStore in
            let world = try await StoreWorld(makeStore)
            guard let stranger = UserID(rawValue: 99) else {
                throw ConformanceFailure(description: "no user id")
            }
            let operation = WriteOperation.contact(.request, by: world[0], peer: stranger, message: "")
            try expectEqual(try world.refusal(operation), .notFound)
            try expectEqual(try world.refusal(world.contactOperation(.request, 0, 0)), .invalidArgument)
        },
    ]

    private static let groups = [
        ConformanceCase("A group is created, changed and dissolved, and its members are told") { makeStore in
            let world = try await StoreWorld(makeStore, people: 4)
            let group = try world.create([1, 2])
            try expectEqual(try await world.store.group(group), try world.group(.change(group, GroupChange())))
            let changed = GroupChange(
                name: "new",
                avatarURL: "https://example.org/g",
                isMuted: true,
                isHistoryOpen: true
            )
            let after = try world.group(.change(group, changed))
            try expectEqual(after.summary.name, "new")
            try expectEqual(try await world.store.group(group), after)
            try expectEqual(after.summary.createdAt, StoreWorld.now)
            let entries = try await world.store.entries(of: world[2].user, after: 1, limit: 9).entries
            let event = GroupEvent(kind: .changed, group: after.summary, by: world[0].user)
            try expectEqual(entries.map(\.event), [.group(event)])
            _ = try world.group(.changeMembers(group, MemberChanges(added: [world[3].user], removed: [world[1].user])))
            try expectEqual(try await world.store.readableAfter(world[1].user, in: group), nil)
            try expectEqual(try await world.store.readableAfter(world[3].user, in: group), 0)
            _ = try world.group(.dissolve(group))
            try expect(try await world.store.group(group) == nil)
            try expectEqual(
                try await world.inbox(1),
                ["1:created by 1 1 2 3", "2:changed by 1", "3:membersRemoved by 1 2"]
            )
            try expectEqual(
                try await world.inbox(3),
                ["1:membersRemoved by 1 2", "2:membersAdded by 1 4", "3:dissolved by 1"]
            )
            let next = try world.create([])
            try expect(next.rawValue > group.rawValue, "ids are not used again")
        },
        ConformanceCase("A refused change changes nothing") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            let group = try world.create([1])
            let before = try await world.store.group(group)
            guard let stranger = UserID(rawValue: 99) else {
                throw ConformanceFailure(description: "no user id")
            }
            let changes: [(GroupCommand, Int, HermesError.Code)] = [
                (.changeMembers(group, MemberChanges(added: [world[2].user, stranger])), 0, .notFound),
                (.changeMembers(group, MemberChanges(added: [world[2].user])), 1, .forbidden),
                (.change(group, GroupChange(name: "mine")), 2, .forbidden),
                (.dissolve(group), 1, .forbidden),
                (.leave(group), 0, .forbidden),
                (.create(name: "g", members: [stranger]), 0, .notFound),
            ]
            for (command, person, code) in changes {
                try expectEqual(try world.refusal(.group(command, by: world[person].user)), code, "\(command)")
            }
            try expectEqual(try await world.store.group(group), before)
            try expectEqual(try await world.inbox(1), ["1:created by 1 1 2"])
            try world.contact(.block, 2, 0)
            let add = GroupCommand.changeMembers(group, MemberChanges(added: [world[2].user]))
            try expectEqual(try world.refusal(.group(add, by: world[0].user)), .forbidden, "who blocks is not added")
        },
        ConformanceCase("All groups are listed by a part of their names, in either case, page by page") { makeStore in
            let world = try await StoreWorld(makeStore)
            var all: [GroupID] = []
            for name in ["Garden", "kitchen", "the GARDEN", "\u{c4}cker", "100%_"] {
                let group = try world.create([1])
                _ = try world.group(.change(group, GroupChange(name: name)))
                all.append(group)
            }
            func found(_ text: String, after: GroupID? = nil, limit: Int = 9) async throws -> [GroupID] {
                let key = Group.searchKey(text)
                return try await world.store.groups(after: after, named: key, limit: limit).found.map(\.id)
            }
            try expectEqual(try await found(""), all)
            try expectEqual(try await found("garDEN"), [all[0], all[2]])
            try expectEqual(try await found("\u{c4}CK"), [all[3]])
            // No character of the text is a wildcard.
            for text in ["%", "_", "100%_"] { try expectEqual(try await found(text), [all[4]]) }
            for text in ["\\", "*", "'", "\u{e4}ck", "100%__"] { try expectEqual(try await found(text), []) }
            try expectEqual(try await found("garden", after: all[0]), [all[2]])
            let page = try await world.store.groups(after: nil, named: "", limit: 2)
            try expectEqual(page.found.map(\.id), Array(all.prefix(2)))
            try expectEqual(page.found.map(\.memberCount), [2, 2])
            try expectEqual(page.next, all[1])
            try expectEqual(try await found("", after: page.next, limit: 2), Array(all[2...3]))
            try expectEqual(try await world.store.groups(after: all[3], named: "", limit: 9).next, nil)
        },
        ConformanceCase("One's groups are listed ascending, page by page") { makeStore in
            let world = try await StoreWorld(makeStore)
            for _ in 1...4 { _ = try world.create([1]) }
            let all = try await world.store.groups(of: world[1].user, after: nil, limit: 9)
            try expectEqual(all.map(\.memberCount), [2, 2, 2, 2])
            try expectEqual(all.map(\.id.rawValue), all.map(\.id.rawValue).sorted())
            _ = try world.group(.leave(all[1].id), by: 1)
            let page = try await world.store.groups(of: world[1].user, after: all[0].id, limit: 1)
            try expectEqual(page.map(\.id), [all[2].id])
            try expectEqual(try await world.store.groups(of: world[0].user, after: nil, limit: 9).count, 4)
        },
    ]

    private static let groupMessages = [
        ConformanceCase("A message reaches each member once, the sender first, numbered within the group") {
            makeStore in
            let settings = StoreSettings(historyPeriod: .seconds(3600))
            let world = try await StoreWorld(makeStore, people: 4, settings: settings)
            let group = try world.create([1, 2])
            guard case .appended(let receipt, let deliveries) = try world.commit(world.talk("a", 1, group)) else {
                throw ConformanceFailure(description: "not appended")
            }
            try expectEqual(receipt.conversationSeq, 1)
            try expectEqual(receipt.inboxSeq, 2)
            try expectEqual(deliveries.map(\.user.rawValue), [2, 1, 3])
            guard case .appended(let second, _) = try world.commit(world.talk("b", 2, group)) else {
                throw ConformanceFailure(description: "not appended")
            }
            try expectEqual(second.conversationSeq, 2)
            for person in 0...2 { try expectEqual(try await world.inbox(person, after: 1), ["2:a", "3:b"]) }
            try expectEqual(try await world.inbox(3), [])
            guard
                case .eventAppended(let recalled) = try world.commit(
                    .recall(receipt.messageID, .group(group), by: world[1].user, notBefore: StoreWorld.now)
                )
            else { throw ConformanceFailure(description: "not recalled") }
            try expectEqual(Set(recalled.map(\.user.rawValue)), [1, 2, 3])
            let history = try await world.store.history(of: .group(group), before: nil, limit: 9)
            try expectEqual(history.map(\.isRecalled), [true, false])
        },
        ConformanceCase("Who was removed neither sends nor gets, within one batch too") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            let group = try world.create([1, 2])
            let remove = GroupCommand.changeMembers(group, MemberChanges(removed: [world[1].user]))
            let outcomes = try world.store.commit(
                [
                    world.talk("a", 1, group), .group(remove, by: world[0].user), world.talk("b", 1, group),
                    world.talk("c", 0, group),
                ],
                now: StoreWorld.now
            )
            guard case .refused(let error) = outcomes[2], error.code == .forbidden else {
                throw ConformanceFailure(description: "\(outcomes[2])")
            }
            try expectEqual(try await world.inbox(1, after: 1), ["2:a", "3:membersRemoved by 1 2"])
            try expectEqual(try await world.inbox(2, after: 1), ["2:a", "3:membersRemoved by 1 2", "4:c"])
            let mark = WriteOperation.markRead(.group(group), by: world[1].user, upTo: 1)
            try expectEqual(try world.refusal(mark), .forbidden)
            guard case .appended(let receipt, _) = outcomes[0] else {
                throw ConformanceFailure(description: "\(outcomes[0])")
            }
            try expectEqual(
                try world.refusal(
                    .recall(receipt.messageID, .group(group), by: world[1].user, notBefore: StoreWorld.now)
                ),
                .forbidden
            )
            _ = try world.group(.dissolve(group))
            try expectEqual(try world.refusal(world.talk("d", 0, group)), .forbidden)
        },
        ConformanceCase("A member reads what was said since it joined, unless the group says otherwise") { makeStore in
            let world = try await StoreWorld(makeStore, people: 4)
            let group = try world.create([1])
            func readable(_ person: Int) async throws -> UInt64? {
                try await world.store.readableAfter(world[person].user, in: group)
            }
            let add = GroupCommand.changeMembers(group, MemberChanges(added: [world[2].user]))
            // The rule also applies to operations in one batch.
            _ = try world.store.commit(
                [
                    world.talk("a", 0, group), world.talk("b", 1, group), .group(add, by: world[0].user),
                    world.talk("c", 0, group),
                ],
                now: StoreWorld.now
            )
            try expectEqual(try await readable(0), 0)
            try expectEqual(try await readable(1), 0)
            try expectEqual(try await readable(2), 2)
            try expectEqual(try await readable(3), nil)
            // A new role, a transfer of the group and being added again change nothing.
            let promotion = MemberChanges.Role(user: world[2].user, role: .administrator)
            _ = try world.group(.changeMembers(group, MemberChanges(added: [world[2].user], roles: [promotion])))
            let transfer = MemberChanges.Role(user: world[2].user, role: .owner)
            _ = try world.group(.changeMembers(group, MemberChanges(roles: [transfer])))
            let back = MemberChanges.Role(user: world[0].user, role: .owner)
            _ = try world.group(.changeMembers(group, MemberChanges(roles: [back])), by: 2)
            try expectEqual(try await readable(2), 2)
            try expectEqual(try await world.store.group(group)?.readableAfter(world[2].user), 2)
            // A member who comes back can read only messages that were sent after its return.
            _ = try world.group(.leave(group), by: 1)
            try expectEqual(try await readable(1), nil)
            _ = try world.group(.changeMembers(group, MemberChanges(added: [world[1].user])))
            try expectEqual(try await readable(1), 3)
            _ = try world.group(.change(group, GroupChange(isHistoryOpen: true)))
            for person in 0...2 { try expectEqual(try await readable(person), 0) }
            _ = try world.group(.change(group, GroupChange(isHistoryOpen: false)))
            try expectEqual(try await readable(1), 3)
            _ = try world.group(.dissolve(group))
            try expectEqual(try await readable(0), nil)
        },
        ConformanceCase("Muting holds until its end") { makeStore in
            let world = try await StoreWorld(makeStore)
            let group = try world.create([1])
            let end = StoreWorld.later(.seconds(10))
            let mute = MemberChanges.Role(user: world[1].user, role: nil, mutedUntil: end)
            _ = try world.group(.changeMembers(group, MemberChanges(roles: [mute])))
            try expectEqual(try world.refusal(world.talk("a", 1, group)), .forbidden)
            guard case .appended = try world.commit(world.talk("b", 1, group), at: end) else {
                throw ConformanceFailure(description: "still muted")
            }
            _ = try world.group(.change(group, GroupChange(isMuted: true)))
            try expectEqual(try world.refusal(world.talk("c", 1, group), at: end), .forbidden)
            guard case .appended = try world.commit(world.talk("d", 0, group), at: end) else {
                throw ConformanceFailure(description: "the owner is muted")
            }
        },
    ]
}

extension StoreWorld {
    func contactOperation(
        _ command: ContactCommand,
        _ one: Int,
        _ other: Int,
        message: String = ""
    ) -> WriteOperation {
        .contact(command, by: people[one], peer: people[other].user, message: message)
    }

    func contact(_ command: ContactCommand, _ one: Int, _ other: Int, message: String = "") throws {
        let outcome = try commit(contactOperation(command, one, other, message: message))
        guard case .eventAppended = outcome else { throw ConformanceFailure(description: "refused: \(outcome)") }
    }

    /// Returns an account's contact list in short form: "2:accepted".
    fileprivate func contacts(_ person: Int) async throws -> [String] {
        try await store.contacts(of: people[person].user, after: nil, limit: 100)
            .map { "\($0.account.id):\($0.state)" }
    }

    /// Creates a group of the first person and these others.
    func create(_ others: [Int]) throws -> GroupID {
        try group(.create(name: "group", members: others.map { people[$0].user })).id
    }

    fileprivate func group(_ command: GroupCommand, by person: Int = 0) throws -> Group {
        let outcome = try commit(.group(command, by: people[person].user))
        guard case .groupChanged(let group, _) = outcome else {
            throw ConformanceFailure(description: "refused: \(outcome)")
        }
        return group
    }

    /// Returns the operation that sends a message to a group.
    func talk(_ text: String, _ person: Int, _ group: GroupID) -> WriteOperation {
        .append(message(text, from: person, to: group))
    }
}
