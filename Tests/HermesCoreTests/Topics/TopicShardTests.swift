// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import NIOCore
import Testing

@Suite struct TopicShardTests {
    private let topic: TopicName

    init() throws { topic = try #require(TopicName("room/lobby")) }

    private func publication(_ text: String, to topic: TopicName? = nil) -> Publication {
        Publication(topic: topic ?? self.topic, payload: ByteBuffer(string: text), kind: .plain)
    }

    @Test func `delivers to who subscribes and only then`() throws {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let other = try #require(TopicName("room/other"))
        let subscribers = (0..<3).map { _ in RecordingSubscriber() }
        loops[0].run {
            #expect(shard.publish(publication("0")) == PublishOutcome(localCount: 0, isCongested: false))
            let held = subscribers.map { shard.subscribe($0, to: topic) }
            #expect(shard.publish(publication("1")).localCount == 3)
            shard.unsubscribe(held[0])
            shard.unsubscribe(held[0])
            #expect(shard.publish(publication("2")).localCount == 2)
            #expect(shard.publish(publication("x", to: other)).localCount == 0)
            shard.unsubscribe(held[2])
            shard.unsubscribe(held[1])
            #expect(shard.publish(publication("3")).localCount == 0)
            #expect(shard.subscriberCounts(withPrefix: "", from: 0, limit: 10).counts.isEmpty)
        }
        #expect(subscribers.map(\.received) == [["1"], ["1", "2"], ["1", "2"]])
    }

    @Test func `observers get publications and are not counted`() throws {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let filter = try #require(TopicFilter(topic.rawValue))
        let (observer, member) = (RecordingSubscriber(), RecordingSubscriber())
        loops[0].run {
            let looking = shard.subscribe(observer, to: filter, options: SubscriptionOptions(isObserver: true))
            #expect(shard.subscriberCount(of: topic) == 0)
            #expect(shard.subscriberCounts(withPrefix: "", from: 0, limit: 10).counts.isEmpty)
            let joined = shard.subscribe(member, to: topic)
            #expect(shard.publish(publication("1")).localCount == 2)
            #expect(shard.subscriberCount(of: topic) == 1)
            shard.unsubscribe(looking)
            #expect(shard.subscriberCounts(withPrefix: "", from: 0, limit: 10).counts == [topic: 1])
            shard.unsubscribe(joined)
            #expect(shard.subscriberCount(of: topic) == 0)
        }
        #expect(observer.received == ["1"])
    }

    @Test func `removing is safe in any order`() {
        var random = SplitMix(state: 7)
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        loops[0].run {
            var live: [(subscriber: RecordingSubscriber, subscription: TopicSubscription)] = []
            for round in 0..<2000 {
                if live.isEmpty || Bool.random(using: &random) {
                    let subscriber = RecordingSubscriber()
                    live.append((subscriber, shard.subscribe(subscriber, to: topic)))
                } else {
                    let (subscriber, subscription) = live.remove(at: Int.random(in: 0..<live.count, using: &random))
                    shard.unsubscribe(subscription)
                    subscriber.onDelivery = { _ in Issue.record("delivered after unsubscribe") }
                }
                #expect(shard.publish(publication("\(round)")).localCount == live.count)
                #expect(live.allSatisfy { $0.subscriber.received.last == "\(round)" })
            }
        }
    }

    @Test func `leaving and joining during a delivery is safe`() {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let subscribers = (0..<10).map { _ in RecordingSubscriber() }
        let late = RecordingSubscriber()
        loops[0].run {
            let held = subscribers.map { shard.subscribe($0, to: topic) }
            subscribers[3].onDelivery = { _ in
                for index in [0, 3, 4, 9] { shard.unsubscribe(held[index]) }
                _ = shard.subscribe(late, to: self.topic)
            }
            _ = shard.publish(publication("1"))
            #expect(shard.subscriberCount(of: topic) == 7)
            _ = shard.publish(publication("2"))
        }
        #expect(subscribers[0].received == ["1"])
        #expect(subscribers[3].received == ["1"])
        #expect(subscribers[4].received == [])
        #expect(subscribers[9].received == [])
        for index in [1, 2, 5, 6, 7, 8] { #expect(subscribers[index].received == ["1", "2"]) }
        #expect(late.received == ["2"])
    }

    @Test func `publishing during a delivery keeps one order`() {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let subscribers = (0..<3).map { _ in RecordingSubscriber() }
        loops[0].run {
            for subscriber in subscribers { _ = shard.subscribe(subscriber, to: topic) }
            subscribers[0].onDelivery = { delivery in
                let text = String(buffer: delivery.publication.payload)
                if text.utf8.count < 4 { _ = shard.publish(self.publication(text + "+")) }
            }
            _ = shard.publish(publication("a"))
        }
        for subscriber in subscribers { #expect(subscriber.received == ["a", "a+", "a++", "a+++"]) }
    }

    @Test func `each protocol encodes once for all subscribers`() {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        var encoded: [EncodingSlot] = []
        var seen: [String] = []
        let subscribers = (0..<6).map { _ in RecordingSubscriber() }
        loops[0].run {
            for (index, subscriber) in subscribers.enumerated() {
                _ = shard.subscribe(subscriber, to: topic)
                let slot = EncodingSlot(rawValue: UInt8(index % 3))
                subscriber.onDelivery = { delivery in
                    let bytes = delivery.encoded(slot) { publication in
                        encoded.append(slot)
                        return ByteBuffer(string: "\(slot.rawValue):" + String(buffer: publication.payload))
                    }
                    seen.append(String(buffer: bytes))
                }
            }
            _ = shard.publish(publication("a"))
            _ = shard.publish(publication("b"))
        }
        #expect(encoded.map(\.rawValue) == [0, 1, 2, 0, 1, 2])
        #expect(seen == ["0:a", "1:a", "2:a", "0:a", "1:a", "2:a", "0:b", "1:b", "2:b", "0:b", "1:b", "2:b"])
    }

    @Test func `a kept delivery stays as it is`() {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        var kept: [Delivery] = []
        let subscriber = RecordingSubscriber()
        subscriber.onDelivery = { kept.append($0) }
        loops[0].run {
            _ = shard.subscribe(subscriber, to: topic)
            for text in ["a", "b", "c"] { _ = shard.publish(publication(text)) }
        }
        #expect(kept.map { String(buffer: $0.publication.payload) } == ["a", "b", "c"])
    }

    @Test(arguments: ["", "a+b", "#", "a\u{0}b", String(repeating: "x", count: 65_536)])
    func `topic names are checked`(text: String) {
        #expect(TopicName(text) == nil)
    }

    @Test func `rooms are topics`() throws {
        let room = try #require(RoomName("lobby"))
        #expect(room.topic == topic)
        #expect(topic.room == room)
        #expect(TopicName("other/lobby")?.room == nil)
        #expect(TopicName("room/a/b")?.room == nil)
    }
}
