// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The way from one topic to all its subscribers; a publisher keeps the one it used last and publishes without a look-up.
///
/// Stays good as long as it is held. Owner: the loop of the ``TopicShard`` that made it.
package final class TopicRoute: FilterMembers {
    /// The state of the shard's wildcard filters that ``resolved`` was made from; 0 if it must be made anew.
    var generation: UInt64 = 0
    /// Everybody, where wildcard filters match too; nil if the topic's own members are all.
    var resolved: ResolvedRoute?
    /// The one in the table, once this is not.
    private var replacement: TopicRoute?
    /// Its place in the table, which it had if it is not there any more.
    let number: UInt32
    let hash: UInt32
    /// What the cache counts it for; 0 if it is not there.
    var cachedWeight: UInt32 = 0
    /// Whether it is the one in the table.
    var isListed = true
    /// Whether it was used since the cache looked at it last.
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

    /// All shards that the topic must be handed over to.
    var shards: ShardSet { resolved?.shards ?? remoteShards }

    var isCached: Bool { cachedWeight > 0 }

    /// What it occupies beyond a topic with members, in bytes, roughly.
    var weight: UInt32 { UInt32(clamping: 256 + name.utf8.count + (resolved?.weight ?? 0)) }

    /// This, or the one that took its place in the table since it was dropped from there.
    @inline(__always)
    func current(in shard: TopicShard) -> TopicRoute {
        if isListed { return self }
        if let replacement, replacement.isListed { return replacement }
        let replacement = shard.topic(named: topic)
        self.replacement = replacement
        return replacement
    }
}

/// What a topic's own members and the wildcard filters that match it come to.
final class ResolvedRoute {
    private let wildcards: [WildcardMembers]
    private let versions: [UInt32]
    private let ownVersion: UInt32
    /// All shards that the topic must be handed over to.
    let shards: ShardSet
    let local: Local
    /// Keeps alive what is in ``Local/merged(_:)`` and in no filter.
    private let owned: [TopicSubscription]

    /// The subscriptions on this loop.
    enum Local {
        /// Those of the topic itself: no filter with wildcards has any.
        case own
        /// Those of one filter.
        case filter(FilterMembers)
        /// One for each subscriber, where several have some. Not retained: valid as long as nothing changes, or during a
        /// delivery, at whose end only is let go of what left.
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
        } else if populated == 1 && own.members.isEmpty, let only = wildcards.first(where: { !$0.members.isEmpty }) {
            local = .filter(only)
            owned = []
        } else {
            let (merged, owned) = Self.merge(own.members, wildcards)
            local = .merged(merged)
            self.owned = owned
        }
    }

    /// Whether it would come out the same.
    func isCurrent(own: TopicRoute, wildcards: [WildcardMembers]) -> Bool {
        guard ownVersion == own.version, wildcards.count == self.wildcards.count else { return false }
        for (index, filter) in wildcards.enumerated() {
            guard filter === self.wildcards[index], filter.version == versions[index] else { return false }
        }
        return true
    }

    /// What it occupies, in bytes, roughly.
    var weight: Int {
        let fixed = 128 + 12 * wildcards.count + 128 * owned.count
        if case .merged(let merged) = local { return fixed + 8 * merged.count }
        return fixed
    }

    private static func merge(
        _ own: [Unmanaged<TopicSubscription>],
        _ wildcards: [WildcardMembers]
    ) -> (merged: [Unmanaged<TopicSubscription>], owned: [TopicSubscription]) {
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
        for (place, parts) in overlapping {
            var options = parts[0].options
            for part in parts.dropFirst() { options.formUnion(part.options) }
            let one = parts[0].merged(parts, options: options)
            merged[place] = .passUnretained(one)
            owned.append(one)
        }
        return (merged, owned)
    }
}

/// Where subscribers stand in a list that is being made: a hash table of addresses.
private struct SubscriberPlaces {
    private var slots: [(subscriber: UInt, place: Int)]

    init(capacity: Int) {
        var size = 8
        while size < capacity * 2 { size *= 2 }
        slots = Array(repeating: (0, 0), count: size)
    }

    /// - Returns: where the subscriber stands already; nil if it was not there.
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
