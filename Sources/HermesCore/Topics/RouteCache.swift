// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The topics of a shard that are kept only because they were used recently, with their resolved routes. Their number
/// and bytes are bounded. The oldest topic is dropped first, unless it was used since its last check.
struct RouteCache {
    private var routes: [TopicRoute] = []
    private var hand = 0
    private var bytes = 0
    private let limits: TopicLimits

    init(limits: TopicLimits) { self.limits = limits }

    var count: Int { routes.count }

    /// Keeps a route, or updates its size.
    ///
    /// - Returns: the routes that must be dropped to make room.
    mutating func keep(_ route: TopicRoute) -> [TopicRoute] {
        let weight = route.weight
        if !route.isCached { routes.append(route) }
        bytes += Int(weight) - Int(route.cachedWeight)
        route.cachedWeight = weight
        route.wasUsed = true
        guard routes.count > limits.maxCachedRoutes || bytes > limits.maxCachedBytes else { return [] }
        var evicted: [TopicRoute] = []
        // Each check of a route either clears its `wasUsed` or removes the route, so two rounds are enough.
        while routes.count > 1 && (routes.count > limits.maxCachedRoutes || bytes > limits.maxCachedBytes) {
            if hand >= routes.count { hand = 0 }
            let candidate = routes[hand]
            if candidate.wasUsed && candidate !== route {
                candidate.wasUsed = false
                hand += 1
            } else if candidate === route {
                hand += 1
            } else {
                routes.swapAt(hand, routes.count - 1)
                routes.removeLast()
                bytes -= Int(candidate.cachedWeight)
                candidate.cachedWeight = 0
                evicted.append(candidate)
            }
        }
        return evicted
    }
}

/// The bounds of a shard's caches.
package struct TopicLimits: Sendable, Hashable {
    /// The largest number of topics that are kept: recently published topics that have no subscribers of their own, and
    /// topics that several filters match.
    package var maxCachedRoutes: Int
    /// The largest approximate memory of these topics, in bytes.
    package var maxCachedBytes: Int

    package init(maxCachedRoutes: Int = 16_384, maxCachedBytes: Int = 64 << 20) {
        self.maxCachedRoutes = maxCachedRoutes
        self.maxCachedBytes = maxCachedBytes
    }
}
