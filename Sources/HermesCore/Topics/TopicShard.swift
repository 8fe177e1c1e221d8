// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The topics of one event loop: who on this loop subscribes to what, and which other loops have subscribers.
///
/// Owner: one event loop. Not Sendable, without locks; ``TopicPlane/shard(_:)`` hands it out on its loop only, and a
/// connection keeps it in its handler, which lives on the same loop.
///
/// No call waits. Delivering to a local subscriber allocates nothing. A publication reaches the subscribers of a
/// topic in the order of the ``publish(_:)`` calls of one loop, on every loop.
package final class TopicShard {
    package let index: Int
    let loop: LoopHandle
    /// Topics with members here, interest elsewhere, or publications lately.
    var topics = TopicTable()
    /// Filters with wildcards; the value is the place in ``wildcards``.
    var tree = TopicTree()
    var wildcards: [WildcardMembers?] = []
    var freeNumbers: [TopicTree.Value] = []
    /// Changes with each filter with wildcards, its members and their options.
    var generation: UInt64 = 1
    var cache: RouteCache
    /// What is under way to this shard; nil until ``connect(to:)``.
    var inbox: ShardMailbox?
    /// One for each shard, its own among them; empty until ``connect(to:)``.
    var mailboxes: [ShardMailbox] = []
    private var spare: Delivery?
    private var isDelivering = false
    /// Subscriptions that ended while subscribers were called; let go of afterwards.
    private var retired: [Unmanaged<TopicSubscription>] = []
    /// What subscribers published while they were called: after the current publication, so that all see one order.
    private var deferred: [PublicationBatch] = []
    private var deferredToOne: [(publication: Publication, subscription: TopicSubscription)] = []
    /// What waits for the end of the tick, by shard.
    var outgoing: [[PublicationBatch]] = []
    var outgoingShared: [[SharedHandOver]] = []
    var isFlushScheduled = false
    /// The same for all shards.
    let sharedGroups: SharedGroups
    /// Publications that were left out because another loop was too far behind.
    package internal(set) var droppedCount: UInt64 = 0

    init(index: Int, loop: LoopHandle, limits: TopicLimits, sharedGroups: SharedGroups) {
        self.index = index
        self.loop = loop
        self.sharedGroups = sharedGroups
        cache = RouteCache(limits: limits)
    }

    // MARK: Subscribing

    /// From now on `subscriber` gets what is published to the topic, until ``unsubscribe(_:)``.
    ///
    /// Whoever publishes, on any loop, after this returned reaches the subscriber.
    package func subscribe(_ subscriber: some TopicSubscriber, to name: TopicName) -> TopicSubscription {
        assert(loop.isCurrent())
        return add(subscriber, to: topic(named: name), options: SubscriptionOptions())
    }

    /// From now on `subscriber` gets what is published to the topics that the filter matches, until ``unsubscribe(_:)``.
    ///
    /// A subscriber has one subscription for each filter; one that asks again gets the other options by setting
    /// ``TopicSubscription/options``. Where several of its filters match, it gets the publication once. Whoever publishes,
    /// on any loop, after this returned reaches the subscriber.
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
        if filter.members.count == 1 { announce(filter, isInterested: true) }
        return subscription
    }

    /// Ends a subscription; a second time does nothing. No delivery follows, not even of a publication under way.
    package func unsubscribe(_ subscription: TopicSubscription) {
        assert(loop.isCurrent())
        guard let filter = subscription.filter else {
            if let shared = subscription as? SharedSubscription { unsubscribe(shared, givingBack: []) }
            return
        }
        subscription.filter = nil
        subscription.isActive = false
        guard let own = filter.remove(subscription) else { return }
        retire(own)
        if filter.members.isEmpty {
            announce(filter, isInterested: false)
            dropIfIdle(filter)
        }
    }

    /// Lets go of a subscription that is not active any more, or does so after the deliveries under way.
    private func retire(_ subscription: Unmanaged<TopicSubscription>) {
        if isDelivering {
            retired.append(subscription)
        } else {
            Self.letGo(subscription)
        }
    }

    func retire(_ subscription: TopicSubscription) { retire(Unmanaged.passRetained(subscription)) }

    private static func letGo(_ subscription: Unmanaged<TopicSubscription>) {
        subscription._withUnsafeGuaranteedRef { $0.letGo() }
        subscription.release()
    }

    /// How many subscriptions the topic itself has on this loop; filters with wildcards do not count.
    package func subscriberCount(of name: TopicName) -> Int { topics.find(name)?.members.count ?? 0 }

    /// The topics that have subscribers of their own on this loop, with their numbers.
    package func subscriberCounts(withPrefix prefix: String) -> [TopicName: Int] {
        var counts: [TopicName: Int] = [:]
        for topic in topics.all where !topic.members.isEmpty && topic.name.hasPrefix(prefix) {
            counts[topic.topic] = topic.members.count
        }
        return counts
    }

    /// Topics that are known here: with subscribers, with interest of other loops, or published to lately.
    package var topicCount: Int { topics.count }

    /// Filters with wildcards that somebody subscribes to, here or on another loop.
    package var wildcardCount: Int { tree.count }

    // MARK: Publishing

    /// Delivers to the subscribers on this loop now and hands over to the other loops at the end of the tick.
    ///
    /// - Returns: whether the publisher should pause, because another loop is far behind.
    @discardableResult
    package func publish(_ publication: Publication) -> PublishOutcome {
        assert(loop.isCurrent())
        takeInterest()
        guard let route = existingRoute(to: publication.topic) else {
            return PublishOutcome(localCount: 0, isCongested: false)
        }
        return publish(.one(publication), along: route)
    }

    /// The same as ``publish(_:)`` without a look-up, for a publisher that kept the route of the publication's topic.
    @discardableResult
    package func publish(_ publication: Publication, via route: TopicRoute) -> PublishOutcome {
        assert(loop.isCurrent())
        assert(publication.topic == route.topic)
        takeInterest()
        return publish(.one(publication), along: route.current(in: self))
    }

    /// The same for publications that came together.
    @discardableResult
    package func publish(_ run: PublicationRun, via route: TopicRoute) -> PublishOutcome {
        assert(loop.isCurrent())
        assert(run.topic == route.topic)
        takeInterest()
        return publish(.run(run), along: route.current(in: self))
    }

    @inline(__always)
    private func publish(_ publication: PublicationBatch, along route: TopicRoute) -> PublishOutcome {
        refresh(route)
        let shards = route.shards
        let isCongested = !shards.isEmpty && enqueue(publication, to: shards)
        let localCount = route.entries.count
        if localCount > 0 { deliver(publication, along: route) }
        return PublishOutcome(
            localCount: localCount,
            isCongested: isCongested,
            matchedAnywhere: localCount > 0 || !shards.isEmpty
        )
    }

    /// Delivers to the subscribers on this loop, after the publication under way.
    ///
    /// - Parameter route: up to date.
    @inline(__always)
    func deliver(_ publication: PublicationBatch, along route: TopicRoute) {
        guard !isDelivering else {
            deferred.append(publication)
            return
        }
        isDelivering = true
        deliverToEntries(of: route, publication)
        endDelivery()
    }

    /// Delivers to one subscription, after the publication under way; outside of the order of its topic.
    func deliver(_ publication: Publication, to subscription: TopicSubscription) {
        guard !isDelivering else {
            deferredToOne.append((publication, subscription))
            return
        }
        isDelivering = true
        subscription.deliver(Delivery(publication))
        endDelivery()
    }

    private func endDelivery() {
        while !deferred.isEmpty || !deferredToOne.isEmpty {
            if !deferred.isEmpty { deliverDeferred() }
            let others = deferredToOne
            deferredToOne = []
            for (publication, subscription) in others { subscription.deliver(Delivery(publication)) }
        }
        isDelivering = false
        if !retired.isEmpty {
            let ended = retired
            retired = []
            for subscription in ended { Self.letGo(subscription) }
        }
    }

    private func deliverDeferred() {
        var next = 0
        while next < deferred.count {
            let publication = deferred[next]
            next += 1
            guard let route = existingRoute(to: publication.topic) else { continue }
            refresh(route)
            deliverToEntries(of: route, publication)
        }
        deferred.removeAll(keepingCapacity: next <= 1024)
    }

    @inline(__always)
    private func deliverToEntries(of route: TopicRoute, _ publication: PublicationBatch) {
        switch publication {
        case .one(let publication):
            var delivery: Delivery
            if let spare {
                delivery = spare
                self.spare = nil
                delivery.reset(to: publication)
            } else {
                delivery = Delivery(publication)
            }
            Self.forEachEntry(of: route) { $0.deliver(delivery) }
            // It keeps the bytes of this publication until the next; that is one for each loop.
            if isKnownUniquelyReferenced(&delivery) { spare = delivery }
        case .run(let run):
            let run = DeliveryRun(run)
            Self.forEachEntry(of: route) { $0.deliver(run) }
        }
    }

    @inline(__always)
    private static func forEachEntry(of route: TopicRoute, _ body: (TopicSubscription) -> Void) {
        // A snapshot, which costs a reference: members that join during the loop are not in it, members that leave are
        // not active any more and stay alive until the end (`retired`); only then is the array copied. What stands for
        // several subscriptions lives as long as `resolved`.
        let resolved = route.resolved
        let entries = route.entries
        withExtendedLifetime(resolved) {
            entries.withUnsafeBufferPointer { entries in
                for entry in entries { entry._withUnsafeGuaranteedRef { body($0) } }
            }
        }
    }
}
