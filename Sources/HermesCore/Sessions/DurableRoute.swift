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
            case .session(let member): sum + member.bytes
            case .crowd(let crowd): sum + crowd.bytes
            case .group(let group): sum + 256 + 96 * group.members.count
            }
        }
    }
}

/// A cache of routes: the routes of one generation by topic, and the routes of all generations by the filters that
/// match. Topics that match the same filters share their targets, even after changes of other filters. This type does
/// no I/O. ``DurableState`` owns it.
struct DurableRoutes {
    static let maxBytes = 16 << 20
    /// The size in bytes above which a route is large.
    private static let largeBytes = maxBytes / 4
    /// The largest number of bytes of all large routes together. ``minLarge`` large routes are kept even if they have
    /// more bytes.
    private static let maxLargeBytes = 4 * maxBytes
    private static let minLarge = 4

    /// A large route with its filters. It does not count towards ``listBytes``.
    private struct Large {
        let key: [UInt64]
        let route: DurableRoute
        let bytes: Int
        /// The topics in ``routes`` whose routes share the targets of this route.
        var topics: Set<TopicName> = []
    }

    private var routes: [TopicName: DurableRoute] = [:]
    private var generation: UInt64 = 0
    private var bytes = 0
    /// The routes by ``DurableIndex/Matches/key``.
    private var lists: [[UInt64]: DurableRoute] = [:]
    private var listBytes = 0
    /// The large routes, in the order in which they were last kept or found.
    private var large: [Large] = []
    private var allLargeBytes = 0

    /// Returns the route of a topic, if it is known for this generation.
    mutating func route(to topic: TopicName, generation: UInt64) -> DurableRoute? {
        if generation != self.generation {
            forgetTopics()
            self.generation = generation
        }
        return routes[topic]
    }

    /// Returns the route of a topic if an earlier topic matched the same filters; otherwise nil.
    mutating func route(to topic: TopicName, _ key: [UInt64], generation: UInt64) -> DurableRoute? {
        let list = lists[key]
        guard let known = list ?? findLarge(key) else { return nil }
        let route = DurableRoute(known, generation: generation)
        keep(route, to: topic, isLarge: list == nil)
        return route
    }

    /// Keeps a route under its topic, and under the filters that the topic matches.
    mutating func keep(_ route: DurableRoute, to topic: TopicName, _ key: [UInt64]) {
        let size = route.bytes + 8 * key.count + 128
        let isLarge = size > Self.largeBytes
        if isLarge {
            keepLarge(Large(key: key, route: route, bytes: size))
        } else {
            forgetOutdated(key)
            if listBytes + size > Self.maxBytes {
                lists.removeAll()
                listBytes = 0
                forgetTopics()
            }
            if lists.updateValue(route, forKey: key) == nil { listBytes += size }
        }
        keep(route, to: topic, isLarge: isLarge)
    }

    /// Returns the large route of these filters, and moves it to the end of ``large``.
    private mutating func findLarge(_ key: [UInt64]) -> DurableRoute? {
        guard let place = large.firstIndex(where: { $0.key == key }) else { return nil }
        let found = large.remove(at: place)
        large.append(found)
        return found.route
    }

    /// Keeps a large route instead of an outdated route of the same filters. If the large routes have too many bytes,
    /// forgets those that were kept or found least recently.
    private mutating func keepLarge(_ new: Large) {
        forgetOutdated(new.key)
        while large.count >= Self.minLarge, allLargeBytes + new.bytes > Self.maxLargeBytes { forgetLarge(at: 0) }
        large.append(new)
        allLargeBytes += new.bytes
    }

    /// Forgets the large route of an earlier version of these filters.
    private mutating func forgetOutdated(_ key: [UInt64]) {
        let outdated = large.firstIndex { DurableIndex.Matches.haveEqualFilters($0.key, key) }
        if let outdated { forgetLarge(at: outdated) }
    }

    /// Forgets a large route, and also the routes of its topics, because these would keep the targets in memory.
    private mutating func forgetLarge(at place: Int) {
        let old = large.remove(at: place)
        allLargeBytes -= old.bytes
        for topic in old.topics where routes.removeValue(forKey: topic) != nil { bytes -= Self.size(of: topic) }
    }

    /// Forgets the routes by topic. This also frees the targets of routes that are no longer kept under their filters.
    private mutating func forgetTopics() {
        routes.removeAll()
        bytes = 0
        for place in large.indices { large[place].topics.removeAll() }
    }

    /// - Parameter isLarge: whether the route has the targets of the last large route.
    private mutating func keep(_ route: DurableRoute, to topic: TopicName, isLarge: Bool) {
        let size = Self.size(of: topic)
        if bytes + size > Self.maxBytes { forgetTopics() }
        if routes.updateValue(route, forKey: topic) == nil { bytes += size }
        if isLarge, let last = large.indices.last { large[last].topics.insert(topic) }
    }

    /// Returns the approximate memory of a topic and its route without the targets, in bytes.
    private static func size(of topic: TopicName) -> Int { topic.rawValue.utf8.count + 256 }
}
