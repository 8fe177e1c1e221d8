// Hermes
// SPDX-License-Identifier: Apache-2.0

/// All topics of a shard, by name. Owner: the shard's loop.
struct TopicTable {
    private var routes: [TopicRoute?] = []
    private var free: [UInt32] = []
    private var index = HashIndex()

    var count: Int { index.count }

    /// Returns the topics at `limit` places, beginning with `place`, in no particular order. A topic keeps its place.
    func routes(from place: Int, limit: Int) -> some Sequence<TopicRoute> {
        routes.dropFirst(place).prefix(limit).lazy.compactMap { $0 }
    }

    /// The number of places, including places without a topic.
    var places: Int { routes.count }

    func find(_ name: TopicName) -> TopicRoute? {
        name.rawValue.withBytes { find($0, hash: HashIndex.hash($0)) }
    }

    /// Returns the topic's entry, which is created if needed.
    mutating func entry(for name: TopicName) -> (route: TopicRoute, isNew: Bool) {
        let (found, hash) = name.rawValue.withBytes { bytes in
            let hash = HashIndex.hash(bytes)
            return (find(bytes, hash: hash), hash)
        }
        if let found { return (found, false) }
        let number = free.popLast() ?? UInt32(routes.count)
        let route = TopicRoute(topic: name, number: number, hash: hash)
        if Int(number) == routes.count {
            routes.append(route)
        } else {
            routes[Int(number)] = route
        }
        index.insert(number, hash: hash)
        return (route, true)
    }

    mutating func remove(_ route: TopicRoute) {
        guard route.isListed else { return }
        route.isListed = false
        index.remove(route.number, hash: route.hash)
        routes[Int(route.number)] = nil
        free.append(route.number)
    }

    private func find(_ name: UnsafeBufferPointer<UInt8>, hash: UInt32) -> TopicRoute? {
        let number = index.find(hash) { number in
            guard let route = routes[Int(number)] else { return false }
            return route.name.hasBytes(name)
        }
        return number.flatMap { routes[Int($0)] }
    }
}
