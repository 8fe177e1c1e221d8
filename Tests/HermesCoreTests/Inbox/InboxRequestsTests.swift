// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// The rules for the requests of accounts to their inboxes and conversations.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct InboxRequestsTests {
    private let store = FakeStore()
    private let time = ManualTime()
    private let messenger: Messenger
    private let pair: ConversationID

    init() async throws {
        messenger = Messenger(
            store.base,
            messages: store,
            settings: MessageSettings {
                $0.maxConcurrentReads = 1
                $0.maxWaitingReads = 80
            },
            time: time
        )
        try await addAccounts(4, to: store.base)
        pair = .direct(between: try user(1), and: try user(2))
    }

    @discardableResult
    private func send(
        _ text: String = "hi",
        to conversation: ConversationID,
        lifetime: Duration? = nil
    ) async throws -> SendReceipt {
        let draft = MessageDraft(
            conversation: conversation,
            clientID: nil,
            content: MessageContent(bytes: Array(text.utf8)),
            expiresAfter: lifetime
        )
        let sender = try principal(1)
        return try await withCheckedContinuation { continuation in
            messenger.messages.send(draft, from: sender) { continuation.resume(returning: $0) }
        }.get()
    }

    private func reply(
        _ request: InboxRequest,
        for number: Int32,
        maxBytes: Int = .max
    ) async throws -> InboxReply {
        let user = try user(number)
        return try await withCheckedContinuation { continuation in
            messenger.inbox.answer(request, for: user, maxBytes: maxBytes) { continuation.resume(returning: $0) }
        }.get()
    }

    private func history(_ request: InboxRequest, for number: Int32, maxBytes: Int = .max) async throws -> HistoryPage {
        guard case .history(let page) = try await reply(request, for: number, maxBytes: maxBytes).answer else {
            throw HermesError(.internalError, "not history")
        }
        return page
    }

    private func delivered(after seq: UInt64, head: UInt64, to number: Int32) async throws -> InboxReply {
        let user = try user(number)
        return try await withCheckedContinuation { continuation in
            messenger.inbox.deliver(to: user, after: seq, limit: 10, head: head, source: .account(user)) {
                continuation.resume(returning: $0)
            }
        }.get()
    }

    @Test
    func `for a client that has all entries no page is read`() async throws {
        try await send(to: pair)
        let pages = store.pageReads
        let reply = try await delivered(after: 1, head: 1, to: 2)
        #expect(store.pageReads == pages)
        guard case .page(let page) = reply.answer else { throw HermesError(.internalError, "not a page") }
        #expect(page.entries.isEmpty && page.position.head == 1)
        #expect(reply.cost?.entries == 0)
    }

    @Test
    func `a client whose head is old gets what was committed since`() async throws {
        for seq in 1...3 { try await send("\(seq)", to: pair) }
        for (after, head) in [(0, 0), (1, 1), (1, 3), (2, 2), (0, 3)] as [(UInt64, UInt64)] {
            guard case .page(let page) = try await delivered(after: after, head: head, to: 2).answer else {
                throw HermesError(.internalError, "not a page")
            }
            #expect(page.entries.map(\.seq) == Array(after + 1...3), "after \(after), head \(head)")
            #expect(page.position.head == 3)
        }
    }

    @Test
    func `who names no limit gets as many as is usual, and nobody more than the most`() {
        for (limit, usual, most) in [
            (.inbox, 200, 1_000), (.history, 50, 500), (.conversations, 100, 1_000),
        ] as [(PageLimit, Int, Int)] {
            #expect(limit.usual == usual && limit.most == most)
            #expect(limit.applied(to: 0) == limit.usual && limit.applied(to: -1) == limit.usual)
            #expect(limit.applied(to: 1) == 1 && limit.applied(to: limit.most) == limit.most)
            #expect(limit.applied(to: limit.most + 1) == limit.most && limit.applied(to: .max) == limit.most)
            #expect(limit.most <= StoreSettings.maxPageEntries && limit.usual <= limit.most)
        }
    }

    @Test
    func `who takes no part is refused, whatever it asks`() async throws {
        let message = try await send(to: pair).messageID
        let group = try await messenger.groups.apply(
            .create(name: "three", members: [try user(2), try user(3)]),
            by: principal(1)
        )
        let closed = ConversationID.group(group.id)
        let inGroup = try await send(to: closed).messageID
        for (conversation, id) in [(pair, message), (closed, inGroup)] {
            for request in [
                InboxRequest.history(conversation, before: nil, limit: 0), .markRead(conversation, upTo: 1),
                .recall(id, in: conversation),
            ] {
                #expect(await code { _ = try await reply(request, for: 4) } == .forbidden, "\(request)")
            }
        }
        // A member is not permitted to recall the message of another member, either.
        #expect(await code { _ = try await reply(.recall(inGroup, in: closed), for: 2) } == .forbidden)
        #expect(await code { _ = try await reply(.recall(message, in: closed), for: 1) } == .notFound)
        // No user can have this conversation.
        let wrongWay = ConversationID.direct(try user(2), try user(1))
        for request in [
            InboxRequest.history(wrongWay, before: nil, limit: 0), .markRead(wrongWay, upTo: 1),
            .recall(message, in: wrongWay),
        ] {
            #expect(await code { _ = try await reply(request, for: 1) } == .forbidden, "\(request)")
        }
        for zero in [pair, closed] {
            #expect(await code { _ = try await reply(.markRead(zero, upTo: 0), for: 1) } == .invalidArgument)
        }
        await messenger.shutdown()
    }

    @Test
    func `a page ends at its limit and at its bytes, has at least one entry, and tells that more follow`() async throws
    {
        for number in 0..<5 { try await send(String(repeating: "\(number)", count: 1_000), to: pair) }
        let whole = try await history(.history(pair, before: nil, limit: 5), for: 2)
        #expect(whole.messages.map(\.conversationSeq) == [1, 2, 3, 4, 5] && !whole.hasMore)
        for (limit, maxBytes, seqs) in [
            (2, Int.max, [4, 5]), (5, 3_100, [4, 5]), (5, 3_024, [4, 5]), (5, 3_023, [5]), (5, 1, [5]), (1, 1, [5]),
        ] as [(Int, Int, [UInt64])] {
            let page = try await history(.history(pair, before: nil, limit: limit), for: 2, maxBytes: maxBytes)
            #expect(page.messages.map(\.conversationSeq) == seqs && page.hasMore, "\(limit) \(maxBytes)")
        }
        let last = try await history(.history(pair, before: 2, limit: 1), for: 2)
        #expect(last.messages.map(\.conversationSeq) == [1] && !last.hasMore)

        for (limit, maxBytes, count) in [(0, Int.max, 5), (3, .max, 3), (5, 3_024, 2), (5, 0, 1)] {
            let reply = try await reply(.page(after: 0, limit: limit), for: 2, maxBytes: maxBytes)
            guard case .page(let page) = reply.answer else { throw HermesError(.internalError, "not a page") }
            #expect(page.entries.map(\.seq) == Array(1...UInt64(count)) && page.position.head == 5)
            // All entries that were read are paid for, even if some of them are cut off.
            let read = limit == 0 ? 5 : limit
            #expect(reply.cost == ReadCost(entries: read, bytes: 1_000 * read))
        }
        let cost = try await reply(.history(pair, before: nil, limit: 2), for: 2).cost
        #expect(cost == ReadCost(entries: 3, bytes: 3_000))
        // The reply tells the payer whom the change reaches: the reader and the other account.
        let reached = InboxReply(answer: .done, cost: nil, reach: ChangeReach(entries: 2, devices: 0))
        #expect(try await reply(.markRead(pair, upTo: 1), for: 2) == reached)
        await messenger.shutdown()
    }

    @Test
    func `a page of conversations ends at its limit and at its bytes, and the next one goes on behind it`() async throws
    {
        let group = try await messenger.groups.apply(.create(name: "all", members: [try user(2)]), by: principal(1))
        for number: Int32 in 2...4 { try await send(to: .direct(between: try user(1), and: try user(number))) }
        let places: [ConversationPlace] = [
            .user(try user(2)), .user(try user(3)), .user(try user(4)), .group(group.id),
        ]
        func page(after place: ConversationPlace?, limit: Int, maxBytes: Int) async throws -> ConversationPage {
            let reply = try await reply(.conversations(after: place, limit: limit), for: 1, maxBytes: maxBytes)
            guard case .conversations(let page) = reply.answer else { throw HermesError(.internalError, "not a page") }
            // All entries that were read are paid for, even if some of them are cut off.
            let left = places.filter { place == nil || $0 > place ?? $0 }.count
            #expect(reply.cost?.entries == min(left, limit))
            return page
        }
        let one = ConversationPage.entryOverhead
        for (limit, maxBytes, count) in [(9, Int.max, 4), (2, .max, 2), (9, 3 * one, 2), (9, 2 * one, 1), (9, 0, 1)] {
            var found: [ConversationPlace] = []
            var place: ConversationPlace?
            var sizes: [Int] = []
            repeat {
                let page = try await page(after: place, limit: limit, maxBytes: maxBytes)
                found += page.conversations.map(\.place)
                sizes.append(page.conversations.count)
                place = page.next
                #expect(place == nil || place == found.last)
            } while place != nil && sizes.count < 9
            #expect(found == places && sizes[0] == count, "\(limit) \(maxBytes): \(sizes)")
        }
        await messenger.shutdown()
    }

    @Test
    func `a page that the store has cut says that more follow`() async throws {
        let large = String(repeating: "x", count: 65_536)
        let count = StoreSettings.maxPageBytes / 65_536 + 2
        for _ in 0..<count { try await send(large, to: pair) }
        let page = try await history(.history(pair, before: nil, limit: count), for: 2)
        #expect(page.messages.count < count && page.hasMore)
        let rest = try await history(.history(pair, before: page.messages[0].conversationSeq, limit: count), for: 2)
        #expect(page.messages.count + rest.messages.count == count && !rest.hasMore)
        await messenger.shutdown()
    }

    /// Sends 40 messages and lets them expire.
    private func sendExpired() async throws {
        for _ in 0..<40 { try await send(to: pair, lifetime: .seconds(60)) }
        time.advance(by: .seconds(61))
    }

    @Test
    func `expired messages that are not purged are paid for, and do not end the history`() async throws {
        store.maxPassed.withLock { $0 = 2 }
        try await send("old", to: pair)
        try await sendExpired()
        let reply = try await reply(.history(pair, before: nil, limit: 1), for: 2)
        guard case .history(let page) = reply.answer else { throw HermesError(.internalError, "not history") }
        #expect(page.messages.map(\.conversationSeq) == [1] && !page.hasMore)
        #expect(reply.cost == ReadCost(entries: 1 + 40 / ReadCost.passedPerEntry, bytes: 3))
        // A page that has a message may end before the expired messages.
        try await send("new", to: pair)
        let first = try await history(.history(pair, before: nil, limit: 9), for: 2)
        #expect(first.messages.map(\.conversationSeq) == [42] && first.hasMore)
        let second = try await history(.history(pair, before: 42, limit: 9), for: 2)
        #expect(second.messages.map(\.conversationSeq) == [1] && !second.hasMore)
        let none = try await history(.history(pair, before: 1, limit: 9), for: 2)
        #expect(none.messages.isEmpty && !none.hasMore)
        await messenger.shutdown()
    }

    @Test
    func `a page without messages is the last one`() async throws {
        store.maxPassed.withLock { $0 = 2 }
        try await sendExpired()
        let reply = try await reply(.history(pair, before: nil, limit: 9), for: 2)
        #expect(reply.answer == .history(HistoryPage(messages: [], hasMore: false)))
        #expect(reply.cost == ReadCost(entries: 40 / ReadCost.passedPerEntry, bytes: 0))
        await messenger.shutdown()
    }

    @Test
    func `who reads past many expired messages lets others read in between`() async throws {
        store.maxPassed.withLock { $0 = 2 }
        try await sendExpired()
        let release = store.holdReads()
        let order = Collector<String>()
        let (reader, other) = (try user(2), try user(3))
        // Only one read runs at a time.
        messenger.inbox.answer(.history(pair, before: nil, limit: 9), for: reader) { _ in order.add("history") }
        messenger.inbox.answer(.page(after: 0, limit: 1), for: other) { _ in order.add("page") }
        release()
        #expect(await order.next(2) == ["page", "history"])
        await messenger.shutdown()
    }

    @Test
    func `what was written before a member joined is not in its history`() async throws {
        let group = try await messenger.groups.apply(.create(name: "two", members: [try user(2)]), by: principal(1))
        let conversation = ConversationID.group(group.id)
        for _ in 0..<3 { try await send(to: conversation) }
        let changes = MemberChanges(added: [try user(3)])
        _ = try await messenger.groups.apply(.changeMembers(group.id, changes), by: principal(1))
        try await send(to: conversation)
        let old = try await history(.history(conversation, before: nil, limit: 2), for: 2)
        #expect(old.messages.map(\.conversationSeq) == [3, 4] && old.hasMore)
        let new = try await history(.history(conversation, before: nil, limit: 2), for: 3)
        #expect(new.messages.map(\.conversationSeq) == [4] && !new.hasMore)
        await messenger.shutdown()
    }

    @Test(arguments: 0..<3)
    func `all that reads waits for its turn, and who asks for too much is refused`(_ kind: Int) async throws {
        let request = [
            InboxRequest.page(after: 0, limit: 1), .history(pair, before: nil, limit: 1),
            .conversations(after: nil, limit: 1),
        ][kind]
        let release = store.holdReads()
        let results = Collector<HermesError.Code?>()
        let me = try user(1)
        // One request runs, an eighth of the room may wait, and two requests are too many.
        for _ in 0..<13 {
            messenger.inbox.answer(request, for: me) { result in
                if case .failure(let error) = result { results.add(error.code) } else { results.add(nil) }
            }
        }
        #expect(await results.next(2) == [.overloaded, .overloaded])
        release()
        #expect(await results.next(11) == Array(repeating: nil, count: 11))
        await messenger.shutdown()
    }
}
