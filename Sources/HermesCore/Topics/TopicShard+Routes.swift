// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Look-up of the subscribers of names and filters.
extension TopicShard {
    /// Returns the route to the subscribers of a topic, for a publisher to keep.
    package func route(to name: TopicName) -> TopicRoute {
        assert(loop.isCurrent())
        takeInterest()
        let route = topic(named: name)
        refresh(route)
        return route
    }

    /// Returns the topic's entry, which is created if needed.
    func topic(named name: TopicName) -> TopicRoute { topics.entry(for: name).route }

    /// Returns the topic's entry; nil if the topic cannot have subscribers.
    func existingRoute(to name: TopicName) -> TopicRoute? {
        tree.isEmpty ? topics.find(name) : topic(named: name)
    }

    /// Brings a route up to date with the subscriptions.
    @inline(__always)
    func refresh(_ route: TopicRoute) {
        route.wasUsed = true
        if route.generation != generation { resolve(route) }
    }

    private func resolve(_ route: TopicRoute) {
        route.generation = generation
        var matching: [WildcardMembers] = []
        matchWork &+= tree.forEachMatch(of: route.topic) { number in
            if let filter = wildcards[Int(number)] { matching.append(filter) }
        }
        matchWork &+= matching.count
        if matching.isEmpty {
            route.resolved = nil
        } else if route.resolved?.isCurrent(own: route, wildcards: matching) != true {
            let resolved = ResolvedRoute(own: route, wildcards: matching)
            route.resolved = resolved
            matchWork &+= resolved.mergedCount / 8
        }
        guard route.isCached || route.isIdle || route.resolved != nil else { return }
        for evicted in cache.keep(route) {
            evicted.resolved = nil
            evicted.generation = 0
            dropIfIdle(evicted)
        }
    }

    /// Records that a filter with wildcards has changed, or that its members have changed. This makes all routes out of
    /// date.
    func wildcardsChanged() { generation &+= 1 }

    /// Returns the members of a filter, which are created if needed.
    func members(of filter: TopicFilter) -> FilterMembers {
        guard filter.hasWildcard else { return topic(named: TopicName(checked: filter.rawValue)) }
        if let number = tree.value(of: filter), let members = wildcards[Int(number)] { return members }
        let number = freeNumbers.popLast() ?? TopicTree.Value(wildcards.count)
        let members = WildcardMembers(filter: filter, number: number, shard: self)
        if Int(number) == wildcards.count {
            wildcards.append(members)
        } else {
            wildcards[Int(number)] = members
        }
        tree.insert(filter, value: number)
        return members
    }

    /// Removes a filter or topic if it has no members on any loop or node.
    func dropIfIdle(_ filter: FilterMembers) {
        guard filter.isIdle else { return }
        if let topic = filter as? TopicRoute {
            if !topic.isCached { topics.remove(topic) }
        } else if let wildcard = filter as? WildcardMembers {
            tree.remove(TopicFilter(of: wildcard))
            wildcards[Int(wildcard.number)] = nil
            freeNumbers.append(wildcard.number)
        }
    }
}
