// Hermes
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// Topics whose subscribers are on a different core from the publisher.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ClusterTopicTests {
    @Test func `subscribers on every core get a publication once, on each loop`() async throws {
        let world = try await TopicWorld()
        var subscribers: [RecordingSubscriber] = []
        for node in 0..<3 {
            for loop in 0..<2 {
                subscribers.append(try world.subscribe("home/+/light", on: node, loop: loop).0)
                subscribers.append(try world.subscribe("home/hall/light", on: node, loop: loop).0)
            }
        }
        await world.settle()
        #expect(try world.publish("on", to: "home/hall/light", on: 1).matchedAnywhere)
        await world.settle()
        #expect(subscribers.allSatisfy { $0.received == ["on"] })
        await world.cluster.shutdown()
    }

    @Test func `nodes without subscribers are sent nothing`() async throws {
        let world = try await TopicWorld()
        let (_, held) = try world.subscribe("a", on: 2)
        await world.settle()
        let before = world.cluster.network.hinted
        try world.publish("1", to: "a", on: 0)
        try world.publish("2", to: "b", on: 0)
        await world.settle()
        #expect(world.cluster.network.hinted == before + 1)
        world.unsubscribe(held, on: 2)
        await world.settle()
        let then = world.cluster.network.hinted
        #expect(try !world.publish("3", to: "a", on: 0).matchedAnywhere)
        await world.settle()
        #expect(world.cluster.network.hinted == then)
        await world.cluster.shutdown()
    }

    @Test func `publications keep their order on the way, and the publisher's number stays at home`() async throws {
        let world = try await TopicWorld()
        let (subscriber, _) = try world.subscribe("#", on: 1, loop: 1)
        var publishers: [UInt64] = []
        subscriber.onDelivery = { publishers.append($0.publication.publisher) }
        await world.settle()
        for number in 0..<100 {
            try world.publish("\(number)", to: "a", on: 0)
            if number % 10 == 0 { world.nodes[0].settle() }
        }
        await world.settle()
        let sent = (0..<100).map(String.init)
        #expect(subscriber.received == sent)
        #expect(publishers.allSatisfy { $0 == 0 })
        await world.cluster.shutdown()
    }

    @Test func `what a server says about itself stays on its node`() async throws {
        let world = try await TopicWorld()
        let (subscriber, _) = try world.subscribe("$SYS/#", on: 1)
        await world.settle()
        try world.publish("0", to: "$SYS/uptime", on: 0)
        try world.publish("1", to: "$SYS/uptime", on: 1)
        await world.settle()
        #expect(subscriber.received == ["1"])
        await world.cluster.shutdown()
    }

    @Test func `who subscribed before a node came is told to it`() async throws {
        let world = try await TopicWorld()
        world.cluster.network.set(.init(lost: 100, repeated: 0, unanswered: 100, maxDelayMilliseconds: 0))
        let (first, _) = try world.subscribe("a", on: 0)
        let (second, held) = try world.subscribe("b", on: 0)
        await world.settle()
        world.unsubscribe(held, on: 0)
        await world.settle()
        await world.repair()
        try world.publish("1", to: "a", on: 2)
        #expect(try !world.publish("2", to: "b", on: 2).matchedAnywhere)
        await world.settle()
        #expect(first.received == ["1"])
        #expect(second.received == [])
        await world.cluster.shutdown()
    }

    @Test func `nothing is sent to a node that has vanished`() async throws {
        let world = try await TopicWorld()
        _ = try world.subscribe("a", on: 2)
        await world.settle()
        try world.cluster.vanish(2)
        for _ in 0..<12 { await world.cluster.pass() }
        await world.settle()
        #expect(try !world.publish("1", to: "a", on: 0).matchedAnywhere)
        await world.cluster.shutdown()
    }

    private struct Held {
        let filter: TopicFilter
        let node: Int
        let loop: Int
        let subscriber: RecordingSubscriber
        let subscription: TopicSubscription
    }

    @Test(arguments: UInt64(1)...20)
    func `after faults, every core knows every subscriber`(seed: UInt64) async throws {
        let world = try await TopicWorld(seed: seed)
        var random = SplitMix(state: seed)
        world.cluster.network.set(.init(lost: 20, repeated: 20, unanswered: 20, maxDelayMilliseconds: 1_500))
        let filters = ["a", "b", "a/+", "a/#", "+/b", "#"]
        var held: [Held] = []
        for _ in 0..<120 {
            let (node, loop) = (Int.random(in: 0..<3, using: &random), Int.random(in: 0..<2, using: &random))
            if Bool.random(using: &random), let index = held.indices.randomElement(using: &random) {
                let gone = held.remove(at: index)
                world.unsubscribe(gone.subscription, on: gone.node, loop: gone.loop)
            } else if let filter = filters.randomElement(using: &random) {
                let (subscriber, subscription) = try world.subscribe(filter, on: node, loop: loop)
                held.append(
                    Held(
                        filter: try #require(TopicFilter(filter)),
                        node: node,
                        loop: loop,
                        subscriber: subscriber,
                        subscription: subscription
                    )
                )
            }
            try world.publish("early", to: "a/b", on: node, loop: loop)
            if Int.random(in: 0..<4, using: &random) == 0 { for node in world.nodes { node.settle() } }
            if Int.random(in: 0..<10, using: &random) == 0 { await world.cluster.pass() }
        }
        await world.settle()
        await world.repair()
        for one in held { one.subscriber.received = [] }
        for node in 0..<3 {
            for topic in ["a", "b", "a/b", "c"] { try world.publish(topic, to: topic, on: node) }
        }
        await world.settle()
        for one in held {
            let expected = ["a", "b", "a/b", "c"].filter { TopicName($0).map(one.filter.matches) ?? false }
            let fromEach = (expected + expected + expected).sorted()
            #expect(one.subscriber.received.sorted() == fromEach, "\(one.filter)")
        }
        await world.cluster.shutdown()
    }

    // MARK: Rooms

    @Test func `the members of a room are counted over all cores`() async throws {
        let cluster = try await ClusterWorld(cores: 3, people: 1)
        let room = try #require(RoomName("stage"))
        var planes: [TopicPlane] = []
        for (index, core) in cluster.cores.enumerated() {
            let loops = [QueueLoop(2 * index), QueueLoop(2 * index + 1)]
            let plane = TopicPlane(loops: loops.map(\.handle))
            core.topicLinks?.connect(to: plane) { _ in 0 }
            for (number, loop) in loops.enumerated() {
                loop.queue.sync {
                    _ = plane.shard(number).subscribe(RecordingSubscriber(), to: room.topic)
                }
            }
            planes.append(plane)
        }
        for plane in planes {
            #expect(await plane.subscriberCount(of: room.topic) == 6)
            #expect(await plane.subscriberCounts(withPrefix: "room/").counts == [room.topic: 6])
            #expect(await plane.subscriberCounts(withPrefix: "other/").counts.isEmpty)
        }
        await cluster.shutdown()
    }

    @Test func `a room is one over all cores`() async throws {
        let world = try await TopicWorld()
        let room = try #require(RoomName("stage"))
        var members: [RecordingSubscriber] = []
        for node in 0..<3 {
            for loop in 0...(node % 2) {
                members.append(try world.subscribe(room.topic.rawValue, on: node, loop: loop).0)
            }
        }
        await world.settle()
        let publication = Publication(.said, ByteBuffer(string: "hello"), to: room.topic, sender: UserID(rawValue: 1))
        var kinds: [Publication.Kind] = []
        for member in members { member.onDelivery = { kinds.append($0.publication.kind) } }
        let shard = world.nodes[2].shard(1)
        _ = world.nodes[2][1].run { shard.publish(publication) }
        await world.settle()
        #expect(members.allSatisfy { $0.received == ["hello"] })
        #expect(kinds == Array(repeating: .room(.said), count: members.count))
        await world.cluster.shutdown()
    }

    @Test func `a removal from a room is one over all cores, and tells if a core does not answer`() async throws {
        let world = try await TopicWorld()
        let expulsion = RoomExpulsion(of: nil, from: try #require(RoomName("stage")))
        let links = try world.cluster.cores.map { try #require($0.topicLinks) }
        #expect(await links[0].remove(expulsion) == 2 + 3)
        #expect(await links[2].remove(expulsion) == 1 + 2)
        world.cluster.network.set(.init(lost: 0, repeated: 0, unanswered: 100, maxDelayMilliseconds: 0))
        #expect(await links[0].remove(expulsion) == nil)
        await world.cluster.shutdown()
    }

    // MARK: Shared subscriptions

    private final class Worker: SharedMember {
        let load = SharedLoad()
        var received: [String] = []

        func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
            received.append(String(buffer: delivery.publication.payload))
        }
    }

    private func join(_ world: TopicWorld, on node: Int, loop: Int = 0) throws -> (Worker, SharedSubscription) {
        let worker = Worker()
        return (worker, try world.join(worker, on: node, loop: loop))
    }

    private func leave(_ world: TopicWorld, _ subscription: SharedSubscription, on node: Int, loop: Int = 0) {
        let shard = world.nodes[node].shard(loop)
        world.nodes[node][loop].run { shard.unsubscribe(subscription, givingBack: []) }
    }

    @Test func `one member over all cores gets a job, and each as many as the others`() async throws {
        let world = try await TopicWorld()
        var workers: [Worker] = []
        for (node, loop) in [(0, 0), (0, 1), (1, 1), (1, 0), (1, 0), (2, 1)] {
            workers.append(try join(world, on: node, loop: loop).0)
        }
        let (all, _) = try world.subscribe("jobs/#", on: 1)
        await world.settle()
        for number in 0..<180 { try world.publish("\(number)", to: "jobs/1", on: number % 3, loop: number % 2) }
        await world.settle()
        let jobs = Set((0..<180).map(String.init))
        #expect(Set(workers.flatMap(\.received)) == jobs)
        #expect(workers.map(\.received.count) == [30, 30, 30, 30, 30, 30])
        #expect(all.received.count == 180)
        await world.cluster.shutdown()
    }

    @Test func `a core without members sends jobs to those that have some, wherever they go`() async throws {
        let world = try await TopicWorld()
        let (first, held) = try join(world, on: 1)
        let (second, other) = try join(world, on: 2)
        await world.settle()
        try world.publish("1", to: "jobs/1", on: 0)
        try world.publish("2", to: "jobs/1", on: 0)
        await world.settle()
        #expect(first.received.count == 1 && second.received.count == 1)
        leave(world, held, on: 1)
        await world.settle()
        try world.publish("3", to: "jobs/1", on: 0)
        try world.publish("4", to: "jobs/1", on: 1)
        await world.settle()
        #expect(second.received.suffix(2) == ["3", "4"])
        leave(world, other, on: 2)
        await world.settle()
        for node in 0..<3 { #expect(try !world.publish("5", to: "jobs/1", on: node).matchedAnywhere) }
        await world.cluster.shutdown()
    }

    @Test func `a job on its way to a core whose member leaves goes to another`() async throws {
        let world = try await TopicWorld()
        let (first, held) = try join(world, on: 1)
        let (second, _) = try join(world, on: 2)
        await world.settle()
        for number in 0..<10 { try world.publish("\(number)", to: "jobs/1", on: 0) }
        world.nodes[0].settle()
        leave(world, held, on: 1)
        world.nodes[1].settle()
        await world.settle()
        let done = first.received + second.received
        let jobs = Set((0..<10).map(String.init))
        #expect(Set(done) == jobs)
        #expect(done.count == 10)
        await world.cluster.shutdown()
    }

    @Test func `a job on its way is asked of every core with a member until one takes it`() async throws {
        let world = try await TopicWorld(cores: 4)
        let leaving = try (1...2).map { try join(world, on: $0).1 }
        let (last, _) = try join(world, on: 3)
        await world.settle()
        for number in 0..<60 { try world.publish("\(number)", to: "jobs/1", on: 0) }
        world.nodes[0].settle()
        for (node, held) in zip(1...2, leaving) { leave(world, held, on: node) }
        await world.settle()
        await world.settle()
        #expect(Set(last.received) == Set((0..<60).map(String.init)))
        #expect(last.received.count == 60)
        await world.cluster.shutdown()
    }

    @Test func `a core that vanishes takes its members with it`() async throws {
        let world = try await TopicWorld()
        let (first, _) = try join(world, on: 1)
        _ = try join(world, on: 2)
        await world.settle()
        try world.cluster.vanish(2)
        for _ in 0..<12 { await world.cluster.pass() }
        await world.settle()
        for number in 0..<4 { try world.publish("\(number)", to: "jobs/1", on: 0) }
        await world.settle()
        #expect(first.received == ["0", "1", "2", "3"])
        await world.cluster.shutdown()
    }
}
