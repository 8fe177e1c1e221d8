// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

@Suite("The stored bytes of inbox events, which outlive versions")
struct StoredEventTests {
    static let vectors: [(event: InboxEvent, kind: Int64, hex: String)] = {
        // These are fixed numbers, and all of them are valid.
        guard let ann = UserID(1), let bob = UserID(0x0102_0304), let group = GroupID(rawValue: 7) else { return [] }
        let direct = ConversationID.direct(between: bob, and: ann)
        let summary = GroupSummary(
            id: group,
            name: "g",
            avatarURL: "u",
            isMuted: true,
            isHistoryOpen: true,
            memberCount: 3,
            createdAt: Timestamp(rawValue: 5)
        )
        func push(_ message: TypedMessage?) -> Push {
            Push(
                id: MessageID(high: 1, low: 2),
                content: PushContent(title: "t", body: "b", dataJSON: "{}", collapseKey: "k", message: message),
                priority: .high,
                expiresAt: Timestamp(rawValue: 3),
                device: DeviceID("d")
            )
        }
        let pushed = """
            0100000000000000 0200000000000000 01 0300000000000000 0100 64 0100 74 0100 62 0200 7b7d 0100 6b
            """
        return [
            (
                .readMark(ReadMark(direct, by: bob, upTo: 0x0102_0304_0506_0708)), 1,
                "01 01000000 04030201 04030201 0807060504030201"
            ),
            (
                .recalled(RecalledMessage(MessageID(high: 1, low: 2), in: .group(group), conversationSeq: 9, by: ann)),
                2,
                "02 07000000 00000000 01000000 0900000000000000 0100000000000000 0200000000000000"
            ),
            (
                .contact(ContactEvent(kind: .requested, user: ann, nickName: "ann", message: "hi")), 3,
                "01 01000000 0300 616e6e 0200 6869"
            ),
            (
                .group(GroupEvent(kind: .membersAdded, group: summary, by: ann, users: [bob])), 4,
                """
                03 07000000 0100 67 0100 75 03 03000000 0500000000000000 01000000 01000000 04030201
                """
            ),
            (.push(push(nil)), 5, pushed),
            (.push(push(TypedMessage(type: "x.Y", bytes: [1, 2]))), 5, pushed + "0300 782e59 02000000 0102"),
        ]
    }()

    @Test(arguments: 0..<6)
    func `each kind is stored as ever, and read again`(_ index: Int) throws {
        let (event, kind, hex) = try #require(Self.vectors.dropFirst(index).first)
        let stored = try #require(event.stored)
        #expect(stored.kind == kind)
        #expect(InboxEvent.StoredKind(rawValue: kind) != nil)
        let digits = stored.bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        #expect(digits == hex.filter { !$0.isWhitespace })
        #expect(InboxEvent(kind: kind, stored: stored.bytes) == event)
        #expect(InboxEvent(kind: 99, stored: stored.bytes) == nil)
    }

    @Test(arguments: 0..<5)
    func `cut-off bytes are damage, not an event`(_ index: Int) throws {
        let (event, kind, _) = try #require(Self.vectors.dropFirst(index).first)
        let payload = try #require(event.stored).bytes
        for length in 0..<payload.count {
            #expect(InboxEvent(kind: kind, stored: Array(payload.prefix(length))) == nil, "\(length)")
        }
    }
}
