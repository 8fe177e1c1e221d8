// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

/// The cases for every ``MessageStore``. Each concern has its own file.
package enum MessageStoreConformance {
    package static var cases: [ConformanceCase] {
        appending + repetitions + cursors + purging + reading + recalling + conversations + pushes + budgets
    }

    static let appending = [
        ConformanceCase("A message stands in each recipient's inbox, numbered from 1 without gaps") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            let first = try world.send("a", from: 0, to: 1)
            let second = try world.send("b", from: 1, to: 0)
            let third = try world.send("c", from: 2, to: 1)
            try expectEqual([first.inboxSeq, second.inboxSeq, third.inboxSeq], [1, 2, 1])
            try expectEqual([first, second, third].map(\.conversationSeq), [1, 2, 1])
            try expectEqual(try await world.inbox(0), ["1:a", "2:b"])
            try expectEqual(try await world.inbox(1), ["1:a", "2:b", "3:c"])
            try expectEqual(try await world.inbox(2), ["1:c"])
        },
        ConformanceCase("A delivery is what is read later") { makeStore in
            let world = try await StoreWorld(makeStore)
            let append = world.message("hello", from: 0, to: 1, clientID: "c1")
            let outcome = try world.commit(.append(append), at: StoreWorld.later(.seconds(1)))
            guard case .appended(let receipt, let deliveries) = outcome else {
                throw ConformanceFailure(description: "not appended: \(outcome)")
            }
            try expectEqual(receipt.messageID, append.id)
            try expectEqual(receipt.clientID, "c1")
            try expectEqual(receipt.sentAt, append.sentAt)
            try expect(!receipt.isDuplicate)
            try expectEqual(deliveries.map(\.user), append.recipients)
            for delivery in deliveries {
                let page = try await world.store.entries(of: delivery.user, after: 0, limit: 10)
                try expectEqual(page.entries, [delivery.entry])
                try expectEqual(delivery.entry.committedAt, StoreWorld.later(.seconds(1)))
                guard case .message(let message) = delivery.entry.event else {
                    throw ConformanceFailure(description: "no message")
                }
                try expectEqual(message.senderDevice, StoreWorld.phone)
                try expectEqual(message.senderName, "User1")
                try expectEqual(message.expiresAt, append.expiresAt)
            }
        },
        ConformanceCase("A message to oneself is one entry") { makeStore in
            let world = try await StoreWorld(makeStore)
            let receipt = try world.send("note", from: 0, to: 0)
            try expectEqual(receipt.inboxSeq, 1)
            try expectEqual(try await world.inbox(0), ["1:note"])
            try expectEqual(try await world.inbox(1), [])
        },
        ConformanceCase("An operation that is refused changes nothing and does not disturb the others") { makeStore in
            let world = try await StoreWorld(makeStore)
            guard let stranger = UserID(rawValue: 77) else {
                throw ConformanceFailure(description: "no user id")
            }
            let bad = world.message("lost", from: 0, to: 1)
            let toStranger = MessageAppend(
                id: bad.id,
                draft: bad.draft,
                sender: bad.sender,
                sentAt: bad.sentAt,
                expiresAt: bad.expiresAt,
                recipients: [bad.sender.user, stranger]
            )
            let outcomes = try world.store.commit(
                [
                    .append(world.message("a", from: 0, to: 1)),
                    .append(toStranger),
                    .markRead(.direct(between: world[0].user, and: stranger), by: stranger, upTo: 1),
                    .acknowledge(stranger, StoreWorld.phone, upTo: 1),
                    .append(world.message("b", from: 0, to: 1)),
                ],
                now: StoreWorld.now
            )
            try expectEqual(outcomes.count, 5)
            for outcome in outcomes[1...3] {
                guard case .refused(let error) = outcome else {
                    throw ConformanceFailure(description: "not refused: \(outcome)")
                }
                try expectEqual(error.code, .notFound)
            }
            try expectEqual(try await world.inbox(0), ["1:a", "2:b"])
            try expectEqual(try await world.inbox(1), ["1:a", "2:b"])
            try expectEqual(try world.send("c", from: 0, to: 1).conversationSeq, 3)
        },
        ConformanceCase("Each recipient is named once, and there is one at least") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            let good = world.message("a", from: 0, to: 1)
            for recipients in [[], [0, 0], [0, 1, 2, 1]] {
                let bad = MessageAppend(
                    id: StoreWorld.nextID(),
                    draft: good.draft,
                    sender: good.sender,
                    sentAt: good.sentAt,
                    expiresAt: good.expiresAt,
                    recipients: recipients.map { world[$0].user }
                )
                try expectEqual(try world.refusal(.append(bad)), .invalidArgument)
            }
            try expectEqual(try await world.inbox(0), [])
        },
        ConformanceCase("An id that is taken is refused") { makeStore in
            let world = try await StoreWorld(makeStore)
            let first = world.message("a", from: 0, to: 1)
            let second = world.message("b", from: 1, to: 0, id: first.id)
            _ = try world.commit(.append(first))
            try expectEqual(try world.refusal(.append(second)), .internalError)
            try expectEqual(try await world.inbox(1), ["1:a"])
        },
        ConformanceCase("Ids that share their upper half are different ids") { makeStore in
            let world = try await StoreWorld(makeStore)
            let ids = [5, 4, 7, 6].map { MessageID(high: .max, low: $0) } + [1, 2].map { MessageID(high: 9, low: $0) }
            for (index, id) in ids.enumerated() {
                _ = try world.commit(
                    .append(world.message("\(index)", from: 0, to: 1, clientID: "c\(index)", id: id))
                )
                try expectEqual(try world.refusal(.append(world.message("x", from: 0, to: 1, id: id))), .internalError)
            }
            let page = try await world.store.entries(of: world[1].user, after: 0, limit: 100)
            let found = page.entries.compactMap { entry -> MessageID? in
                guard case .message(let message) = entry.event else { return nil }
                return message.id
            }
            try expectEqual(found, ids)
            for index in found.indices {
                let again = world.message("\(index)", from: 0, to: 1, clientID: "c\(index)")
                guard case .duplicate(let receipt) = try world.commit(.append(again)) else {
                    throw ConformanceFailure(description: "sent twice")
                }
                try expectEqual(receipt.messageID, ids[index])
                let recall = WriteOperation.recall(
                    ids[index],
                    world.conversation(0, 1),
                    by: world[0].user,
                    notBefore: StoreWorld.now
                )
                _ = try world.commit(recall)
                let events = try await world.store.entries(
                    of: world[1].user,
                    after: UInt64(ids.count + index),
                    limit: 1
                )
                try expectEqual(
                    events.entries.first?.event,
                    .recalled(
                        RecalledMessage(
                            ids[index],
                            in: world.conversation(0, 1),
                            conversationSeq: UInt64(index + 1),
                            by: world[0].user
                        )
                    )
                )
            }
        },
        ConformanceCase("Groups number their messages on their own and reach all their members") { makeStore in
            let world = try await StoreWorld(makeStore, people: 4)
            let members = [world[0].user, world[3].user]
            let create = WriteOperation.group(.create(name: "group", members: members), by: world[2].user)
            guard case .groupChanged(let created, _) = try world.commit(create) else {
                throw ConformanceFailure(description: "not created")
            }
            let group = created.id
            let direct = world.message("hello", from: 2, to: 0)
            for seq in 1...3 {
                let append = MessageAppend(
                    id: StoreWorld.nextID(),
                    draft: MessageDraft(
                        conversation: .group(group),
                        clientID: "g\(seq)",
                        content: direct.draft.content
                    ),
                    sender: world[2],
                    sentAt: direct.sentAt,
                    expiresAt: direct.expiresAt,
                    recipients: []
                )
                guard case .appended(let receipt, _) = try world.commit(.append(append)) else {
                    throw ConformanceFailure(description: "not appended")
                }
                try expectEqual(receipt.conversationSeq, UInt64(seq))
            }
            for person in [0, 2, 3] { try expectEqual(try await world.inbox(person, after: 1).count, 3) }
            try expectEqual(try await world.inbox(1), [])
            let page = try await world.store.entries(of: world[3].user, after: 3, limit: 1)
            guard case .message(let message) = page.entries.first?.event else {
                throw ConformanceFailure(description: "no message")
            }
            try expectEqual(message.conversation, .group(group))
        },
        ConformanceCase("A read mark stands in the inboxes of both, the reader's first") { makeStore in
            let world = try await StoreWorld(makeStore)
            try world.send("a", from: 0, to: 1)
            let mark = WriteOperation.markRead(world.conversation(0, 1), by: world[1].user, upTo: 1)
            guard case .eventAppended(let deliveries) = try world.commit(mark) else {
                throw ConformanceFailure(description: "not appended")
            }
            try expectEqual(deliveries.map(\.user), [world[1].user, world[0].user])
            let page = try await world.store.entries(of: world[0].user, after: 1, limit: 10)
            try expectEqual(page.entries, [deliveries[1].entry])
            let event = InboxEvent.readMark(ReadMark(world.conversation(0, 1), by: world[1].user, upTo: 1))
            try expectEqual(page.entries.first?.event, event)
        },
        ConformanceCase("An empty batch and empty contents are fine") { makeStore in
            let world = try await StoreWorld(makeStore)
            try expectEqual(try world.store.commit([WriteOperation](), now: StoreWorld.now).count, 0)
            try world.send("", from: 0, to: 1)
            try expectEqual(try await world.inbox(1), ["1:"])
        },
    ]

    static let repetitions = [
        ConformanceCase("Sending a client id again gives the first receipt and nothing else") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            let first = world.message("a", from: 0, to: 1, clientID: "x")
            let again = world.message("a", from: 0, to: 1, clientID: "x", at: StoreWorld.later(.seconds(9)))
            let outcomes = try world.store.commit([.append(first), .append(again)], now: StoreWorld.now)
            guard case .appended(let receipt, _) = outcomes[0], case .duplicate(let inBatch) = outcomes[1],
                case .duplicate(let later) = try world.commit(.append(again))
            else { throw ConformanceFailure(description: "not a duplicate: \(outcomes)") }
            for duplicate in [inBatch, later] {
                try expect(duplicate.isDuplicate)
                try expectEqual(duplicate.messageID, receipt.messageID)
                try expectEqual(duplicate.inboxSeq, receipt.inboxSeq)
                try expectEqual(duplicate.conversationSeq, receipt.conversationSeq)
                try expectEqual(duplicate.sentAt, receipt.sentAt)
                try expectEqual(duplicate.clientID, "x")
            }
            try expectEqual(try await world.inbox(1), ["1:a"])
            // Each sender has its own client ids. Without a client id, every message is new.
            try world.send("a", from: 2, to: 1, clientID: "x")
            try world.send("b", from: 0, to: 1)
            try world.send("b", from: 0, to: 1)
            try expectEqual(try await world.inbox(1), ["1:a", "2:a", "3:b", "4:b"])
            try expectEqual(try world.send("c", from: 0, to: 1).conversationSeq, 4)
        },
        ConformanceCase("Client ids are compared byte by byte") { makeStore in
            let world = try await StoreWorld(makeStore)
            let ids = ["\u{E9}", "e\u{301}"]
            for (text, id) in zip(["a", "b"], ids) { try world.send(text, from: 0, to: 1, clientID: id) }
            try expectEqual(try await world.inbox(1), ["1:a", "2:b"])
            for (text, id) in zip(["a", "b"], ids) {
                let again = world.message(text, from: 0, to: 1, clientID: id)
                guard case .duplicate(let receipt) = try world.commit(.append(again)) else {
                    throw ConformanceFailure(description: "not a duplicate")
                }
                try expect(receipt.clientID?.utf8.elementsEqual(id.utf8) == true)
            }
        },
        ConformanceCase("What must be a repetition is refused if it is none") { makeStore in
            let world = try await StoreWorld(makeStore, people: 2)
            var new = world.message("a", from: 0, to: 1, clientID: "x")
            new.mustBeRepetition = true
            guard case .refused(let refusal) = try world.commit(.append(new)), refusal.code == .rateLimited
            else { throw ConformanceFailure(description: "not refused") }
            let receipt = try world.send("a", from: 0, to: 1, clientID: "x")
            guard case .duplicate(let again) = try world.commit(.append(new)), again.messageID == receipt.messageID
            else { throw ConformanceFailure(description: "not a duplicate") }
            try expectEqual(try await world.inbox(1), ["1:a"])
        },
        ConformanceCase("A client id with other content, or for another conversation, is a conflict") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            try world.send("a", from: 0, to: 1, clientID: "x")
            for (text, receiver) in [("b", 1), ("a", 2), ("", 1)] {
                let other = world.message(text, from: 0, to: receiver, clientID: "x")
                try expectEqual(try world.refusal(.append(other)), .clientIDConflict)
            }
            try expectEqual(try await world.inbox(2), [])
            try expectEqual(try world.send("c", from: 0, to: 2).conversationSeq, 1)
        },
        ConformanceCase("A repetition is recognised after the message was delivered and purged, for a day") {
            makeStore in
            let world = try await StoreWorld(makeStore)
            let receipt = try world.send("a", from: 0, to: 1, clientID: "x")
            for person in 0...1 { try world.acknowledge(person) }
            try await world.purge()
            try expectEqual(try await world.inbox(1), ["1-1:hole"])
            let soon = StoreWorld.later(.seconds(23 * 3600))
            try await world.purge(at: soon)
            let again = world.message("a", from: 0, to: 1, clientID: "x", at: soon)
            guard case .duplicate(let duplicate) = try world.commit(.append(again), at: soon) else {
                throw ConformanceFailure(description: "sent twice")
            }
            try expectEqual(duplicate.messageID, receipt.messageID)
            try expectEqual(duplicate.inboxSeq, 1)
            let other = world.message("b", from: 0, to: 1, clientID: "x")
            try expectEqual(try world.refusal(.append(other)), .clientIDConflict)

            let late = StoreWorld.later(.seconds(25 * 3600))
            try await world.purge(at: late)
            try world.send("b", from: 0, to: 1, clientID: "x", at: late)
            try expectEqual(try await world.inbox(1, after: 1), ["2:b"])
        },
    ]
}
