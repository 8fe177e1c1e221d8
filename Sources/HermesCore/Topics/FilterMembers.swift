// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The members of one filter or topic in one ``TopicShard``. The members are the subscriptions on the shard's event
/// loop, and the other shards and nodes that have subscriptions. The object is used only on that loop.
package class FilterMembers {
    /// The text of the filter, or the name of the topic.
    final let name: String
    /// The subscriptions on this loop, without gaps: when a member leaves, the last member moves to its place. Each
    /// member is retained manually, so that a delivery changes no reference count. Two atomic operations would cost as
    /// much as the rest of the delivery.
    final var members: [Unmanaged<TopicSubscription>] = []
    /// The other shards that have members. Each other node counts as one shard.
    final var remoteShards = ShardSet()
    /// A number that changes with the members and their options.
    final var version: UInt32 = 0
    /// The number of members that only observe.
    private final var observers: UInt32 = 0

    init(name: String) { self.name = name }

    final var isIdle: Bool { members.isEmpty && remoteShards.isEmpty }

    /// The number of members, not counting the observers.
    final var subscriberCount: Int { members.count - Int(observers) }

    /// Records that the members, their options or the other shards have changed, which makes routes out of date.
    func membersChanged() { version &+= 1 }

    final func add(_ subscription: TopicSubscription) {
        members.append(Unmanaged<TopicSubscription>.passRetained(subscription))
        if subscription.options.isObserver { observers &+= 1 }
        membersChanged()
    }

    /// Removes a subscription. The caller must release it.
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
    /// The filter's value in the ``TopicTree``.
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
    /// Creates the filter to which the members belong.
    init(of members: FilterMembers) {
        self.init(checked: members.name, hasWildcard: members is WildcardMembers)
    }
}
