// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The members of one filter: subscriptions on this loop, shards for other loops. Owner: the shard's loop.
package class FilterMembers {
    /// The filter; for a topic its name.
    final let name: String
    /// Dense: the last member takes the place of one that leaves. Each is retained manually, so that a delivery touches
    /// no reference counts: two atomic operations cost as much as the rest of a delivery.
    final var members: [Unmanaged<TopicSubscription>] = []
    /// The other shards that have members.
    final var remoteShards = ShardSet()
    /// Changes with the members and their options.
    final var version: UInt32 = 0
    /// The number of members that only observe.
    private final var observers: UInt32 = 0

    init(name: String) { self.name = name }

    final var isIdle: Bool { members.isEmpty && remoteShards.isEmpty }

    /// The number of members that are not mere observers.
    final var subscriberCount: Int { members.count - Int(observers) }

    /// The members, their options or the other shards have changed: routes are out of date.
    func membersChanged() { version &+= 1 }

    final func add(_ subscription: TopicSubscription) {
        members.append(Unmanaged<TopicSubscription>.passRetained(subscription))
        if subscription.options.isObserver { observers &+= 1 }
        membersChanged()
    }

    /// Removes a subscription; the caller releases it.
    final func remove(_ subscription: TopicSubscription) -> Unmanaged<TopicSubscription>? {
        guard let last = members.popLast() else { return nil }
        if subscription.options.isObserver { observers &-= 1 }
        membersChanged()
        let place = Int(subscription.place)
        guard place < members.count else { return last }
        let own = members[place]
        members[place] = last
        last._withUnsafeGuaranteedRef { $0.place = UInt32(place) }
        return own
    }
}

/// The members of a filter with wildcards.
final class WildcardMembers: FilterMembers {
    /// The value in the tree.
    let number: TopicTree.Value
    private let shard: TopicShard

    init(filter: TopicFilter, number: TopicTree.Value, shard: TopicShard) {
        self.number = number
        self.shard = shard
        super.init(name: filter.rawValue)
    }

    override func membersChanged() {
        super.membersChanged()
        shard.wildcardsChanged()
    }
}

extension TopicFilter {
    /// The filter whose members these are.
    init(of members: FilterMembers) {
        self.init(checked: members.name, hasWildcard: members is WildcardMembers)
    }
}
