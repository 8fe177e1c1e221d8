// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The durable subscribers of a topic, shared by all who publish to it: each of them keeps only a weak reference, so
/// that publishers times subscribers is nobody's memory.
package final class DurableRoute: Sendable {
    package let targets: [DurableTarget]
    /// The shared groups among them.
    package let decided: DecidedShares?
    /// ``DurableSessions/generation`` when it was found.
    package let generation: UInt64

    init(_ targets: [DurableTarget], generation: UInt64) {
        self.targets = targets
        decided = DecidedShares(targets)
        self.generation = generation
    }

    /// The same targets at a later time.
    fileprivate init(_ other: DurableRoute, generation: UInt64) {
        targets = other.targets
        decided = other.decided
        self.generation = generation
    }

    /// Its approximate memory without the topic, in bytes.
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

/// The routes of one generation, as far as they are in use and there is room. Topics that match the same filters share
/// their targets, also over the changes of other filters. Pure; owner: ``DurableState``.
struct DurableRoutes {
    static let maxBytes = 16 << 20

    private var routes: [TopicName: DurableRoute] = [:]
    private var generation: UInt64 = 0
    private var bytes = 0
    /// By ``DurableIndex/Matches/key``.
    private var lists: [[UInt64]: DurableRoute] = [:]
    private var listBytes = 0

    /// The route of a topic, if it is known for this generation.
    mutating func route(to topic: TopicName, generation: UInt64) -> DurableRoute? {
        if generation != self.generation {
            routes.removeAll()
            bytes = 0
            self.generation = generation
        }
        return routes[topic]
    }

    /// The route of a topic that matches the same filters as others did.
    mutating func route(to topic: TopicName, _ key: [UInt64], generation: UInt64) -> DurableRoute? {
        guard let list = lists[key] else { return nil }
        let route = DurableRoute(list, generation: generation)
        keep(route, to: topic)
        return route
    }

    /// Keeps what was found for a topic and the filters that it matches.
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
