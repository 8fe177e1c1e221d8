// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import Hermes

@Suite struct OutboxQueueTests {
    static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    static func send(_ id: String, to uid: UserID = 8, text: String = "hi") -> Hermes_V1_Send {
        HermesClient.wire(.text(text), .user(uid), [:], clientID: id, expiresAfter: nil)
    }

    /// Adds a message and records that it is stored.
    @discardableResult
    private static func add(_ id: String, to uid: UserID = 8, _ queue: inout OutboxQueue) throws -> UInt64 {
        let number = try queue.added(send(id, to: uid), uid: 7, date: 0).entry.item.number
        queue.stored(number)
        return number
    }

    private static func next(_ queue: inout OutboxQueue, _ seconds: Int64 = 0) -> [String] {
        queue.next(now: start + .seconds(seconds)).map(\.item.send.clientID)
    }

    @Test func `one message at a time goes to a conversation, in order, and others do not wait for it`() throws {
        var queue = OutboxQueue(limits: OutboxLimits())
        let first = try Self.add("a1", to: 8, &queue)
        try Self.add("a2", to: 8, &queue)
        try Self.add("b1", to: 9, &queue)
        #expect(Self.next(&queue) == [])
        queue.started(uid: 7)
        #expect(Self.next(&queue) == ["a1", "b1"])
        #expect(Self.next(&queue) == [])
        queue.removed(first)
        #expect(Self.next(&queue) == ["a2"])
    }

    @Test func `what is not stored yet does not go, nor what is behind it`() throws {
        var queue = OutboxQueue(limits: OutboxLimits())
        queue.started(uid: 7)
        let first = try queue.added(Self.send("a1"), uid: 7, date: 0).entry.item.number
        try Self.add("a2", &queue)
        #expect(Self.next(&queue) == [])
        queue.stored(first)
        #expect(Self.next(&queue) == ["a1"])
    }

    @Test func `another account's messages wait for that account`() throws {
        var queue = OutboxQueue(limits: OutboxLimits())
        try Self.add("a1", &queue)
        queue.started(uid: 6)
        #expect(Self.next(&queue) == [])
        queue.started(uid: 7)
        #expect(Self.next(&queue) == ["a1"])
        queue.halted()
        #expect(Self.next(&queue) == [])
    }

    /// Refusals of the server, and the pauses that follow, in seconds; nil if the message fails.
    static let refusals: [(UInt32, Duration?, Int64?)] = [
        (2001, nil, nil), (2002, nil, nil), (2003, nil, nil), (2004, nil, nil), (2005, nil, nil), (2006, nil, nil),
        (4008, nil, nil), (109, nil, nil), (3001, .seconds(7), 7), (2003, .seconds(9), 9), (3002, nil, 1),
        (3003, nil, 1), (3004, nil, 1), (9001, nil, 1), (102, nil, 1), (103, nil, 1), (1001, nil, 1),
        (3001, .seconds(1_000_000), 3600),
    ]

    @Test(arguments: refusals)
    func `a refusal is for good or for a while`(code: UInt32, retryAfter: Duration?, rest: Int64?) throws {
        var queue = OutboxQueue(limits: OutboxLimits())
        queue.started(uid: 7)
        let first = try Self.add("a1", &queue)
        try Self.add("a2", &queue)
        #expect(Self.next(&queue) == ["a1"])
        let error = HermesClientError(.init(rawValue: code), "no", retryAfter: retryAfter)
        let entry = queue.refused(first, error, now: Self.start)
        if let rest {
            #expect(entry?.phase == .resting(until: Self.start + .seconds(rest)))
            #expect(queue.nextDeadline == Self.start + .seconds(rest))
            // The next message of the conversation waits for the refused message.
            #expect(Self.next(&queue, rest - 1) == [])
            #expect(Self.next(&queue, rest) == ["a1"])
        } else {
            #expect(entry?.status == .failed(error) && entry?.item.failure == error)
            #expect(Self.next(&queue) == ["a2"])
            #expect(queue.retried(clientID: "a1") != nil && queue.retried(clientID: "a1") == nil)
        }
    }

    @Test func `refusals for a while become longer`() throws {
        var queue = OutboxQueue(limits: OutboxLimits())
        queue.started(uid: 7)
        let number = try Self.add("a1", &queue)
        var now = Self.start
        var waits: [Int64] = []
        for _ in 0..<8 {
            _ = queue.next(now: now)
            _ = queue.refused(number, HermesClientError(.init(rawValue: 9001), "broken"), now: now)
            let until = try #require(queue.nextDeadline)
            waits.append((until - now).nanoseconds / 1_000_000_000)
            now = until
        }
        #expect(waits == [1, 2, 5, 10, 30, 60, 60, 60])
    }

    @Test func `what timed out while there was no connection goes at once after the next login`() throws {
        var queue = OutboxQueue(limits: OutboxLimits())
        queue.started(uid: 7)
        let number = try Self.add("a1", &queue)
        var now = Self.start
        for _ in 0..<8 {
            now = queue.nextDeadline ?? now
            #expect(queue.next(now: now).count == 1)
            now = now + .seconds(300)
            _ = queue.refused(number, HermesClientError(.timedOut, "the server did not answer in time"), now: now)
        }
        #expect(queue.next(now: now).isEmpty)
        queue.started(uid: 7)
        #expect(queue.nextDeadline == nil)
        #expect(queue.next(now: now).map(\.item.number) == [number])
        // These tries do not prolong the pause after a refusal of the server. A login does not end that pause.
        let refusal = queue.refused(number, HermesClientError(.overloaded, "later"), now: now)
        #expect(refusal?.phase == .resting(until: now + .seconds(1)))
        queue.started(uid: 7)
        #expect(queue.next(now: now).isEmpty)
        #expect(queue.next(now: now + .seconds(1)).count == 1)
    }

    @Test func `the bounds hold, and failed messages count`() throws {
        var queue = OutboxQueue(limits: OutboxLimits(maxEntries: 2, maxBytes: 10_000))
        queue.started(uid: 7)
        let first = try Self.add("a1", &queue)
        try Self.add("a2", &queue)
        _ = Self.next(&queue)
        _ = queue.refused(first, HermesClientError(.forbidden, "no"), now: Self.start)
        let error = #expect(throws: HermesClientError.self) { try Self.add("a3", &queue) }
        #expect(error?.code == .outboxFull)
        queue.removed(first)
        try Self.add("a3", &queue)
        queue.removed(2)
        let long = Self.send("a4", text: String(repeating: "x", count: 10_000))
        let tooMuch = #expect(throws: HermesClientError.self) { try queue.added(long, uid: 7, date: 0) }
        #expect(tooMuch?.code == .outboxFull)
    }

    @Test func `the same client id is the same message, or an error`() throws {
        var queue = OutboxQueue(limits: OutboxLimits())
        let first = try queue.added(Self.send("a1"), uid: 7, date: 0)
        let second = try queue.added(Self.send("a1"), uid: 7, date: 5)
        #expect(first.isNew && !second.isNew && first.entry.item == second.entry.item)
        let error = #expect(throws: HermesClientError.self) {
            try queue.added(Self.send("a1", text: "other"), uid: 7, date: 0)
        }
        #expect(error?.code == .clientIDConflict)
    }

    @Test func `as many conversations are served at once as the limits say`() throws {
        var queue = OutboxQueue(limits: OutboxLimits(maxSending: 3))
        queue.started(uid: 7)
        for uid in UInt32(1)...5 { try Self.add("to \(uid)", to: UserID(rawValue: uid), &queue) }
        #expect(Self.next(&queue) == ["to 1", "to 2", "to 3"])
        queue.removed(2)
        #expect(Self.next(&queue) == ["to 4"])
    }

    @Test func `an earlier run's messages come back in order, with their failures`() throws {
        var items: [OutboxItem] = []
        for number in UInt64(1)...12 {
            let failure = number == 3 ? HermesClientError(.forbidden, "blocked") : nil
            items.append(
                OutboxItem(
                    number: number,
                    uid: 7,
                    send: Self.send("a\(number)"),
                    queuedAtMilliseconds: 99,
                    failure: failure
                )
            )
        }
        let records = try items.map { LocalRecord(key: try $0.record().key, value: try $0.record().value ?? []) }
        #expect(records.map(\.key) == records.map(\.key).sorted())
        let read = records.compactMap { OutboxItem($0) }
        #expect(read == items)
        var queue = OutboxQueue(limits: OutboxLimits(), items: read.shuffled())
        #expect(queue.all.map(\.item) == items)
        #expect(queue.all[2].status == .failed(HermesClientError(.forbidden, "blocked")))
        #expect(try Self.add("a13", &queue) == 13)
    }

    @Test func `records that are none are passed over`() throws {
        let whole = try OutboxItem(number: 1, uid: 7, send: Self.send("a1"), queuedAtMilliseconds: 9).record()
        let value = try #require(whole.value)
        #expect(OutboxItem(LocalRecord(key: whole.key, value: value)) != nil)
        for length in 0..<19 {
            #expect(OutboxItem(LocalRecord(key: whole.key, value: Array(value.prefix(length)))) == nil)
        }
        #expect(OutboxItem(LocalRecord(key: "inbox/1", value: value)) == nil)
        #expect(OutboxItem(LocalRecord(key: "outbox/zz", value: value)) == nil)
        #expect(OutboxItem(LocalRecord(key: whole.key, value: [2] + value.dropFirst())) == nil)
    }
}
