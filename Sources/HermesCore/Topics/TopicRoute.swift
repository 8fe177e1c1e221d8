// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The route from one topic to all its subscribers. A publisher keeps the route that it used last, and so publishes
/// without a look-up.
///
/// A route is valid while it is referenced. Owner: the loop of the ``TopicShard`` that made it.
package final class TopicRoute: FilterMembers {
    /// The generation of the shard's wildcard filters that ``resolved`` reflects; 0 if ``resolved`` is out of date.
    var generation: UInt64 = 0
    /// All subscribers, if wildcard filters also match; nil if there are only the topic's own members.
    var resolved: ResolvedRoute?
    /// The route that has replaced this one in the table; nil while this route is in the table.
    private var replacement: TopicRoute?
    /// The route's present or last place in the table.
    let number: UInt32
    let hash: UInt32
    /// The route's size in the cache, in bytes; 0 if the route is not cached.
    var cachedWeight: UInt32 = 0
    /// Whether the route is in the table.
    var isListed = true
    /// Whether the route was used since the cache last checked it.
    var wasUsed = true

    init(topic: TopicName, number: UInt32, hash: UInt32) {
        self.number = number
        self.hash = hash
        super.init(name: topic.rawValue)
    }

    package var topic: TopicName { TopicName(checked: name) }

    override func membersChanged() {
        super.membersChanged()
        if resolved != nil { generation = 0 }
    }

    /// The subscriptions on this loop; up to date only after ``TopicShard/refresh(_:)``.
    var entries: [Unmanaged<TopicSubscription>] {
        guard let resolved else { return members }
        switch resolved.local {
        case .own: return members
        case .filter(let filter): return filter.members
        case .merged(let merged): return merged
        }
    }

    /// The number of subscriptions on this loop, as of the last publication.
    package var receiverCount: Int { entries.count }

    /// All shards that get the topic's publications.
    var shards: ShardSet { resolved?.shards ?? remoteShards }

    var isCached: Bool { cachedWeight > 0 }

    /// The approximate memory of the route without its own members, in bytes.
    var weight: UInt32 { UInt32(clamping: 256 + name.utf8.count + (resolved?.weight ?? 0)) }

    /// Returns this route, or its replacement in the table.
    @inline(__always)
    func current(in shard: TopicShard) -> TopicRoute {
        if isListed { return self }
        if let replacement, replacement.isListed { return replacement }
        let replacement = shard.topic(named: topic)
        self.replacement = replacement
        return replacement
    }
}

/// The combination of a topic's own members and the matching wildcard filters.
final class ResolvedRoute {
    private let wildcards: [WildcardMembers]
    private let versions: [UInt32]
    private let ownVersion: UInt32
    /// All shards that get the topic's publications.
    let shards: ShardSet
    let local: Local
    /// The entries of ``Local/merged(_:)`` that are in no filter; this array keeps them alive.
    private let owned: [TopicSubscription]
    /// The number of subscriptions that the entries of ``owned`` represent.
    private let partCount: Int

    /// The subscriptions on this loop.
    enum Local {
        /// The topic's own subscriptions. No matching wildcard filter has subscriptions on this loop.
        case own
        /// The subscriptions of one filter.
        case filter(FilterMembers)
        /// One subscription per subscriber, if several filters match. The subscriptions are not retained. They are
        /// valid until the next change. During a delivery they stay valid, because members that leave are released only
        /// at the end of the delivery.
        case merged([Unmanaged<TopicSubscription>])
    }

    init(own: TopicRoute, wildcards: [WildcardMembers]) {
        self.wildcards = wildcards
        versions = wildcards.map(\.version)
        ownVersion = own.version
        var shards = own.remoteShards
        var populated = 0
        for filter in wildcards {
            shards.formUnion(filter.remoteShards)
            if !filter.members.isEmpty { populated += 1 }
        }
        self.shards = shards
        if populated == 0 {
            local = .own
            owned = []
            partCount = 0
        } else if populated == 1 && own.members.isEmpty, let only = wildcards.first(where: { !$0.members.isEmpty }) {
            local = .filter(only)
            owned = []
            partCount = 0
        } else {
            let (merged, owned, partCount) = Self.merge(own.members, wildcards)
            local = .merged(merged)
            self.owned = owned
            self.partCount = partCount
        }
    }

    /// The number of subscriptions that were merged from several filters, including the parts of combined
    /// subscriptions.
    var mergedCount: Int {
        if case .merged(let merged) = local { merged.count + partCount } else { 0 }
    }

    /// Whether the combination is still up to date.
    func isCurrent(own: TopicRoute, wildcards: [WildcardMembers]) -> Bool {
        guard ownVersion == own.version, wildcards.count == self.wildcards.count else { return false }
        for (index, filter) in wildcards.enumerated() {
            guard filter === self.wildcards[index], filter.version == versions[index] else { return false }
        }
        return true
    }

    /// The approximate memory of the combination, in bytes.
    var weight: Int {
        let fixed = 128 + 12 * wildcards.count + 128 * owned.count + 8 * partCount
        if case .merged(let merged) = local { return fixed + 8 * merged.count }
        return fixed
    }

    private static func merge(
        _ own: [Unmanaged<TopicSubscription>],
        _ wildcards: [WildcardMembers]
    ) -> (merged: [Unmanaged<TopicSubscription>], owned: [TopicSubscription], partCount: Int) {
        var merged: [Unmanaged<TopicSubscription>] = []
        let count = wildcards.reduce(own.count) { $0 + $1.members.count }
        merged.reserveCapacity(count)
        var places = SubscriberPlaces(capacity: count)
        var overlapping: [Int: [TopicSubscription]] = [:]
        func add(_ members: [Unmanaged<TopicSubscription>]) {
            for member in members {
                let subscriber = member._withUnsafeGuaranteedRef { $0.subscriberAddress }
                if let place = places.insert(subscriber, place: merged.count) {
                    overlapping[place, default: [merged[place].takeUnretainedValue()]]
                        .append(member.takeUnretainedValue())
                } else {
                    merged.append(member)
                }
            }
        }
        add(own)
        for filter in wildcards { add(filter.members) }
        var owned: [TopicSubscription] = []
        var partCount = 0
        for (place, parts) in overlapping {
            partCount += parts.count
            var options = CombinedOptions(parts[0].options)
            for part in parts.dropFirst() { options.formUnion(part.options) }
            let one = parts[0].merged(parts, options: options)
            merged[place] = .passUnretained(one)
            owned.append(one)
            if let own = one.own { owned.append(own) }
        }
        return (merged, owned, partCount)
    }
}

/// The places of subscribers in a list that is being built: a hash table of addresses.
private struct SubscriberPlaces {
    private var slots: [(subscriber: UInt, place: Int)]

    init(capacity: Int) {
        var size = 8
        while size < capacity * 2 { size *= 2 }
        slots = Array(repeating: (0, 0), count: size)
    }

    /// - Returns: the subscriber's existing place; nil if the subscriber is new.
    mutating func insert(_ subscriber: UInt, place: Int) -> Int? {
        let mask = slots.count - 1
        // Addresses of objects are multiples of 16.
        var slot = Int(truncatingIfNeeded: (subscriber >> 4) &* 0x9e37_79b9_7f4a_7c15 >> 20) & mask
        while slots[slot].subscriber != 0 {
            if slots[slot].subscriber == subscriber { return slots[slot].place }
            slot = (slot + 1) & mask
        }
        slots[slot] = (subscriber, place)
        return nil
    }
}
