// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore
import Testing

@testable import HermesServer

@Suite("What waits for the reader of a stream")
struct EventQueueTests {
    private static func numbers(_ batch: EventQueue.Batch?) -> [Int] {
        (batch?.events ?? []).map { event in
            switch event.event {
            case .dropped(let count): -count
            case .tooLarge(_, let bytes): bytes
            case .publication, .server: 0
            }
        }
    }

    private static func add(_ number: Int, to queue: inout EventQueue, topic: TopicName) -> Bool {
        queue.add(weight: 40) { .tooLarge(topic, bytes: number) }
    }

    @Test
    func `what has no room is counted, and told in its place; a full queue takes nothing until half of it is written`()
        throws
    {
        let topic = try #require(TopicName("a"))
        var queue = EventQueue(maxBytes: 100)
        #expect(queue.take() == nil)
        #expect((1...5).map { Self.add($0, to: &queue, topic: topic) } == [true, true, false, false, false])
        let first = queue.take()
        #expect(Self.numbers(first) == [1, 2, -3])
        #expect(!queue.hasWork && queue.bytes == 80)
        queue.written(20)
        #expect(!Self.add(6, to: &queue, topic: topic))
        queue.written(20)
        #expect(Self.add(7, to: &queue, topic: topic))
        #expect(Self.numbers(queue.take()) == [-1, 7])
        queue.written(80)
        #expect(queue.bytes == 0)
        queue.drop()
        #expect(!queue.hasWork, "a number alone wakes nobody")
        queue.heartbeatDue()
        let beat = queue.take()
        #expect(beat?.isHeartbeatDue == true && Self.numbers(beat) == [-1])
    }

    @Test
    func `an event that is larger than the queue goes alone`() throws {
        let topic = try #require(TopicName("a"))
        var queue = EventQueue(maxBytes: 30)
        #expect(Self.add(1, to: &queue, topic: topic))
        #expect(!Self.add(2, to: &queue, topic: topic))
        #expect(Self.numbers(queue.take()) == [1, -1])
    }

    @Test
    func `of a revoked key's stream nothing more is written; a stopping server writes the rest`() throws {
        let topic = try #require(TopicName("a"))
        for (reason, rest) in [(StreamEnd.keyRevoked, []), (.gone, []), (.serverStopping, [1])] as [(StreamEnd, [Int])]
        {
            var queue = EventQueue(maxBytes: 100)
            #expect(Self.add(1, to: &queue, topic: topic))
            queue.end(reason)
            queue.end(.gone)
            #expect(!Self.add(2, to: &queue, topic: topic))
            let batch = queue.take()
            #expect(batch?.end == reason && Self.numbers(batch) == rest)
            queue.written(40 * rest.count)
            #expect(queue.bytes == 0)
        }
    }

    @Test
    func `a key's events come back in parts, not one by one`() {
        let allowance = EventAllowance(perSecond: 100, now: .zero)
        #expect((1...101).filter { _ in allowance.allows(now: .zero) }.count == 100)
        #expect(!allowance.allows(now: .milliseconds(90)))
        #expect((1...20).filter { _ in allowance.allows(now: .milliseconds(100)) }.count == 10)
        #expect((1...200).filter { _ in allowance.allows(now: .seconds(60)) }.count == 100)
    }

    @Test
    func `the memory of all streams has one bound`() {
        let memory = EventMemory(limit: 100)
        #expect(memory.take(60) && !memory.take(41) && memory.take(40))
        memory.giveBack(100)
        #expect(memory.used == 0)
    }

    @Test
    func `accept is read as RFC 9110 says`() {
        let cases: [([String], Bool)] = [
            ([], true), (["*/*"], true), (["text/*"], true), (["TEXT/Event-Stream"], true),
            (["application/json"], false), (["application/json, text/event-stream;q=0.5"], true),
            (["application/json", "text/event-stream"], true), (["*/*, text/event-stream;q=0"], false),
            (["text/html;q=1, */*;q=0"], false), (["text/event-stream;q=x"], false), ([""], false), ([";;,,"], false),
        ]
        for (fields, isAccepted) in cases {
            #expect(API.accepts("text/event-stream", fields) == isAccepted, "\(fields)")
        }
    }

    @Test
    func `of very many keys, those without streams are forgotten once their rates are whole again`() {
        var keys = EventKeys()
        for id in Int64(1)...5_000 {
            let allowance = EventAllowance(perSecond: 100, now: .zero)
            #expect(allowance.allows(now: .zero))
            keys.opened(id, allowance)
            if id > 1 { keys.closed(id) }
        }
        let usedUp = keys.allowance(of: 2)
        while usedUp?.allows(now: .milliseconds(900)) == true {}
        func forget(before id: Int64, now: Duration) {
            keys.forget(keys.idle(before: id).filter { $0.value.isFull(now: now) }.keys)
        }
        forget(before: 3, now: .seconds(1))
        #expect(keys.count == 5_000)
        forget(before: 5_001, now: .seconds(1))
        #expect(keys.count == 2 && keys.streams(of: 1) == 1)
        #expect(keys.allowance(of: 2) === usedUp && keys.allowance(of: 3) == nil)
    }
}
