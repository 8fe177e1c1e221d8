// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1))) struct MessageServiceTests {
    private let store = FakeStore()
    private let time = ManualTime()
    private let messenger: Messenger

    init() async throws {
        messenger = Messenger(store.base, messages: store, time: time)
        try await addAccounts(3, to: store.base)
    }

    private func draft(
        _ text: String = "hi",
        from one: Int32 = 1,
        to other: Int32 = 2,
        clientID: String? = nil,
        expiresAfter: Duration? = nil
    ) throws -> MessageDraft {
        MessageDraft(
            conversation: .direct(between: try user(one), and: try user(other)),
            clientID: clientID,
            content: MessageContent(bytes: Array(text.utf8)),
            expiresAfter: expiresAfter
        )
    }

    private func send(
        _ draft: MessageDraft,
        from sender: Principal,
        over other: Messenger? = nil
    ) async throws -> SendReceipt {
        try await withCheckedContinuation { continuation in
            (other ?? messenger).messages.send(draft, from: sender) { continuation.resume(returning: $0) }
        }.get()
    }

    private func entries(
        of number: Int32,
        after seq: UInt64 = 0,
        over other: Messenger? = nil
    ) async throws -> [InboxEntry] {
        let answer = try await (other ?? messenger).inbox.answer(.page(after: seq, limit: 100), for: try user(number))
        guard case .page(let page) = answer else { throw HermesError(.internalError, "not a page") }
        return page.entries
    }

    @Test func `sends to both sides`() async throws {
        let receiver = RecordingAttachment(try principal(2))
        messenger.devices.attach(receiver)
        let receipt = try await send(draft(clientID: "c1"), from: principal(1))
        #expect(receipt.conversationSeq == 1)
        #expect(receipt.inboxSeq == 1)
        #expect(receipt.messageID.timestamp == time.now())
        await messenger.shutdown()
        for number in [1, 2] as [Int32] {
            guard case .message(let message)? = try await entries(of: number).first?.event else {
                Issue.record("no message")
                continue
            }
            #expect(message.id == receipt.messageID)
            #expect(message.senderDevice == (try device("phone")))
            #expect(message.expiresAt == time.now().advanced(by: .seconds(30 * 24 * 3600)))
        }
        #expect(receiver.calls.map { $0.map(\.seq) } == [[1]])
    }

    @Test func `sending again is the same`() async throws {
        let first = try await send(draft(clientID: "c1"), from: principal(1))
        let again = try await send(draft(clientID: "c1"), from: principal(1, "pad"))
        #expect(again.isDuplicate)
        #expect(again.messageID == first.messageID)
        #expect(
            await code { _ = try await send(draft("other", clientID: "c1"), from: principal(1)) } == .clientIDConflict
        )
        #expect(try await entries(of: 2).count == 1)
        await messenger.shutdown()
    }

    @Test func `refuses what is not allowed`() async throws {
        let sender = try principal(1)
        func refusal(_ draft: MessageDraft) async -> HermesError.Code? {
            await code { _ = try await send(draft, from: sender) }
        }
        #expect(await refusal(try draft(from: 2, to: 3)) == .forbidden)
        #expect(await refusal(try draft(to: 99)) == .notFound)
        #expect(await refusal(try draft("")) == .invalidArgument)
        #expect(await refusal(try draft(String(repeating: "x", count: 65_537))) == .tooLarge)
        #expect(await refusal(try draft(String(repeating: "x", count: 65_536))) == nil)
        #expect(await refusal(try draft(clientID: "")) == .invalidArgument)
        #expect(await refusal(try draft(clientID: String(repeating: "x", count: 65))) == .tooLarge)
        #expect(await refusal(try draft(clientID: String(repeating: "x", count: 64))) == nil)
        #expect(await refusal(try draft(expiresAfter: .zero)) == .invalidArgument)
        var wrongWay = try draft()
        wrongWay.conversation = .direct(try user(2), try user(1))
        #expect(await refusal(wrongWay) == .forbidden)
        wrongWay.conversation = .group(try #require(GroupID(rawValue: 1)))
        #expect(await refusal(wrongWay) == .forbidden)
        #expect(await refusal(try draft(to: 1)) == nil)
        await messenger.shutdown()
        #expect(await refusal(try draft()) == .shuttingDown)
    }

    @Test func `expiry is bounded by retention`() async throws {
        for (asked, expected) in [
            (Duration.seconds(5), Duration.seconds(5)), (.seconds(1e12), .seconds(30 * 24 * 3600)),
        ] {
            _ = try await send(draft(expiresAfter: asked), from: principal(1))
            guard case .message(let message)? = try await entries(of: 2).last?.event else {
                Issue.record("no message")
                continue
            }
            #expect(message.expiresAt == time.now().advanced(by: expected))
        }
        await messenger.shutdown()
    }

    private func recall(_ id: MessageID, by caller: Principal) async throws {
        let conversation = try draft().conversation
        _ = try await messenger.inbox.answer(.recall(id, in: conversation), for: caller.user)
    }

    @Test func `recalls one's own while it is young`() async throws {
        let receipt = try await send(draft(), from: principal(1))
        #expect(await code { try await recall(receipt.messageID, by: principal(2)) } == .forbidden)
        #expect(await code { try await recall(receipt.messageID, by: principal(3)) } == .forbidden)
        #expect(await code { try await recall(MessageID(high: 1, low: 1), by: principal(1)) } == .notFound)
        time.advance(by: .seconds(120))
        try await recall(receipt.messageID, by: principal(1))
        guard case .recalled(let recalled)? = try await entries(of: 2).last?.event else {
            Issue.record("not recalled")
            return
        }
        #expect(recalled.id == receipt.messageID)
        let late = try await send(draft(), from: principal(1))
        time.advance(by: .seconds(121))
        #expect(await code { try await recall(late.messageID, by: principal(1)) } == .forbidden)
        await messenger.shutdown()
    }

    @Test func `marks as read for both sides`() async throws {
        let conversation = try draft().conversation
        func mark(_ seq: UInt64, by caller: Principal) async throws {
            _ = try await messenger.inbox.answer(.markRead(conversation, upTo: seq), for: caller.user)
        }
        // There are no messages, so nothing is marked as read.
        try await mark(.max, by: principal(2))
        for number in [1, 2] as [Int32] { #expect(try await entries(of: number).isEmpty) }
        _ = try await send(draft(), from: principal(1))
        for seq in [.max, 1, .max] as [UInt64] { try await mark(seq, by: principal(2)) }
        let expected = InboxEvent.readMark(ReadMark(conversation, by: try user(2), upTo: 1))
        for number in [1, 2] as [Int32] {
            #expect(try await entries(of: number).dropFirst().map(\.event) == [expected])
        }
        #expect(await code { try await mark(0, by: principal(2)) } == .invalidArgument)
        #expect(await code { try await mark(1, by: principal(3)) } == .forbidden)
        await messenger.shutdown()
    }

    @Test func `reads history for those who take part`() async throws {
        let conversation = try draft().conversation
        _ = try await send(draft(), from: principal(1))
        let read = try await messenger.inbox.answer(.history(conversation, before: .max, limit: .max), for: user(2))
        guard case .history(let page) = read else { throw HermesError(.internalError, "not a page") }
        #expect(page.messages.count == 1 && !page.hasMore)
        let stranger = try user(3)
        let refusal = await code {
            _ = try await messenger.inbox.answer(.history(conversation, before: nil, limit: 1), for: stranger)
        }
        #expect(refusal == .forbidden)
        await messenger.shutdown()
    }

    @Test func `acknowledged entries are cleaned up`() async throws {
        let receipt = try await send(draft(), from: principal(1))
        messenger.inbox.acknowledge(try principal(1), upTo: receipt.inboxSeq)
        messenger.inbox.acknowledge(try principal(2), upTo: .max)
        messenger.inbox.acknowledge(try principal(2), upTo: 0)
        await messenger.shutdown()
        #expect(try await messenger.housekeeping(now: time.now()) > 0)
        #expect(try await messenger.housekeeping(now: time.now()) == 0)
        #expect(try await messenger.messageStore.position(of: user(2)).oldest == 2)
    }

    @Test
    func `a clock that is ahead for a moment destroys nothing`() async throws {
        _ = try await send(draft(), from: principal(1))
        time.jump(by: .seconds(400 * 86_400))
        for _ in 0..<3 {
            #expect(try await entries(of: 2).count == 1, "read as expired, it would be acknowledged")
            #expect(try await messenger.housekeeping(now: messenger.time.now()) == 0)
            time.advance(by: .seconds(1))
        }
        time.jump(by: .zero - .seconds(400 * 86_400))
        guard case .message = try await entries(of: 2).first?.event else {
            Issue.record("the message is gone")
            return
        }
        // Messages that have really expired are purged.
        time.advance(by: .seconds(400 * 86_400))
        #expect(try await messenger.housekeeping(now: messenger.time.now(), isClockConfirmed: false) == 0)
        #expect(try await messenger.housekeeping(now: messenger.time.now()) > 0)
        await messenger.shutdown()
    }

    @Test
    func `a server that starts with its clock ahead hides no message of an earlier run`() async throws {
        _ = try await send(draft(), from: principal(1))
        await messenger.shutdown()
        time.jump(by: .seconds(40 * 86_400))
        let later = Messenger(store.base, messages: store, time: time)
        _ = try await send(draft(expiresAfter: .seconds(5)), from: principal(1), over: later)
        for elapsed in [Duration.seconds(5), .seconds(594)] {
            time.advance(by: elapsed)
            let found = try await entries(of: 2, over: later)
            guard case .message = found.first?.event else {
                Issue.record("read as expired, it would be acknowledged")
                return
            }
            #expect(found.dropFirst().map(\.event) == [.expired(through: 2)], "its own time is up")
        }
        // From now on, the clock is confirmed.
        time.advance(by: .seconds(1))
        #expect(try await entries(of: 2, over: later).map(\.event) == [.expired(through: 2)])
        await later.shutdown()
    }
}
