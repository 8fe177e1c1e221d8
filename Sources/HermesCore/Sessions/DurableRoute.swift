// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The durable subscribers of a topic. All publishers to the topic share one route, and each of them keeps only a weak
/// reference to it. So the memory does not grow with the product of publishers and subscribers.
package final class DurableRoute: Sendable {
    package let targets: [DurableTarget]
    /// The shared subscriptions among the targets; nil if there are none.
    package let decided: DecidedShares?
    /// The ``DurableSessions/generation`` at which the route was found.
    package let generation: UInt64

    init(_ targets: [DurableTarget], generation: UInt64) {
        self.targets = targets
        decided = DecidedShares(targets)
        self.generation = generation
    }

    /// Creates a route with the same targets for a later generation.
    fileprivate init(_ other: DurableRoute, generation: UInt64) {
        targets = other.targets
        decided = other.decided
        self.generation = generation
    }

    /// The route's approximate memory without the topic, in bytes.
    fileprivate var bytes: Int {
        targets.reduce(128) { sum, target in
            switch target {
            case .session: sum + 96
            case .crowd(let crowd): sum + 96 * crowd.members.count
            case .group(let group): sum + 256 + 96 * group.members.count
            }
        }
    }
}

/// A cache of routes: the routes of one generation by topic, and the routes of all generations by the filters that
/// match. Topics that match the same filters share their targets, even after changes of other filters. Does no I/O;
/// owned by ``DurableState``.
struct DurableRoutes {
    static let maxBytes = 16 << 20

    private var routes: [TopicName: DurableRoute] = [:]
    private var generation: UInt64 = 0
    private var bytes = 0
    /// The routes by ``DurableIndex/Matches/key``.
    private var lists: [[UInt64]: DurableRoute] = [:]
    private var listBytes = 0

    /// Returns the route of a topic, if it is known for this generation.
    mutating func route(to topic: TopicName, generation: UInt64) -> DurableRoute? {
        if generation != self.generation {
            routes.removeAll()
            bytes = 0
            self.generation = generation
        }
        return routes[topic]
    }

    /// Returns the route of a topic if an earlier topic matched the same filters; otherwise nil.
    mutating func route(to topic: TopicName, _ key: [UInt64], generation: UInt64) -> DurableRoute? {
        guard let list = lists[key] else { return nil }
        let route = DurableRoute(list, generation: generation)
        keep(route, to: topic)
        return route
    }

    /// Keeps a route under its topic, and under the filters that the topic matches.
    mutating func keep(_ route: DurableRoute, to topic: TopicName, _ key: [UInt64]) {
        let size = route.bytes + 8 * key.count + 128
        if listBytes + size > Self.maxBytes {
            lists.removeAll()
            listBytes = 0
        }
        if lists.updateValue(route, forKey: key) == nil { listBytes += size }
        keep(route, to: topic)
    }

    private mutating func keep(_ route: DurableRoute, to topic: TopicName) {
        let size = topic.rawValue.utf8.count + 256
        if bytes + size > Self.maxBytes {
            routes.removeAll()
            bytes = 0
        }
        bytes += size
        routes[topic] = route
    }
}
