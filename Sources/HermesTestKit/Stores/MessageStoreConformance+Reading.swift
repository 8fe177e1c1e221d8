// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore

extension MessageStoreConformance {
    private static let withHistory = StoreSettings(historyPeriod: .seconds(10 * 24 * 3600))

    static let reading = [
        ConformanceCase("Pages follow one another without gap or overlap, whatever their size") { makeStore in
            let world = try await StoreWorld(makeStore)
            for index in 1...23 { try world.send("\(index)", from: 0, to: 1) }
            let expected = (1...23).map { "\($0):\($0)" }
            for limit in [1, 2, 7, 22, 23, 24, 1_000_000] {
                var found: [String] = []
                while found.count < 23 {
                    let page = try await world.inbox(1, after: UInt64(found.count), limit: limit)
                    try expect(!page.isEmpty && page.count <= limit)
                    found += page
                }
                try expectEqual(found, expected)
            }
            try expectEqual(try await world.inbox(1, after: 23), [])
            try expectEqual(try await world.inbox(1, after: 24), [])
            try expectEqual(try await world.inbox(1, after: .max), [])
            try expectEqual(try await world.inbox(1, limit: 0), [])
            try expectEqual(try await world.inbox(1, limit: -1), [])
        },
        ConformanceCase("A page is bounded in bytes, but never empty") { makeStore in
            let world = try await StoreWorld(makeStore, settings: withHistory)
            let text = String(repeating: "x", count: StoreSettings.maxPageBytes / 4 + 1)
            for _ in 1...6 { try world.send(text, from: 0, to: 1) }
            let page = try await world.store.entries(of: world[1].user, after: 0, limit: 100)
            try expectEqual(page.entries.count, 4)
            try expectEqual(page.position.head, 6)
            let history = try await world.store.history(of: world.conversation(0, 1), before: nil, limit: 100)
            try expectEqual(history.map(\.conversationSeq), [3, 4, 5, 6])
        },
        ConformanceCase("The inbox of nobody is empty") { makeStore in
            let world = try await StoreWorld(makeStore)
            guard let stranger = UserID(rawValue: 99) else {
                throw ConformanceFailure(description: "no user id")
            }
            let page = try await world.store.entries(of: stranger, after: 0, limit: 10)
            try expect(page.entries.isEmpty)
            try expectEqual([page.position.head, page.position.oldest], [0, 1])
            let position = try await world.store.position(of: world[0].user)
            try expectEqual([position.head, position.oldest], [0, 1])
            try expect(position.epoch != 0 && position.epoch == page.position.epoch)
            try expect(position.epoch <= UInt64(Int64.max))
        },
        ConformanceCase("A sender's name is today's") { makeStore in
            let world = try await StoreWorld(makeStore)
            try world.send("a", from: 0, to: 1)
            _ = try await world.store.update(world[0].user, AccountChange(nickName: StoreWorld.name("Renamed")))
            let page = try await world.store.entries(of: world[1].user, after: 0, limit: 1)
            guard case .message(let message) = page.entries.first?.event else {
                throw ConformanceFailure(description: "no message")
            }
            try expectEqual(message.senderName, "Renamed")
        },
        ConformanceCase("History gives what is stored, newest last, page by page") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3, settings: withHistory)
            for index in 1...5 { try world.send("\(index)", from: index % 2, to: (index + 1) % 2) }
            try world.send("other", from: 0, to: 2)
            let conversation = world.conversation(0, 1)
            func history(before seq: UInt64?, limit: Int) async throws -> [String] {
                try await world.store.history(of: conversation, before: seq, limit: limit)
                    .map { "\($0.conversationSeq):" + String(decoding: $0.content.bytes, as: UTF8.self) }
            }
            try expectEqual(try await history(before: nil, limit: 2), ["4:4", "5:5"])
            try expectEqual(try await history(before: 4, limit: 2), ["2:2", "3:3"])
            try expectEqual(try await history(before: 2, limit: 9), ["1:1"])
            try expectEqual(try await history(before: 1, limit: 9), [])
            try expectEqual(try await history(before: .max, limit: 9).count, 5)
            try expectEqual(try await history(before: nil, limit: 0), [])
            // Messages that a member may not read are left out, and a page ends with the message that fills it.
            func seqs(after first: UInt64, maxBytes: Int) async throws -> [UInt64] {
                let query = HistoryQuery(of: conversation, after: first, limit: 9, maxBytes: maxBytes)
                return try await world.store.history(query).messages.map(\.conversationSeq)
            }
            try expectEqual(try await seqs(after: 3, maxBytes: .max), [4, 5])
            try expectEqual(try await seqs(after: 5, maxBytes: .max), [])
            try expectEqual(try await seqs(after: .max, maxBytes: .max), [])
            try expectEqual(try await seqs(after: 0, maxBytes: 2), [4, 5])
            try expectEqual(try await seqs(after: 0, maxBytes: 0), [])
            try expectEqual(
                try await world.store.history(of: world.conversation(1, 2), before: nil, limit: 9),
                []
            )
        },
        ConformanceCase("Without history there is none, also of what still waits") { makeStore in
            let world = try await StoreWorld(makeStore)
            try world.send("a", from: 0, to: 1)
            let conversation = world.conversation(0, 1)
            try expectEqual(try await world.store.history(of: conversation, before: nil, limit: 9), [])
        },
        ConformanceCase("With history, content stays as long as that says, or until the message's own expiry") {
            makeStore in
            let world = try await StoreWorld(makeStore, settings: withHistory)
            try world.send("long", from: 0, to: 1)
            try world.send("short", from: 0, to: 1, lifetime: .seconds(60))
            for person in 0...1 { try world.acknowledge(person) }
            let conversation = world.conversation(0, 1)
            for (time, expected) in [(0, 2), (59, 2), (60, 1), (9 * 24 * 3600, 1), (10 * 24 * 3600, 0)] {
                try await world.purge(at: StoreWorld.later(.seconds(time)))
                let messages = try await world.store.history(of: conversation, before: nil, limit: 9)
                try expectEqual(messages.count, expected, "after \(time) s")
            }
            try expectEqual(try world.send("next", from: 1, to: 0).conversationSeq, 3)
        },
        ConformanceCase("History leaves out what has expired and is not purged") { makeStore in
            let world = try await StoreWorld(makeStore, settings: withHistory)
            for number in 1...4 {
                try world.send("\(number)", from: 0, to: 1, lifetime: number % 2 == 0 ? .seconds(60) : nil)
            }
            func seqs(limit: Int, at time: ExpiryTime) async throws -> [UInt64] {
                let query = HistoryQuery(of: world.conversation(0, 1), limit: limit, unexpiredAt: time)
                return try await world.store.history(query).messages.map(\.conversationSeq)
            }
            let later = StoreWorld.later(.seconds(60))
            try expectEqual(
                try await seqs(limit: 9, at: ExpiryTime(now: StoreWorld.later(.seconds(59)))),
                [1, 2, 3, 4]
            )
            try expectEqual(try await seqs(limit: 9, at: ExpiryTime(now: later)), [1, 3])
            try expectEqual(try await seqs(limit: 2, at: ExpiryTime(now: later)), [1, 3], "a page is full of others")
            // A message stays in the history after the time for which it waits for devices.
            let old = world.message("5", from: 0, to: 1, retention: .seconds(60))
            guard case .appended = try world.commit(.append(old)) else {
                throw ConformanceFailure(description: "refused")
            }
            let days = 24 * 3_600
            try expectEqual(
                try await seqs(limit: 9, at: ExpiryTime(now: StoreWorld.later(.seconds(9 * days)))),
                [1, 3, 5]
            )
            try expectEqual(try await seqs(limit: 9, at: ExpiryTime(now: StoreWorld.later(.seconds(10 * days)))), [])
            // Messages that were stored before the clock could be trusted stay.
            try expectEqual(try await seqs(limit: 9, at: ExpiryTime(now: later, storedSince: later)), [1, 2, 3, 4, 5])
        },
        ConformanceCase("A read of history passes over a bounded number of messages, and says where it ended") {
            makeStore in
            let world = try await StoreWorld(makeStore, settings: withHistory)
            for number in 1...7 {
                try world.send("\(number)", from: 0, to: 1, lifetime: number == 1 || number == 6 ? nil : .seconds(60))
            }
            let conversation = world.conversation(0, 1)
            let later = ExpiryTime(now: StoreWorld.later(.seconds(60)))
            func check(
                before seq: UInt64? = nil,
                limit: Int = 9,
                maxPassed: Int,
                _ seqs: [UInt64],
                passed: Int,
                next: UInt64? = nil
            ) async throws {
                let found = try await world.store.history(
                    HistoryQuery(
                        of: conversation,
                        before: seq,
                        limit: limit,
                        unexpiredAt: later,
                        maxPassed: maxPassed
                    )
                )
                try expectEqual(found.messages.map(\.conversationSeq), seqs)
                try expectEqual(found.passed, passed)
                try expectEqual(found.next, next)
            }
            try await check(maxPassed: 6, [1, 6], passed: 5)
            try await check(maxPassed: 5, [6], passed: 5, next: 2)
            try await check(maxPassed: 1, [], passed: 1, next: 7)
            try await check(before: 7, maxPassed: 2, [6], passed: 2, next: 4)
            try await check(before: 4, maxPassed: 3, [1], passed: 2)
            // A page ends without the limit if it is full, or if the history ends.
            try await check(limit: 1, maxPassed: 2, [6], passed: 1)
            try await check(before: 2, maxPassed: 1, [1], passed: 0)
            try await check(before: 1, maxPassed: 1, [], passed: 0)
        },
        ConformanceCase("Readers beside a writer see whole prefixes") { makeStore in
            let world = try await StoreWorld(makeStore)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for batch in 0..<40 {
                        let operations = (0..<25).map { index in
                            WriteOperation.append(world.message("\(batch * 25 + index + 1)", from: 0, to: 1))
                        }
                        _ = try world.store.commit(operations, now: StoreWorld.now)
                    }
                }
                for _ in 0..<3 {
                    group.addTask {
                        var last: UInt64 = 0
                        while last < 1000 {
                            let page = try await world.store.entries(of: world[1].user, after: last, limit: 100)
                            try StoreWorld.checkContiguity(page, after: last)
                            try expectEqual(page.position.head % 25, 0, "half a batch")
                            try expect(page.position.head >= last, "a commit was unseen")
                            for entry in page.entries {
                                try expectEqual(StoreWorld.summary(entry), "\(entry.seq):\(entry.seq)")
                                last = entry.seq
                            }
                            await Task.yield()
                        }
                    }
                }
                try await group.waitForAll()
            }
        },
    ]

    static let recalling = [
        ConformanceCase("A recall empties the message and tells all who had it") { makeStore in
            let world = try await StoreWorld(makeStore, settings: withHistory)
            let receipt = try world.send("a", from: 0, to: 1, clientID: "x")
            let conversation = world.conversation(0, 1)
            let recall = WriteOperation.recall(
                receipt.messageID,
                conversation,
                by: world[0].user,
                notBefore: StoreWorld.now
            )
            guard case .eventAppended(let deliveries) = try world.commit(recall) else {
                throw ConformanceFailure(description: "not recalled")
            }
            try expectEqual(Set(deliveries.map(\.user)), [world[0].user, world[1].user])
            try expectEqual(try await world.inbox(1), ["1:-", "2:recalled 1"])
            try expectEqual(try await world.inbox(0), ["1:-", "2:recalled 1"])
            let page = try await world.store.entries(of: world[1].user, after: 1, limit: 1)
            try expectEqual(
                page.entries.first?.event,
                .recalled(
                    RecalledMessage(receipt.messageID, in: conversation, conversationSeq: 1, by: world[0].user)
                )
            )
            let history = try await world.store.history(of: conversation, before: nil, limit: 9)
            try expectEqual(history.map(\.isRecalled), [true])
            try expectEqual(history.first?.content.bytes, [])
            // A second recall changes nothing. The client id stays in use.
            guard case .eventAppended(let none) = try world.commit(recall) else {
                throw ConformanceFailure(description: "refused")
            }
            try expectEqual(none.count, 0)
            guard case .duplicate = try world.commit(.append(world.message("a", from: 0, to: 1, clientID: "x"))) else {
                throw ConformanceFailure(description: "sent twice")
            }
            let other = world.message("b", from: 0, to: 1, clientID: "x")
            try expectEqual(try world.refusal(.append(other)), .clientIDConflict)
        },
        ConformanceCase("Only the sender recalls, in time, what exists in that conversation") { makeStore in
            let world = try await StoreWorld(makeStore, people: 3)
            let id = try world.send("a", from: 0, to: 1).messageID
            let conversation = world.conversation(0, 1)
            let sender = world[0].user
            func refusal(
                _ id: MessageID,
                _ conversation: ConversationID,
                _ user: UserID,
                _ time: Timestamp
            ) throws -> HermesError.Code {
                try world.refusal(.recall(id, conversation, by: user, notBefore: time))
            }
            try expectEqual(try refusal(id, conversation, world[1].user, StoreWorld.now), .forbidden)
            try expectEqual(try refusal(id, conversation, world[2].user, StoreWorld.now), .forbidden)
            try expectEqual(
                try refusal(id, conversation, sender, Timestamp(rawValue: StoreWorld.now.rawValue + 1)),
                .forbidden
            )
            try expectEqual(try refusal(StoreWorld.nextID(), conversation, sender, StoreWorld.now), .notFound)
            try expectEqual(try refusal(id, world.conversation(0, 2), sender, StoreWorld.now), .notFound)
            try expectEqual(try await world.inbox(1), ["1:a"])
        },
        ConformanceCase("What was delivered and purged can still be recalled, for a day") { makeStore in
            let world = try await StoreWorld(makeStore)
            let id = try world.send("a", from: 0, to: 1).messageID
            for person in 0...1 { try world.acknowledge(person) }
            try await world.purge()
            let recall = WriteOperation.recall(
                id,
                world.conversation(0, 1),
                by: world[0].user,
                notBefore: StoreWorld.now
            )
            guard case .eventAppended(let deliveries) = try world.commit(recall) else {
                throw ConformanceFailure(description: "not recalled")
            }
            try expectEqual(deliveries.count, 2)
            try expectEqual(try await world.inbox(1), ["1-1:hole", "2:recalled 1"])
            try await world.purge(at: StoreWorld.later(.seconds(25 * 3600)))
            try expectEqual(try world.refusal(recall), .notFound)
        },
    ]
}
