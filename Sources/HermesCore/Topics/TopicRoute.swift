// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The route from one topic to all its subscribers; a publisher keeps its last one and publishes without a look-up.
///
/// Valid as long as it is held. Owner: the loop of the ``TopicShard`` that made it.
package final class TopicRoute: FilterMembers {
    /// The generation of the shard's wildcard filters that ``resolved`` reflects; 0 if it is out of date.
    var generation: UInt64 = 0
    /// All subscribers, if wildcard filters match too; nil if there are only the topic's own members.
    var resolved: ResolvedRoute?
    /// The route that has replaced this one in the table; nil while this one is in it.
    private var replacement: TopicRoute?
    /// Its present or last place in the table.
    let number: UInt32
    let hash: UInt32
    /// Its size in the cache; 0 if it is not cached.
    var cachedWeight: UInt32 = 0
    /// Whether it is in the table.
    var isListed = true
    /// Whether it was used since the cache last checked it.
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

    /// Its approximate memory beyond a topic with members, in bytes.
    var weight: UInt32 { UInt32(clamping: 256 + name.utf8.count + (resolved?.weight ?? 0)) }

    /// This route, or its replacement in the table.
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
    /// Keeps alive the entries of ``Local/merged(_:)`` that are in no filter.
    private let owned: [TopicSubscription]
    /// The number of subscriptions that ``owned`` stand for.
    private let partCount: Int

    /// The subscriptions on this loop.
    enum Local {
        /// The topic's own subscriptions: no wildcard filter has any on this loop.
        case own
        /// The subscriptions of one filter.
        case filter(FilterMembers)
        /// One subscription per subscriber, where several filters match. Not retained: valid until a change, or during
        /// a delivery, which releases departed members only at its end.
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

    /// The subscriptions that were put together from those of several filters.
    var mergedCount: Int {
        if case .merged(let merged) = local { merged.count + partCount } else { 0 }
    }

    /// Whether it is still up to date.
    func isCurrent(own: TopicRoute, wildcards: [WildcardMembers]) -> Bool {
        guard ownVersion == own.version, wildcards.count == self.wildcards.count else { return false }
        for (index, filter) in wildcards.enumerated() {
            guard filter === self.wildcards[index], filter.version == versions[index] else { return false }
        }
        return true
    }

    /// Its approximate memory, in bytes.
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
            var options = parts[0].options
            for part in parts.dropFirst() { options.formUnion(part.options) }
            let one = parts[0].merged(parts, options: options)
            merged[place] = .passUnretained(one)
            owned.append(one)
        }
        return (merged, owned, partCount)
    }
}

/// The places of subscribers in a list under construction: a hash table of addresses.
private struct SubscriberPlaces {
    private var slots: [(subscriber: UInt, place: Int)]

    init(capacity: Int) {
        var size = 8
        while size < capacity * 2 { size *= 2 }
        slots = Array(repeating: (0, 0), count: size)
    }

    /// - Returns: the subscriber's present place; nil if it is new.
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
