// Hermes
// SPDX-License-Identifier: Apache-2.0

import AllocationCounter
import HermesCore
import NIOCore
import Testing

/// The allocations of the hot path. The tests run only where allocations can be counted: on Linux with glibc, without
/// sanitizers.
@Suite(.enabled(if: hermes_allocation_count() > 0)) struct AllocationTests {
    private final class Subscriber: TopicSubscriber {
        var count = 0

        func deliver(_ delivery: Delivery, for subscription: TopicSubscription) { count += 1 }
    }

    private func allocations(_ body: () -> Void) -> UInt64 {
        let before = hermes_allocation_count()
        body()
        return hermes_allocation_count() - before
    }

    /// Returns the allocations of 100 publications to `count` subscribers.
    private func allocations(subscribers count: Int, filters: [String]) throws -> UInt64 {
        let loops = ManualLoops(1)
        let shard = loops.shard(0)
        let topic = try #require(TopicName("site/1/device/2"))
        let subscribers = (0..<count).map { _ in Subscriber() }
        let filters = try filters.map { try #require(TopicFilter($0)) }
        return loops[0].run {
            for subscriber in subscribers {
                for filter in filters { _ = shard.subscribe(subscriber, to: filter, options: SubscriptionOptions()) }
            }
            let publication = Publication(topic: topic, payload: ByteBuffer(string: "x"), kind: .plain)
            let route = shard.route(to: topic)
            _ = shard.publish(publication, via: route)
            let allocations = allocations { for _ in 0..<100 { _ = shard.publish(publication, via: route) } }
            #expect(subscribers.allSatisfy { $0.count == 101 })
            return allocations
        }
    }

    @Test(arguments: [["site/1/device/2"], ["site/#"], ["site/1/device/2", "site/+/device/+"]])
    func `a delivery allocates nothing, however many there are`(filters: [String]) throws {
        let few = try allocations(subscribers: 10, filters: filters)
        let many = try allocations(subscribers: 10_000, filters: filters)
        #expect(many <= few)
        // The publication itself may need these allocations in a build without optimization. It needs none in a release
        // build.
        #expect(many <= 100 * 20, "\(many) for 100 publications")
    }

    /// Returns the allocations of 100 matches of a topic.
    private func allocations(matching topic: String, among filters: [String]) throws -> UInt64 {
        var tree = TopicTree()
        for (number, text) in filters.enumerated() {
            tree.insert(try #require(TopicFilter(text)), value: UInt32(number))
        }
        let topic = try #require(TopicName(topic))
        var matches = 0
        tree.forEachMatch(of: topic) { _ in matches += 1 }
        let allocations = allocations { for _ in 0..<100 { tree.forEachMatch(of: topic) { _ in matches += 1 } } }
        #expect(matches == 101)
        return allocations
    }

    @Test func `a match allocates nothing, however deep the topic and however many filters`() throws {
        let small = try allocations(matching: "a/b", among: ["a/+"])
        let many = (0..<2_000).flatMap { ["+/\($0)/#", "a/+/\($0)/+"] }
        let large = try allocations(matching: "a/7" + String(repeating: "/x", count: 32_000), among: many)
        #expect(large <= small)
        // A call needs these allocations in a build without optimization. It needs none in a release build.
        #expect(small <= 100 * 10, "\(small) for 100 matches")
    }
}
