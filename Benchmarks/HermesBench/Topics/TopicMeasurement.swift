// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesCore
import NIOCore

/// Measures how fast topics are matched with filters and publications are delivered, without a network, for
/// `hermes-bench topics`.
struct TopicMeasurement: Sendable {
    /// The number of subscriptions.
    var subscriptions: Int
    /// The number of event loops that have the subscriptions. All subscribers are on the first loop.
    var loops: Int
    /// The number of operations of each kind. There are two limits: at most 100,000 topics are matched, and at most
    /// 200,000 subscriptions are changed. Fan-out makes about ten times as many deliveries as this number.
    var operations: Int

    /// Measures on the calling thread.
    ///
    /// - Returns: the figures.
    func run() -> String {
        var report = TopicReport()
        tree(&report)
        subscribing(&report)
        for count in [1_000, 10_000] { fanOut(to: count, &report) }
        return report.lines.joined(separator: "\n")
    }

    // MARK: Parts

    /// Measures the tree of filters alone.
    private func tree(_ report: inout TopicReport) {
        var shape = FilterShape()
        let filters = (0..<subscriptions).map { _ in shape.filter(wildcardsOnly: true) }
        let topics = (0..<min(operations, 100_000)).map { _ in shape.topic() }
        let before = MemoryUse.now
        var tree = TopicTree()
        let insert = Stopwatch.measure {
            for (number, filter) in filters.enumerated() { tree.insert(filter, value: UInt32(number)) }
        }
        let memory = MemoryUse.now - before
        var matches = 0
        let allocationsBefore = AllocationCount.now
        let match = Stopwatch.measure {
            for topic in topics { tree.forEachMatch(of: topic) { _ in matches += 1 } }
        }
        let allocations = AllocationCount.now.map { $0 - (allocationsBefore ?? 0) }
        report.title("tree of \(tree.count) filters, wildcards at every level")
        report.line("insert", insert.per(filters.count, "filter"))
        report.line("match", match.per(topics.count, "topic"))
        report.line("matching filters", TopicReport.number(Double(matches) / Double(topics.count)) + " per topic")
        report.line("allocations", TopicReport.allocations(allocations, topics.count, "match"))
        report.line("memory", memory.per(tree.count, "filter"))
        let remove = Stopwatch.measure { for filter in filters { tree.remove(filter) } }
        report.line("remove", remove.per(filters.count, "filter"))
    }

    /// Measures subscribing and publishing. Each subscriber has 10 subscriptions. Some of the subscriptions have no
    /// wildcard.
    private func subscribing(_ report: inout TopicReport) {
        let plane = ImmediateLoops(loops)
        let shard = plane.first
        var shape = FilterShape()
        let subscribers = (0..<max(1, subscriptions / 10)).map { _ in CountingSubscriber() }
        let filters = (0..<subscriptions).map { _ in shape.filter(wildcardsOnly: false) }
        let topics = (0..<min(operations, 100_000)).map { _ in shape.topic() }
        var held: [TopicSubscription] = []
        held.reserveCapacity(subscriptions)
        let before = MemoryUse.now
        let subscribe = Stopwatch.measure {
            for (number, filter) in filters.enumerated() {
                let options = SubscriptionOptions(qos: .atLeastOnce)
                held.append(shard.subscribe(subscribers[number % subscribers.count], to: filter, options: options))
            }
            plane.settle()
        }
        let memory = MemoryUse.now - before
        report.title("\(subscriptions) subscriptions, 40 % to topics, 60 % to wildcards; \(loops) loop(s)")
        report.line("subscribe", subscribe.per(subscriptions, "subscription"))
        report.line("memory", memory.per(subscriptions, "subscription"))

        let payload = ByteBuffer(string: "payload")
        var delivered = 0
        let publish = Stopwatch.measure {
            for topic in topics {
                delivered += shard.publish(Publication(topic: topic, payload: payload, kind: .plain)).localCount
            }
        }
        report.line("publish, each to a new topic", publish.per(topics.count, "publication"))
        report.line("deliveries", TopicReport.number(Double(delivered) / Double(topics.count)) + " per publication")
        let again = Array(topics.prefix(1_000))
        for topic in again { _ = shard.publish(Publication(topic: topic, payload: payload, kind: .plain)) }
        let warm = Stopwatch.measure {
            for number in 0..<operations {
                _ = shard.publish(Publication(topic: again[number % again.count], payload: payload, kind: .plain))
            }
        }
        report.line("publish, 1,000 topics in turn", warm.per(operations, "publication"))
        let route = shard.route(to: topics[0])
        let kept = Stopwatch.measure {
            for _ in 0..<operations {
                _ = shard.publish(Publication(topic: topics[0], payload: payload, kind: .plain), via: route)
            }
        }
        report.line("publish, route kept", kept.per(operations, "publication"))

        // The publication after each change updates the route.
        var random = SeededRandom(state: 11)
        let churn = Stopwatch.measure {
            for _ in 0..<min(operations, 200_000) {
                let place = Int.random(in: held.indices, using: &random)
                shard.unsubscribe(held[place])
                let subscriber = subscribers[place % subscribers.count]
                held[place] = shard.subscribe(subscriber, to: filters[place], options: SubscriptionOptions())
                _ = shard.publish(Publication(topic: topics[0], payload: payload, kind: .plain), via: route)
            }
            plane.settle()
        }
        report.line("churn: off, on, one publication", churn.per(min(operations, 200_000), "round"))
        let unsubscribe = Stopwatch.measure {
            for subscription in held { shard.unsubscribe(subscription) }
            plane.settle()
        }
        report.line("unsubscribe", unsubscribe.per(subscriptions, "subscription"))
    }

    /// Measures deliveries of one topic to many subscribers. Each subscriber has subscribed to the topic, to a filter
    /// with wildcards, or to both.
    private func fanOut(to count: Int, _ report: inout TopicReport) {
        guard let name = TopicName("site/1/device/2"), let filter = TopicFilter("site/+/device/#") else { return }
        let publications = max(10, operations * 10 / count)
        for (title, exact, wildcard) in [
            ("exact", true, false), ("wildcard", false, true), ("both, overlapping", true, true),
        ] {
            let plane = ImmediateLoops(1)
            let shard = plane.first
            let subscribers = (0..<count).map { _ in CountingSubscriber() }
            for subscriber in subscribers {
                if exact { _ = shard.subscribe(subscriber, to: name) }
                if wildcard { _ = shard.subscribe(subscriber, to: filter, options: SubscriptionOptions()) }
            }
            let payload = ByteBuffer(string: "payload")
            let route = shard.route(to: name)
            for _ in 0..<5 { _ = shard.publish(Publication(topic: name, payload: payload, kind: .plain), via: route) }
            let allocationsBefore = AllocationCount.now
            let time = Stopwatch.measure {
                for _ in 0..<publications {
                    _ = shard.publish(Publication(topic: name, payload: payload, kind: .plain), via: route)
                }
            }
            let allocations = AllocationCount.now.map { $0 - (allocationsBefore ?? 0) }
            let deliveries = subscribers.reduce(0) { $0 + $1.count } - 5 * count
            report.title("fan-out to \(count) subscribers, \(title)")
            report.line("deliver", time.per(deliveries, "delivery"))
            report.line("allocations", TopicReport.allocations(allocations, publications, "publication"))
        }
    }
}

private final class CountingSubscriber: TopicSubscriber {
    var count = 0

    func deliver(_ delivery: Delivery, for subscription: TopicSubscription) { count &+= 1 }
}
