// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import Testing

@testable import ChatLogic
@testable import Hermes

struct ChatStateTests {
    private static let bob = Conversation.user(2)
    private static let carl = Conversation.user(3)

    private static func message(
        _ seq: UInt64,
        _ text: String,
        in conversation: Conversation = bob,
        isOwn: Bool = false
    ) -> Message {
        Message(
            id: MessageID(rawValue: "\(conversation) \(seq)"),
            conversation: conversation,
            conversationSeq: seq,
            fromUID: 2,
            fromNickName: conversation == bob ? "bob" : "carl",
            content: .text(text),
            attributes: [:],
            date: .distantPast,
            isOwn: isOwn,
            isRecalled: false
        )
    }

    private static func entry(_ id: String, _ status: OutboxEntry.Status, text: String = "hi") -> OutboxEntry {
        OutboxEntry(
            id: id,
            conversation: bob,
            content: .text(text),
            attributes: [:],
            queuedAt: .distantPast,
            status: status
        )
    }

    private static func receipt(_ seq: UInt64) -> Receipt {
        Receipt(
            messageID: MessageID(rawValue: "\(bob) \(seq)"),
            clientID: "",
            conversationSeq: seq,
            date: .distantPast,
            isDuplicate: false
        )
    }

    @Test func `messages stand in the order of the conversation, each once, whichever way they came`() {
        var state = ChatState()
        state.apply(InboxEvent(.message(Self.message(3, "three"))))
        state.apply(
            History(
                messages: [Self.message(1, "one"), Self.message(2, "two"), Self.message(3, "three")],
                hasMore: false
            ),
            of: Self.bob
        )
        state.apply(InboxEvent(.message(Self.message(4, "four"))))
        #expect(state[Self.bob]?.lines.map(\.text) == ["one", "two", "three", "four"])
        #expect(state[Self.bob]?.title == "bob")
        #expect(state[Self.bob]?.lastSeq == 4)
    }

    @Test func `an own message waits at the end and takes its place with the receipt`() {
        var state = ChatState()
        state.apply(Self.entry("a", .queued, text: "mine"))
        state.apply(Self.entry("b", .queued, text: "mine, too"))
        state.apply(InboxEvent(.message(Self.message(1, "theirs"))))
        #expect(state[Self.bob]?.lines.map(\.text) == ["theirs", "mine", "mine, too"])
        state.apply(Self.entry("a", .sending, text: "mine"))
        state.apply(Self.entry("a", .sent(Self.receipt(2)), text: "mine"))
        state.apply(InboxEvent(.message(Self.message(3, "theirs, too"))))
        #expect(state[Self.bob]?.lines.map(\.text) == ["theirs", "mine", "theirs, too", "mine, too"])
        #expect(state[Self.bob]?.lines.map(\.mark) == [.received, .sent, .received, .waiting])
        // The history also contains the message.
        state.apply(History(messages: [Self.message(2, "mine", isOwn: true)], hasMore: false), of: Self.bob)
        #expect(state[Self.bob]?.lines.count == 4)
    }

    @Test func `a refused message says why, and goes when it is given up`() {
        var state = ChatState()
        state.apply(Self.entry("a", .queued))
        state.apply(Self.entry("a", .failed(HermesClientError(.forbidden, "bob has blocked you"))))
        #expect(state[Self.bob]?.lines.map(\.mark) == [.failed("bob has blocked you")])
        state.apply(Self.entry("a", .discarded))
        #expect(state[Self.bob]?.lines.isEmpty == true)
    }

    @Test func `unread counts what nobody looks at, and the newest conversation stands at the top`() {
        var state = ChatState()
        state.apply(InboxEvent(.message(Self.message(1, "hello"))))
        state.apply(InboxEvent(.message(Self.message(1, "hello", in: Self.carl))))
        state.apply(InboxEvent(.message(Self.message(2, "again"))))
        #expect(state.transcripts.map(\.title) == ["bob", "carl"])
        #expect(state.unread == 3)
        state.show(Self.bob)
        state.apply(InboxEvent(.message(Self.message(3, "seen at once"))))
        state.apply(InboxEvent(.message(Self.message(2, "from my other phone", in: Self.carl, isOwn: true))))
        #expect(state.unread == 1)
        #expect(state[Self.carl]?.title == "carl")
        #expect(state.transcripts.map(\.title) == ["carl", "bob"])
    }

    @Test func `what was taken back is gone, what was lost is counted, and the banner tells the connection`() {
        var state = ChatState()
        state.apply(InboxEvent(.message(Self.message(1, "oops"))))
        state.apply(InboxEvent(.recall(MessageID(rawValue: "\(Self.bob) 1"), in: Self.bob, by: 2)))
        #expect(state[Self.bob]?.lines.map(\.text) == ["(taken back)"])
        state.apply(InboxEvent(.gap(5...7)))
        #expect(state.lost == 3)
        let error = HermesClientError(.connectionLost, "the server went away")
        state.apply(ConnectionState.waiting(error, delay: .seconds(1)))
        #expect(state.banner == .offline("the server went away"))
        state.apply(ConnectionState.live)
        #expect(state.banner == .none)
        state.apply(ConnectionState.stopped(nil))
        #expect(state.banner == .signedOut(nil))
    }
}
