// Hermes
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HermesCore

/// An expired message is not delivered, whether it was purged or not.
@Suite struct InboxPageExpiryTests {
    private let now = ExpiryTime(now: Timestamp(rawValue: 100))

    private func message(_ seq: UInt64, expiresAt: Int64) throws -> InboxEntry {
        let low = try #require(UserID(rawValue: 1))
        let high = try #require(UserID(rawValue: 2))
        let message = Message(
            id: MessageID(high: seq, low: seq),
            conversation: .direct(between: low, and: high),
            conversationSeq: seq,
            sender: low,
            senderName: "ann",
            senderDevice: nil,
            clientID: nil,
            content: MessageContent(bytes: []),
            sentAt: Timestamp(rawValue: 0),
            expiresAt: Timestamp(rawValue: expiresAt)
        )
        return InboxEntry(seq: seq, committedAt: Timestamp(rawValue: 0), event: .message(message))
    }

    private func hole(_ first: UInt64, _ last: UInt64) -> InboxEntry {
        InboxEntry(seq: first, committedAt: Timestamp(rawValue: 0), event: .expired(through: last))
    }

    @Test func `runs of expired messages and holes become one hole`() throws {
        let position = InboxPosition(epoch: 1, head: 9, oldest: 3)
        let fresh = try [message(5, expiresAt: 101), message(9, expiresAt: 500)]
        let entries = try [
            hole(1, 2), message(3, expiresAt: 100), message(4, expiresAt: 7), fresh[0], message(6, expiresAt: 100),
            hole(7, 8), fresh[1],
        ]
        let page = InboxPage(entries: entries, position: position).withoutExpired(at: now)
        #expect(page.entries == [hole(1, 4), fresh[0], hole(6, 8), fresh[1]])
        #expect(page.position == position)
    }

    @Test func `nothing expired, nothing changed`() throws {
        let entries = try [message(1, expiresAt: 101), hole(2, 4), message(5, expiresAt: 102)]
        let page = InboxPage(entries: entries, position: InboxPosition(epoch: 1, head: 5, oldest: 1))
        #expect(page.withoutExpired(at: now) == page)
    }

    @Test func `what was stored before the given time does not count as expired`() throws {
        let entries = try [message(1, expiresAt: 50), message(2, expiresAt: 100)]
        let page = InboxPage(entries: entries, position: InboxPosition(epoch: 1, head: 2, oldest: 1))
        func time(storedSince: Int64) -> ExpiryTime {
            ExpiryTime(now: Timestamp(rawValue: 100), storedSince: Timestamp(rawValue: storedSince))
        }
        #expect(page.withoutExpired(at: time(storedSince: 1)) == page)
        #expect(page.withoutExpired(at: time(storedSince: 0)).entries == [hole(1, 2)])
    }
}
