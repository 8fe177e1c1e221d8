// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The subscriptions on this loop.
extension TopicShard {
    /// Subscribes to a topic. ``unsubscribe(_:)`` ends the subscription.
    ///
    /// After this function returns, publications on any loop reach the subscriber.
    package func subscribe(_ subscriber: some TopicSubscriber, to name: TopicName) -> TopicSubscription {
        assert(loop.isCurrent())
        return add(subscriber, to: topic(named: name), options: SubscriptionOptions())
    }

    /// Subscribes to the topics that a filter matches. ``unsubscribe(_:)`` ends the subscription.
    ///
    /// A subscriber has one subscription per filter. To change the options of a subscription, set
    /// ``TopicSubscription/options``. If several of a subscriber's filters match, the subscriber gets the publication
    /// once. After this function returns, publications on any loop reach the subscriber.
    package func subscribe(
        _ subscriber: some TopicSubscriber,
        to filter: TopicFilter,
        options: SubscriptionOptions
    ) -> TopicSubscription {
        assert(loop.isCurrent())
        return add(subscriber, to: members(of: filter), options: options)
    }

    private func add(
        _ subscriber: some TopicSubscriber,
        to filter: FilterMembers,
        options: SubscriptionOptions
    ) -> TopicSubscription {
        let subscription = HeldSubscription(subscriber: subscriber, filter: filter, options: options)
        filter.add(subscription)
        audiences.change(filter.name, by: 1, on: index)
        if filter.members.count == 1 { announce(filter, isInterested: true) }
        changed(filter, options, by: 1)
        return subscription
    }

    /// Ends a subscription; repeated calls do nothing. No delivery follows, not even of the present publication.
    package func unsubscribe(_ subscription: TopicSubscription) {
        assert(loop.isCurrent())
        guard let filter = subscription.filter else {
            if let shared = subscription as? SharedSubscription { unsubscribe(shared, givingBack: []) }
            return
        }
        subscription.filter = nil
        subscription.isActive = false
        guard let own = filter.remove(subscription) else { return }
        audiences.change(filter.name, by: -1, on: index)
        changed(filter, subscription.options, by: -1)
        retire(own)
        if filter.members.isEmpty {
            announce(filter, isInterested: false)
            dropIfIdle(filter)
        }
    }

    /// Tells the other shards that this shard got its first member of a filter, or lost its last member.
    func announce(_ filter: FilterMembers, isInterested: Bool) {
        guard mailboxes.count > 1 else { return }
        let change = ShardMailbox.Interest(filter: TopicFilter(of: filter), shard: index, isInterested: isInterested)
        for mailbox in mailboxes where mailbox.index != index { mailbox.post(change) }
    }

    /// Returns the number of the topic's own subscriptions on this loop, without wildcard filters and observers.
    package func subscriberCount(of name: TopicName) -> Int { topics.find(name)?.subscriberCount ?? 0 }

    /// Returns, for each loop, the largest possible number of subscriptions that get the publications to a room. The
    /// number includes observers and subscriptions to wildcard filters.
    package func audience(of room: TopicName) -> [Int] { audiences.counts(of: room) }

    /// Returns topics that begin with `prefix` and have their own subscribers on this loop, with the numbers of these
    /// subscribers. Observers do not count.
    ///
    /// - Parameters:
    ///   - place: the place at which to begin: 0 in the first call, then the `next` of the previous call.
    ///   - limit: the largest number of topics to examine, including topics that do not begin with `prefix`.
    /// - Returns: `next` is nil at the end.
    package func subscriberCounts(
        withPrefix prefix: String,
        from place: Int,
        limit: Int
    ) -> (counts: [TopicName: Int], next: Int?) {
        var counts: [TopicName: Int] = [:]
        for topic in topics.routes(from: place, limit: limit)
        where topic.subscriberCount > 0 && topic.name.hasBytes(startingWith: prefix) {
            counts[topic.topic] = topic.subscriberCount
        }
        let isAtEnd = topics.places - place <= limit
        return (counts, isAtEnd ? nil : place + limit)
    }

    /// The number of wildcard filters with subscribers on any loop or node.
    package var wildcardCount: Int { tree.count }
}
