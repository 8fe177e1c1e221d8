// Hermes
// SPDX-License-Identifier: Apache-2.0

/// Who subscribes to one filter: on this loop by name, on others by shard. Owner: the shard's loop.
package class FilterMembers {
    /// The filter; for a topic its name.
    final let name: String
    final let shard: TopicShard
    /// Dense: the last member takes the place of one that leaves. Each is retained by hand, so that a delivery loop
    /// touches no reference counts: two atomic operations cost as much as all the rest of a delivery.
    final var members: [Unmanaged<TopicSubscription>] = []
    /// The other shards that have members.
    final var remoteShards: [Int] = []
    /// Changes with the members and their options.
    final var version: UInt32 = 0

    init(name: String, shard: TopicShard) {
        self.name = name
        self.shard = shard
    }

    final var isIdle: Bool { members.isEmpty && remoteShards.isEmpty }

    /// Members, their options or the other shards are not what routes were made from.
    func membersChanged() { version &+= 1 }
}

/// The members of a filter with wildcards.
final class WildcardMembers: FilterMembers {
    /// The value in the tree.
    let number: TopicTree.Value

    init(filter: TopicFilter, number: TopicTree.Value, shard: TopicShard) {
        self.number = number
        super.init(name: filter.rawValue, shard: shard)
    }

    override func membersChanged() {
        super.membersChanged()
        shard.wildcardsChanged()
    }
}

/// The way from one topic to all its subscribers; a publisher keeps the one it used last and publishes without a look-up.
///
/// Stays good as long as it is held. Owner: the loop of the ``TopicShard`` that made it.
package final class TopicRoute: FilterMembers {
    /// The state of the shard's wildcard filters that ``resolved`` was made from; 0 if it must be made anew.
    var generation: UInt64 = 0
    /// Where wildcard filters match too: everybody.
    var resolved: ResolvedRoute?
    /// Whether it is the one in the shard's table.
    var isListed = true
    /// The one in the table, once this is not.
    var replacement: TopicRoute?

    init(topic: TopicName, shard: TopicShard) {
        super.init(name: topic.rawValue, shard: shard)
    }

    package var topic: TopicName { TopicName(checked: name) }

    override func membersChanged() {
        super.membersChanged()
        if resolved != nil { generation = 0 }
    }

    /// The subscriptions on this loop, as of the last refresh.
    var entries: [Unmanaged<TopicSubscription>] {
        guard let resolved else { return members }
        return resolved.single?.members ?? resolved.merged
    }

    var shards: [Int] { resolved?.shards ?? remoteShards }
}

/// What a topic's own members and the wildcard filters that match it come to.
final class ResolvedRoute {
    /// The wildcard filters that match.
    let wildcards: [WildcardMembers]
    private let versions: [UInt32]
    private let ownVersion: UInt32
    /// All shards that the topic must be handed over to.
    let shards: [Int]
    /// Set if only one filter has members here; then they are used in place.
    let single: FilterMembers?
    /// One for each subscriber, if several filters have members here.
    let merged: [Unmanaged<TopicSubscription>]
    /// Keeps alive what is in ``merged`` and in no filter.
    private let owned: [TopicSubscription]

    init(own: TopicRoute, wildcards: [WildcardMembers]) {
        self.wildcards = wildcards
        versions = wildcards.map(\.version)
        ownVersion = own.version
        var shards = own.remoteShards
        for filter in wildcards {
            for shard in filter.remoteShards where !shards.contains(shard) { shards.append(shard) }
        }
        self.shards = shards
        var lists: [FilterMembers] = own.members.isEmpty ? [] : [own]
        for filter in wildcards where !filter.members.isEmpty { lists.append(filter) }
        guard lists.count > 1 else {
            single = lists.first ?? wildcards.first
            merged = []
            owned = []
            return
        }
        single = nil
        (merged, owned) = Self.merge(lists)
    }

    /// Whether it would come out the same.
    func isCurrent(own: TopicRoute, wildcards: [WildcardMembers]) -> Bool {
        ownVersion == own.version && wildcards.elementsEqual(self.wildcards, by: ===)
            && zip(wildcards, versions).allSatisfy { $0.version == $1 }
    }

    private static func merge(
        _ lists: [FilterMembers]
    ) -> (merged: [Unmanaged<TopicSubscription>], owned: [TopicSubscription]) {
        var merged: [Unmanaged<TopicSubscription>] = []
        var places: [ObjectIdentifier: Int] = [:]
        var overlapping: [Int: [TopicSubscription]] = [:]
        for list in lists {
            for member in list.members {
                let identity = member._withUnsafeGuaranteedRef { $0.subscriberIdentity }
                if let place = places[identity] {
                    overlapping[place, default: [merged[place].takeUnretainedValue()]].append(
                        member.takeUnretainedValue()
                    )
                } else {
                    places[identity] = merged.count
                    merged.append(member)
                }
            }
        }
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
