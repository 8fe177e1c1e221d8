// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// Several cores with their topics. Each core has two loops, which run only when a test runs them.
struct TopicWorld {
    let cluster: ClusterWorld
    let nodes: [ManualLoops]

    init(seed: UInt64 = 1, cores count: UInt8 = 3) async throws {
        cluster = try await ClusterWorld(seed: seed, cores: count, people: 1)
        nodes = cluster.cores.map { _ in ManualLoops(2) }
        for (index, (core, node)) in zip(cluster.cores, nodes).enumerated() {
            // Core n removes n + 1 members.
            core.topicLinks?.connect(to: node.plane) { _ in index + 1 }
        }
        await settle()
    }

    /// Runs the loops and the bus until nothing is under way.
    func settle() async {
        for _ in 0..<4 {
            for index in cluster.living { nodes[index].settle() }
            cluster.network.settle()
            for index in cluster.living { await cluster.cores[index].cluster?.work() }
        }
    }

    /// Lets time pass without faults, so that every gap is noticed and repaired.
    func repair() async {
        cluster.network.set(.none)
        for _ in 0..<3 {
            await cluster.pass()
            await settle()
        }
    }

    func subscribe(_ filter: String, on node: Int, loop: Int = 0) throws -> (RecordingSubscriber, TopicSubscription) {
        let subscriber = RecordingSubscriber()
        let filter = try #require(TopicFilter(filter))
        let shard = nodes[node].shard(loop)
        let held = nodes[node][loop].run { shard.subscribe(subscriber, to: filter, options: SubscriptionOptions()) }
        return (subscriber, held)
    }

    func unsubscribe(_ subscription: TopicSubscription, on node: Int, loop: Int = 0) {
        let shard = nodes[node].shard(loop)
        nodes[node][loop].run { shard.unsubscribe(subscription) }
    }

    /// Joins the group `workers` of `jobs/#`.
    func join(_ worker: some SharedMember, on node: Int, loop: Int = 0) throws -> SharedSubscription {
        let filter = try #require(TopicFilter("jobs/#"))
        let shard = nodes[node].shard(loop)
        let options = SubscriptionOptions(qos: .atLeastOnce)
        return nodes[node][loop].run { shard.subscribe(worker, sharing: "workers", to: filter, options: options) }
    }

    @discardableResult
    func publish(_ text: String, to topic: String, on node: Int, loop: Int = 0) throws -> PublishOutcome {
        let topic = try #require(TopicName(topic))
        let publication = Publication(topic: topic, payload: ByteBuffer(string: text), kind: .plain, publisher: 7)
        let shard = nodes[node].shard(loop)
        return nodes[node][loop].run { shard.publish(publication) }
    }
}
