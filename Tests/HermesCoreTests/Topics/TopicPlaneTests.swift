// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import HermesTestKit
import NIOCore
import Synchronization
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct TopicPlaneTests {
    private let topic: TopicName

    init() throws { topic = try #require(TopicName("room/lobby")) }

    private func publication(_ text: String) -> Publication {
        Publication(topic: topic, payload: ByteBuffer(string: text), kind: .plain)
    }

    private func subscribe(_ loops: ManualLoops, _ index: Int) -> (RecordingSubscriber, TopicSubscription) {
        let subscriber = RecordingSubscriber()
        let shard = loops.shard(index)
        return (subscriber, loops[index].run { shard.subscribe(subscriber, to: topic) })
    }

    @Test func `reaches other loops`() {
        let loops = ManualLoops(3)
        let (here, _) = subscribe(loops, 0)
        let (there, held) = subscribe(loops, 1)
        loops.settle()
        let shards = (0..<3).map(loops.shard)
        loops[0].run { _ = shards[0].publish(publication("1")) }
        loops[2].run { _ = shards[2].publish(publication("2")) }
        loops.settle()
        #expect(here.received == ["1", "2"])
        #expect(there.received == ["1", "2"])
        loops[1].run { shards[1].unsubscribe(held) }
        loops.settle()
        loops[0].run { _ = shards[0].publish(publication("3")) }
        let count = loops[1].scheduleCount
        loops.settle()
        #expect(loops[1].scheduleCount == count, "nobody there is interested any more")
        #expect(here.received == ["1", "2", "3"])
        #expect(there.received == ["1", "2"])
    }

    @Test func `one hand over a tick`() {
        let loops = ManualLoops(2)
        let (there, _) = subscribe(loops, 1)
        loops.settle()
        let shard = loops.shard(0)
        let before = loops[1].scheduleCount
        loops[0].run { for number in 0..<1000 { _ = shard.publish(publication("\(number)")) } }
        loops.settle()
        #expect(loops[1].scheduleCount == before + 1)
        #expect(there.received == (0..<1000).map(String.init))
    }

    @Test func `many deliveries of another loop take turns with others`() throws {
        let loops = ManualLoops(2)
        let subscribers = (0..<100).map { _ in subscribe(loops, 1) }
        loops.settle()
        let bytes = ByteBuffer(string: (1_000..<2_000).map(String.init).joined())
        let run = PublicationRun(
            topic: topic,
            slot: EncodingSlot(rawValue: 2),
            bytes: bytes,
            bodies: (0..<1_000).map { $0 * 4..<$0 * 4 + 4 },
            payloadOffset: 0,
            sender: nil,
            qos: .atMostOnce,
            publisher: 1
        )
        let shard = loops.shard(0)
        loops[0].run {
            _ = shard.publish(publication("first"))
            _ = shard.publish(run, via: shard.route(to: topic))
            _ = shard.publish(run, via: shard.route(to: topic))
            _ = shard.publish(publication("last"))
        }
        let quiet = RecordingSubscriber()
        let other = try #require(TopicName("room/quiet"))
        let shardThere = loops.shard(1)
        loops[1].run { _ = shardThere.subscribe(quiet, to: other) }
        loops[0].run {
            _ = shard.publish(Publication(topic: other, payload: ByteBuffer(string: "quiet"), kind: .plain))
        }
        loops[0].tick()
        loops[1].looksWithTime.withLock { $0 = 0 }
        loops[1].tick()
        let first = subscribers[99].0
        #expect(first.received == ["first"])
        // Publications to few subscribers do not wait.
        #expect(quiet.received == ["quiet"])
        loops[1].tick()
        #expect(first.received.count > 1 && first.received.count < 2_000, "\(first.received.count)")
        // A publication that arrives meanwhile is delivered after the waiting publications.
        loops[0].run { _ = shard.publish(publication("late")) }
        loops.settle()
        let all = (1_000..<2_000).map(String.init)
        for (subscriber, _) in subscribers { #expect(subscriber.received == ["first"] + all + all + ["last", "late"]) }
    }

    @Test func `very many publications to few subscribers take turns with others`() {
        let loops = ManualLoops(2)
        let (there, _) = subscribe(loops, 1)
        loops.settle()
        let shard = loops.shard(0)
        loops[0].run { for number in 0..<10_000 { _ = shard.publish(publication("\(number)")) } }
        loops[0].tick()
        loops[1].looksWithTime.withLock { $0 = 0 }
        loops[1].tick()
        #expect(there.received.count >= 1_000 && there.received.count < 5_000)
        loops[0].run { _ = shard.publish(publication("late")) }
        loops.settle()
        #expect(there.received == (0..<10_000).map(String.init) + ["late"])
    }

    @Test(arguments: [0, 1])
    func `what is published while a loop is behind with crowds waits for them`(from publisher: Int) throws {
        let loops = ManualLoops(2, maxBacklogBytes: 1 << 20)
        let subscribers = (0..<100).map { _ in subscribe(loops, 0).0 }
        let quiet = RecordingSubscriber()
        let other = try #require(TopicName("room/quiet"))
        let there = loops.shard(0)
        loops[0].run { _ = there.subscribe(quiet, to: other) }
        loops.settle()
        let shard = loops.shard(publisher)
        func publish(_ text: String, to topic: TopicName) -> PublishOutcome {
            loops[publisher].run {
                shard.publish(Publication(topic: topic, payload: ByteBuffer(string: text), kind: .plain))
            }
        }
        loops[0].run { there.isBehindWithCrowds = true }
        #expect((publish("1", to: topic).ticket != nil) == (publisher == 0))
        #expect(publish("quiet", to: other).ticket == nil)
        for _ in 0..<5 { for loop in loops.loops { loop.tick() } }
        #expect(subscribers[0].received.isEmpty && quiet.received == ["quiet"])
        #expect(!there.crowded.isEmpty)
        loops[0].run { there.wroteOutputForCrowds() }
        #expect((publish("2", to: topic).ticket != nil) == (publisher == 0), "behind the first one")
        loops.settle()
        #expect(there.crowded.isEmpty)
        #expect(publish("3", to: topic).ticket == nil)
        loops.settle()
        for subscriber in subscribers { #expect(subscriber.received == ["1", "2", "3"]) }
    }

    @Test func `what waits on its own loop is never dropped`() throws {
        let loops = ManualLoops(2, maxBacklogBytes: 1 << 20)
        let subscribers = (0..<100).map { _ in subscribe(loops, 0).0 }
        loops.settle()
        let (shard, other) = (loops.shard(0), loops.shard(1))
        let quiet = try #require(TopicName("room/quiet"))
        let texts = (0..<10_000).map(String.init)
        loops[0].run {
            shard.isBehindWithCrowds = true
            let tickets = texts.map { shard.publish(publication($0)).ticket }
            #expect(tickets.allSatisfy { $0.map(shard.isWaiting) ?? false })
        }
        // Publishers on other loops are slowed down. Only their publications to the crowd are dropped.
        let second = RecordingSubscriber()
        loops[0].run { _ = shard.subscribe(second, to: quiet) }
        #expect(loops[1].run { other.publish(publication("other")).isCongested })
        loops[1].run { _ = other.publish(Publication(topic: quiet, payload: ByteBuffer(string: "q"), kind: .plain)) }
        for _ in 0..<3 { for loop in loops.loops { loop.tick() } }
        #expect(loops.plane.backlog.dropped == 1)
        #expect(second.received == ["q"])
        // All publications together have more bytes than the loop copies before it writes output.
        for _ in 0..<2 {
            loops[0].run { shard.wroteOutputForCrowds() }
            loops.settle()
        }
        for subscriber in subscribers { #expect(subscriber.received == texts) }
        #expect(loops.plane.backlog.dropped == 1)
        #expect(loops[1].run { !other.publish(publication("other")).isCongested })
        loops.settle()
        loops[0].run { shard.wroteOutputForCrowds() }
        loops.settle()
        #expect(subscribers[0].received.last == "other")
    }

    @Test func `what no publisher waits for is dropped once much waits for crowds`() {
        let loops = ManualLoops(1, maxBacklogBytes: 1 << 20)
        let subscribers = (0..<100).map { _ in subscribe(loops, 0).0 }
        let shard = loops.shard(0)
        loops[0].run {
            shard.isBehindWithCrowds = true
            for number in 0..<10_000 { _ = shard.publish(publication("\(number)"), isPaced: false) }
        }
        let dropped = loops.plane.backlog.dropped
        #expect(dropped > 1_000 && dropped < 5_000)
        // So the plane does not accept publications from other threads, such as those of the HTTP API.
        #expect(loops.plane.isCongested && !loops.plane.publish(publication("late")))
        // There is a limit even for publishers that wait.
        loops[0].run { for number in 0..<100_000 { _ = shard.publish(publication("\(number)")) } }
        #expect(loops.plane.backlog.dropped > dropped + 60_000)
        while !shard.crowded.isEmpty {
            loops[0].run { shard.wroteOutputForCrowds() }
            loops.settle()
        }
        #expect(subscribers[0].received.count == 110_000 - loops.plane.backlog.dropped)
        #expect(!loops.plane.isCongested)
    }

    /// An example of such a publication is the leave event of a viewer whose connection ends during a delivery.
    @Test(arguments: [false, true])
    func `what is published during a delivery to a crowd comes behind what waits`(isBehind: Bool) throws {
        let loops = ManualLoops(1)
        let subscribers = (0..<100).map { _ in subscribe(loops, 0).0 }
        let second = try #require(TopicName("room/second"))
        let shard = loops.shard(0)
        let others = (0..<100).map { _ in RecordingSubscriber() }
        loops[0].run { for other in others { _ = shard.subscribe(other, to: second) } }
        subscribers[50].onDelivery = { delivery in
            guard delivery.publication.payload == ByteBuffer(string: "1") else { return }
            if isBehind { shard.isBehindWithCrowds = true }
            _ = shard.publish(publication("left"))
        }
        loops[0].run {
            shard.isBehindWithCrowds = true
            for text in ["1", "2", "3"] { _ = shard.publish(publication(text)) }
            for text in ["a", "b"] {
                _ = shard.publish(Publication(topic: second, payload: ByteBuffer(string: text), kind: .plain))
            }
            shard.wroteOutputForCrowds()
        }
        loops.settle()
        if isBehind {
            #expect(subscribers[0].received == ["1"])
            loops[0].run { shard.wroteOutputForCrowds() }
            loops.settle()
        }
        for subscriber in subscribers { #expect(subscriber.received == ["1", "2", "3", "left"]) }
        for other in others { #expect(other.received == ["a", "b"]) }
        #expect(shard.crowded.isEmpty)
    }

    @Test func `a crowd gets so much before the loop writes output`() {
        let loops = ManualLoops(1)
        let subscribers = (0..<1_000).map { _ in subscribe(loops, 0).0 }
        let shard = loops.shard(0)
        // Each publication is more than a megabyte for the whole crowd.
        let text = String(repeating: "x", count: 1_024)
        let outcomes = loops[0].run {
            shard.wroteOutputForCrowds()
            return (0..<100).map { _ in shard.publish(publication(text)).ticket != nil }
        }
        let delivered = subscribers[0].received.count
        #expect(delivered > 50 && delivered < 70)
        #expect(outcomes == outcomes.indices.map { $0 >= delivered })
        loops.settle()
        #expect(subscribers[0].received.count == delivered)
        loops[0].run { shard.wroteOutputForCrowds() }
        loops.settle()
        #expect(subscribers.allSatisfy { $0.received.count == 100 })
    }

    @Test func `a loop can hand over before the end of the tick`() {
        let loops = ManualLoops(2)
        let (there, _) = subscribe(loops, 1)
        loops.settle()
        let shard = loops.shard(0)
        loops[0].run {
            _ = shard.publish(publication("1"))
            shard.handOver()
            _ = shard.publish(publication("2"))
        }
        loops[1].tick()
        #expect(there.received == ["1"])
        loops.settle()
        #expect(there.received == ["1", "2"])
    }

    @Test func `what waits for a crowd that has left is forgotten`() {
        let loops = ManualLoops(2, maxBacklogBytes: 1 << 20)
        let subscribers = (0..<1_000).map { _ in subscribe(loops, 1) }
        loops.settle()
        let shard = loops.shard(0)
        let there = loops.shard(1)
        loops[0].run { for number in 0..<200 { _ = shard.publish(publication("\(number)")) } }
        loops[0].tick()
        loops[1].looksWithTime.withLock { $0 = 0 }
        loops[1].tick()
        #expect(!there.crowded.isEmpty)
        loops[1].run { for (_, held) in subscribers { there.unsubscribe(held) } }
        loops.settle()
        #expect(there.crowded.isEmpty)
        // The room in the mailbox is free again.
        let (late, _) = subscribe(loops, 1)
        loops.settle()
        loops[0].run { #expect(!shard.publish(publication("late")).isCongested) }
        loops.settle()
        #expect(late.received == ["late"])
    }

    @Test func `the pace follows the time of deliveries`() {
        var pace = DeliveryPace()
        pace.learn(10_000, .milliseconds(50))
        #expect(pace.most == DeliveryPace.least)
        pace.learn(100_000, .milliseconds(5))
        #expect(pace.most == 2 * DeliveryPace.least)
        for _ in 0..<40 { pace.learn(100_000, .zero) }
        #expect(pace.most == DeliveryPace.greatest)
        pace.learn(200_000, .milliseconds(50))
        #expect(pace.most == 20_000)
    }

    @Test func `a confirmed subscription is never missed`() {
        let loops = ManualLoops(2)
        let publisher = loops.shard(0)
        for round in 0..<10 {
            let (subscriber, held) = subscribe(loops, 1)
            // The publisher's loop has not had a turn since the subscription. The publication comes directly after the
            // confirmation.
            loops[0].run { _ = publisher.publish(publication("\(round)")) }
            loops.settle()
            #expect(subscriber.received == ["\(round)"])
            let shard = loops.shard(1)
            loops[1].run { shard.unsubscribe(held) }
        }
    }

    @Test func `publishes from any thread`() async {
        let loops = ManualLoops(2)
        let (here, _) = subscribe(loops, 0)
        let (there, _) = subscribe(loops, 1)
        for number in 0..<10 { #expect(loops.plane.publish(publication("\(number)"))) }
        loops.settle()
        #expect(here.received == (0..<10).map(String.init))
        #expect(there.received == here.received)
    }

    @Test func `a loop that is far behind is not fed without bound`() {
        let loops = ManualLoops(2, maxBacklogBytes: 10_000)
        let (there, _) = subscribe(loops, 1)
        loops.settle()
        let shard = loops.shard(0)
        var congested = 0
        for _ in 0..<1000 {
            loops[0].run { if shard.publish(publication("x")).isCongested { congested += 1 } }
            loops[0].tick()
        }
        #expect(congested > 900)
        #expect(loops.plane.backlog.dropped > 900)
        loops.settle()
        #expect(there.received.count + loops.plane.backlog.dropped == 1000)
        // The other loop has caught up, so all publications are delivered again.
        loops[0].run { _ = shard.publish(publication("last")) }
        loops.settle()
        #expect(there.received.last == "last")
        #expect(loops[0].run { !shard.publish(publication("x")).isCongested })
    }

    @Test func `a search through very many topics lets other work pass, and finds all`() async throws {
        let loop = QueueLoop(0)
        let plane = TopicPlane(loops: [loop.handle])
        let count = 3_000
        let names = try (0..<count).map { try #require(TopicName("room/\($0)")) }
        loop.queue.sync { for name in names { _ = plane.shard(0).subscribe(RecordingSubscriber(), to: name) } }
        let found = await plane.subscriberCounts(withPrefix: "room/")
        #expect(Set(found.counts.keys) == Set(names))
        #expect(found.examined >= count)
        loop.queue.sync {
            let part = plane.shard(0).subscriberCounts(withPrefix: "room/", from: 0, limit: 100)
            #expect(part.counts.count == 100 && part.next == 100)
        }
    }

    @Test func `counts over all loops`() async {
        let loops = (0..<3).map(QueueLoop.init)
        let plane = TopicPlane(loops: loops.map(\.handle))
        for (index, loop) in loops.enumerated() {
            loop.queue.sync {
                for _ in 0...index { _ = plane.shard(index).subscribe(RecordingSubscriber(), to: topic) }
            }
        }
        #expect(await plane.subscriberCount(of: topic) == 6)
        #expect(await plane.subscriberCounts(withPrefix: "room/").counts == [topic: 6])
        #expect(await plane.subscriberCounts(withPrefix: "other/").counts.isEmpty)
        #expect(plane.backlog.dropped == 0 && plane.backlog.used == 0 && plane.backlog.limit == 3 * (64 << 20))
    }

    @Test(arguments: [
        ("room/lobby", true), ("room/+", true), ("room/#", true), ("room/lobby/#", true), ("+/lobby", true),
        ("+/lobby/#", true), ("+/+", true), ("+/+/#", true), ("+/#", true), ("#", true), ("room/+/#", true),
        ("room/other", false), ("room", false), ("room/+/+", false), ("room/lobby/+", false), ("lobby/+", false),
        ("rooms/+", false), ("+", false), ("+/other", false), ("roo/#", false), ("room/a/b/#", false),
    ])
    func `all subscriptions that get what is published to a room are counted, for each loop`(
        _ text: String,
        _ isMatching: Bool
    ) throws {
        let loops = ManualLoops(3)
        let filter = try #require(TopicFilter(text))
        #expect(filter.matches(topic) == isMatching)
        let shards = (0..<3).map(loops.shard)
        let held = [1, 2, 2].map { index in
            loops[index].run {
                shards[index].subscribe(RecordingSubscriber(), to: filter, options: SubscriptionOptions())
            }
        }
        func counts() -> [Int] { loops[0].run { shards[0].audience(of: topic) } }
        #expect(counts() == (isMatching ? [0, 1, 2] : [0, 0, 0]))
        loops[2].run {
            shards[2].unsubscribe(held[1])
            // A repeated call is not counted again.
            shards[2].unsubscribe(held[1])
        }
        #expect(counts() == (isMatching ? [0, 1, 1] : [0, 0, 0]))
        loops[1].run { shards[1].unsubscribe(held[0]) }
        loops[2].run { shards[2].unsubscribe(held[2]) }
        #expect(counts() == [0, 0, 0])
    }

    @Test func `keeps the order of each publisher on all loops`() async throws {
        let loops = (0..<4).map(QueueLoop.init)
        let plane = TopicPlane(loops: loops.map(\.handle))
        let total = 4 * 2000
        let done = Collector<[String]>()
        for (index, loop) in loops.enumerated() {
            loop.queue.sync {
                let subscriber = RecordingSubscriber()
                subscriber.onDelivery = { [unowned subscriber] _ in
                    if subscriber.received.count == total { done.add(subscriber.received) }
                }
                _ = plane.shard(index).subscribe(subscriber, to: topic)
            }
        }
        for (index, loop) in loops.enumerated() {
            for batch in 0..<100 {
                loop.queue.async { [topic] in
                    let shard = plane.shard(index)
                    for number in 0..<20 {
                        let text = "\(index):\(batch * 20 + number)"
                        _ = shard.publish(Publication(topic: topic, payload: ByteBuffer(string: text), kind: .plain))
                    }
                }
            }
        }
        for received in await done.next(4) {
            #expect(received.count == total)
            for index in 0..<4 {
                #expect(received.filter { $0.hasPrefix("\(index):") } == (0..<2000).map { "\(index):\($0)" })
            }
        }
    }

    @Test func `mailboxes wake the loop once`() {
        let scheduled = Mutex<[@Sendable () -> Void]>([])
        let received = Mutex<[[Int]]>([])
        let mailbox = Mailbox<Int>(
            schedule: { work in scheduled.withLock { $0.append(work) } },
            receive: { batch in received.withLock { $0.append(batch) } }
        )
        func tick() {
            let work = scheduled.withLock { scheduled in
                defer { scheduled = [] }
                return scheduled
            }
            #expect(work.count <= 1)
            for item in work { item() }
        }
        mailbox.post(1)
        mailbox.post(2)
        mailbox.post(3)
        tick()
        tick()
        mailbox.post(4)
        mailbox.drain()
        tick()
        mailbox.post(5)
        tick()
        #expect(received.withLock { $0 } == [[1, 2, 3], [4], [5]])
    }
}
