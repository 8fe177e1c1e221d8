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

/// The routes of one generation, as far as they are in use and there is room. Pure; owner: ``DurableState``.
struct DurableRoutes {
    static let maxBytes = 16 << 20

    private var routes: [TopicName: DurableRoute] = [:]
    private var generation: UInt64 = 0
    private var bytes = 0

    /// The route of a topic, if it is known for this generation.
    mutating func route(to topic: TopicName, generation: UInt64) -> DurableRoute? {
        if generation != self.generation {
            routes.removeAll()
            bytes = 0
            self.generation = generation
        }
        return routes[topic]
    }

    mutating func keep(_ route: DurableRoute, to topic: TopicName) {
        let size = route.bytes + topic.rawValue.utf8.count + 128
        if bytes + size > Self.maxBytes {
            routes.removeAll()
            bytes = 0
        }
        bytes += size
        routes[topic] = route
    }
}
