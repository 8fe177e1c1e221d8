// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct TopicRouteTests {
    private func topic(_ text: String) throws -> TopicName { try #require(TopicName(text)) }

    private func filter(_ text: String) throws -> TopicFilter { try #require(TopicFilter(text)) }

    private func publication(_ text: String, to topic: TopicName) -> Publication {
        Publication(topic: topic, payload: ByteBuffer(string: text), kind: .plain)
    }

    /// A model of all subscriptions, which is kept separately from the plane.
    private final class Model {
        struct Client {
            let loop: Int
            let subscriber = RecordingSubscriber()
            var subscriptions: [TopicFilter: TopicSubscription] = [:]
            var options: [TopicFilter: SubscriptionOptions] = [:]
        }

        var clients: [Client]

        init(_ count: Int, loops: Int) { clients = (0..<count).map { Client(loop: $0 % loops) } }

        /// Returns the options under which a client must get a publication to a topic; nil if it must not get it.
        func expected(_ client: Client, _ topic: TopicName) -> SubscriptionOptions? {
            Self.union(client.options.filter { $0.key.matches(topic) }.map(\.value))
        }

        /// Returns the options under which a client must get its own publications; nil if it must not get them.
        func expectedOwn(_ client: Client, _ topic: TopicName) -> SubscriptionOptions? {
            Self.union(client.options.filter { $0.key.matches(topic) && !$0.value.noLocal }.map(\.value))
        }

        private static func union(_ options: [SubscriptionOptions]) -> SubscriptionOptions? {
            guard !options.isEmpty else { return nil }
            return SubscriptionOptions(
                qos: options.map(\.qos).max() ?? .atMostOnce,
                noLocal: options.allSatisfy(\.noLocal),
                retainAsPublished: options.contains(where: \.retainAsPublished),
                identifiers: options.flatMap(\.identifiers).sorted()
            )
        }
    }

    @Test(arguments: [1, 2, 3])
    func `every subscriber gets what its filters match once, while subscriptions come and go`(loopCount: Int) throws {
        var random = TreeRandom(state: UInt64(loopCount))
        let limits = TopicLimits(maxCachedRoutes: 8, maxCachedBytes: 20_000)
        let loops = ManualLoops(loopCount, limits: limits)
        let shards = (0..<loopCount).map(loops.shard)
        let model = Model(12, loops: loopCount)
        var routes: [TopicName: [Int: TopicRoute]] = [:]
        var identifier: UInt32 = 0
        for step in 0..<4_000 {
            let text = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                TopicTreeTests.texts[Int.random(in: TopicTreeTests.texts.indices, using: &random)]
            }.joined(separator: "/")
            let number = Int.random(in: model.clients.indices, using: &random)
            let client = model.clients[number]
            if let filter = TopicFilter(text) {
                identifier += 1
                let options = SubscriptionOptions(
                    qos: QoS.allCases.randomElement(using: &random) ?? .atMostOnce,
                    noLocal: .random(using: &random),
                    retainAsPublished: .random(using: &random),
                    identifiers: Bool.random(using: &random) ? [identifier] : []
                )
                loops[client.loop].run {
                    let shard = shards[client.loop]
                    if let held = client.subscriptions[filter], Bool.random(using: &random) {
                        shard.unsubscribe(held)
                        model.clients[number].subscriptions[filter] = nil
                        model.clients[number].options[filter] = nil
                    } else if let held = client.subscriptions[filter] {
                        held.options = options
                        model.clients[number].options[filter] = options
                    } else if client.subscriptions.count < 6 {
                        let held = shard.subscribe(client.subscriber, to: filter, options: options)
                        model.clients[number].subscriptions[filter] = held
                        model.clients[number].options[filter] = options
                    }
                }
            }
            guard let topic = TopicName(text) else { continue }
            for client in model.clients {
                client.subscriber.received = []
                client.subscriber.options = []
                client.subscriber.ownOptions = []
            }
            let from = Int.random(in: 0..<loopCount, using: &random)
            let outcome = loops[from].run {
                let publication = publication("\(step)", to: topic)
                guard Bool.random(using: &random) else { return shards[from].publish(publication) }
                let route = routes[topic]?[from] ?? shards[from].route(to: topic)
                routes[topic, default: [:]][from] = route
                return shards[from].publish(publication, via: route)
            }
            loops.settle()
            var wanted = 0
            for client in model.clients {
                let expected = model.expected(client, topic)
                if expected != nil { wanted += 1 }
                var got = client.subscriber.options
                for index in got.indices { got[index].identifiers.sort() }
                #expect(got == (expected.map { [$0] } ?? []), "\(topic) for \(client.options)")
                var own = client.subscriber.ownOptions
                for index in own.indices { own[index]?.identifiers.sort() }
                let expectedOwn = model.expectedOwn(client, topic)
                #expect(own == (expected == nil ? [] : [expectedOwn]), "\(topic) for \(client.options)")
            }
            #expect(outcome.matchedAnywhere == (wanted > 0))
        }
        for client in model.clients {
            for held in client.subscriptions.values { loops[client.loop].run { shards[client.loop].unsubscribe(held) } }
        }
        loops.settle()
        for (index, shard) in shards.enumerated() {
            loops[index].run { _ = shard.publish(publication("", to: TopicName(room: .lobby))) }
            #expect(shard.wildcardCount == 0)
            #expect(shard.topics.count <= limits.maxCachedRoutes)
        }
    }

    @Test func `other options take effect with the next publication`() throws {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let subscriber = RecordingSubscriber()
        let topic = try topic("a/b")
        let filters = try ["a/b", "a/+", "#"].map(filter)
        loops[0].run {
            let route = shard.route(to: topic)
            let held = filters.map { shard.subscribe(subscriber, to: $0, options: SubscriptionOptions()) }
            _ = shard.publish(publication("1", to: topic), via: route)
            held[2].options.qos = .exactlyOnce
            _ = shard.publish(publication("2", to: topic), via: route)
            held[0].options.identifiers = [7]
            _ = shard.publish(publication("3", to: topic), via: route)
            shard.unsubscribe(held[2])
            shard.unsubscribe(held[1])
            _ = shard.publish(publication("4", to: topic), via: route)
        }
        #expect(subscriber.received == ["1", "2", "3", "4"])
        #expect(subscriber.options.map(\.qos) == [.atMostOnce, .exactlyOnce, .exactlyOnce, .atMostOnce])
        #expect(subscriber.options.map(\.identifiers) == [[], [], [7], [7]])
    }

    @Test func `whoever gives up all its filters during a delivery gets nothing any more`() throws {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let first = RecordingSubscriber()
        let others = (0..<3).map { _ in RecordingSubscriber() }
        let topic = try topic("a/b")
        let filters = try ["a/+", "#"].map(filter)
        loops[0].run {
            _ = shard.subscribe(first, to: topic)
            let held = others.map { subscriber in
                filters.map { shard.subscribe(subscriber, to: $0, options: SubscriptionOptions()) }
            }
            first.onDelivery = { _ in
                for subscription in held[0] { shard.unsubscribe(subscription) }
                shard.unsubscribe(held[1][0])
            }
            _ = shard.publish(publication("1", to: topic))
            _ = shard.publish(publication("2", to: topic))
        }
        #expect(others.map(\.received) == [[], ["1", "2"], ["1", "2"]])
    }

    @Test func `topics that are published to once do not stay for ever`() throws {
        let loops = ManualLoops(1, limits: TopicLimits(maxCachedRoutes: 100, maxCachedBytes: 100_000))
        let shard = loops.shard(0)
        let subscriber = RecordingSubscriber()
        try loops[0].run {
            _ = shard.subscribe(subscriber, to: try filter("#"), options: SubscriptionOptions())
            let hot = shard.route(to: try topic("hot"))
            for number in 0..<1_000 {
                _ = shard.publish(publication("\(number)", to: try topic("cold/\(number)")))
                _ = shard.publish(publication("h", to: hot.topic), via: hot)
                #expect(shard.topics.count <= 100)
            }
            #expect(subscriber.received.count == 2_000)
            for number in 0..<100 {
                let long = try topic(String(repeating: "x", count: 20_000) + "\(number)")
                _ = shard.publish(publication("long", to: long))
            }
            #expect(shard.topics.count < 20, "long names count for more")
            #expect(subscriber.received.count == 2_100)
            // The route was dropped from the table meanwhile. A publisher that still has the route also reaches later
            // subscribers.
            let late = RecordingSubscriber()
            _ = shard.subscribe(late, to: hot.topic)
            _ = shard.publish(publication("again", to: hot.topic), via: hot)
            #expect(late.received == ["again"])
            #expect(subscriber.received.last == "again")
        }
    }

    @Test func `a topic of 32,000 levels reaches its subscribers`() throws {
        let loops = ManualLoops(2)
        let topic = try topic(String(repeating: "a/", count: 32_000) + "b")
        let subscribers = (0..<3).map { _ in RecordingSubscriber() }
        let shards = (0..<2).map(loops.shard)
        try loops[1].run {
            for (subscriber, text) in zip(subscribers, [topic.rawValue, "#", "a/+/#"]) {
                _ = shards[1].subscribe(subscriber, to: try filter(text), options: SubscriptionOptions())
            }
        }
        loops[0].run { _ = shards[0].publish(publication("1", to: topic)) }
        loops.settle()
        #expect(subscribers.map(\.received) == [["1"], ["1"], ["1"]])
    }

    @Test func `a form that is there already is not made again`() throws {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let topic = try topic("a")
        let subscriber = RecordingSubscriber()
        var seen: [String] = []
        subscriber.onDelivery = { delivery in
            for slot in [EncodingSlot(rawValue: 2), EncodingSlot(rawValue: 3)] {
                seen.append(String(buffer: delivery.encoded(slot) { _ in ByteBuffer(string: "made") }))
            }
        }
        loops[0].run {
            _ = shard.subscribe(subscriber, to: topic)
            let payload = ByteBuffer(string: "x")
            let received = ByteBuffer(string: "received")
            _ = shard.publish(
                Publication(
                    topic: topic,
                    payload: payload,
                    kind: .plain,
                    encodedSlot: EncodingSlot(rawValue: 3),
                    encoded: received
                )
            )
            _ = shard.publish(Publication(topic: topic, payload: payload, kind: .plain))
        }
        #expect(seen == ["made", "received", "made", "made"])
    }
}
