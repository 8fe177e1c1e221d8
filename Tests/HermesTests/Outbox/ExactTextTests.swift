// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesWire
import Testing

@testable import Hermes

@Suite struct ExactTextTests {
    private static let lookalikes = ["\u{E9}", "e\u{301}"]

    @Test func `a text is equal only to a text with the same bytes`() {
        let texts = Self.lookalikes + ["a", "", "\u{301}", "a\u{301}"]
        #expect(Set(texts.map { ExactText($0) }).count == texts.count)
        #expect(Set((texts + texts).map { ExactText($0) }).count == texts.count)
    }

    @Test func `a sent message whose client id begins with a combining mark is known after a restart`() {
        let inbox = SentMessages.Inbox(uid: 7, epoch: 1)
        let ids = ["\u{301}x"] + Self.lookalikes
        var sent = SentMessages()
        let changes = ids.enumerated().flatMap { index, id in
            sent.sent(id, seq: UInt64(index) + 1, in: inbox, place: 0)
        }
        #expect(changes.count == ids.count)
        let again = SentMessages(records: changes.map { LocalRecord(key: $0.key, value: $0.value ?? []) })
        #expect(again.clientIDs == Set(ids.map { ExactText($0) }))
    }

    @Test func `the outbox compares client ids byte by byte`() throws {
        var queue = OutboxQueue(limits: OutboxLimits())
        let sends = Self.lookalikes.map { OutboxQueueTests.send($0, text: "to \($0.utf8.count)") }
        for send in sends {
            let isNew = try queue.added(send, uid: 7, date: 0).isNew
            #expect(isNew)
        }
        for send in sends { #expect(queue.entry(clientID: send.clientID)?.item.send == send) }
    }

    @Test func `a store compares keys byte by byte`() {
        var table = RecordTable()
        table.apply(Self.lookalikes.map { LocalChange(key: $0, value: Array($0.utf8)) })
        #expect(table.records.map(\.value) == Self.lookalikes.map { Array($0.utf8) })
        table.apply([LocalChange(key: Self.lookalikes[0], value: nil)])
        #expect(table.records.map(\.value) == [Array(Self.lookalikes[1].utf8)])
        #expect(table.bytes == RecordLog.bytes(key: Self.lookalikes[1], value: Array(Self.lookalikes[1].utf8)))
    }
}
