// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The topics of one event loop: the subscriptions on this loop, and the other loops with subscribers.
///
/// Owner: one event loop. It is not Sendable, and has no locks. ``TopicPlane/shard(_:)`` returns it on its loop only,
/// and a connection keeps it in its handler on the same loop.
///
/// No call waits. A delivery to a local subscriber allocates nothing. The publications of one loop reach a topic's
/// subscribers on every loop in the order of the ``publish(_:isPaced:)`` calls.
package final class TopicShard {
    package let index: Int
    let loop: LoopHandle
    /// The topics with members on this loop, with interest on other loops or nodes, or with recent publications.
    var topics = TopicTable()
    /// The filters with wildcards. The value of a filter is its index in ``wildcards``.
    var tree = TopicTree()
    var wildcards: [WildcardMembers?] = []
    var freeNumbers: [TopicTree.Value] = []
    /// A number that changes with the wildcard filters, their members and the members' options.
    var generation: UInt64 = 1
    var cache: RouteCache
    /// The mail for this shard; nil until ``connect(to:)``.
    var inbox: ShardMailbox?
    /// The mailbox of each shard, including this one; empty until ``connect(to:)``.
    var mailboxes: [ShardMailbox] = []
    private var spare: Delivery?
    private var isDelivering = false
    /// Whether a publication is being delivered to very many subscribers on this loop.
    @exclusivity(unchecked)
    package private(set) var isServingCrowd = false
    /// Whether publications to very many subscribers wait until the loop has written out its copies of earlier ones.
    @exclusivity(unchecked)
    package internal(set) var isBehindWithCrowds = false
    /// Called when ``isBehindWithCrowds`` becomes true. The loop must then ensure that it becomes false again.
    package var becameBehind: (() -> Void)?
    var isServingScheduled = false
    /// The bytes that were copied for crowds since the loop last wrote them out; nil if the loop has never reported
    /// that (``wroteOutputForCrowds()``).
    private var crowdBytes: Int?
    /// Subscriptions that ended during a delivery. They are released after it.
    private var retired: [Unmanaged<TopicSubscription>] = []
    /// Publications by subscribers during a delivery. They are delivered after it, so that all subscribers see the same
    /// order.
    private var deferred: [PublicationBatch] = []
    private var deferredToOne: [(publication: Publication, subscription: TopicSubscription)] = []
    /// The publications that are handed over at the end of the tick (the loop's iteration), by shard.
    var outgoing: [[PublicationBatch]] = []
    var outgoingShared: [[SharedHandOver]] = []
    var isFlushScheduled = false
    /// The output to other nodes; nil: there are no other nodes.
    var nodes: NodeOutput?
    /// The publications that wait for their delivery on this loop, most of them for crowds.
    var crowded = CrowdedTopics()
    /// The groups of all shared subscriptions. All shards use the same object.
    let sharedGroups: SharedGroups
    private let audiences: RoomAudiences
    /// The number of deliveries that may be made without a break.
    package private(set) var pace = DeliveryPace()
    /// The sum of the steps and matches of all searches for the filters of a topic. The difference of two readings is
    /// the cost of the searches in between.
    package internal(set) var matchWork = 0

    init(
        index: Int,
        loop: LoopHandle,
        limits: TopicLimits,
        sharedGroups: SharedGroups,
        audiences: RoomAudiences
    ) {
        self.index = index
        self.loop = loop
        self.sharedGroups = sharedGroups
        self.audiences = audiences
        cache = RouteCache(limits: limits)
    }

    /// The number of loops; each has a tree of all filters with wildcards.
    package var loopCount: Int { max(1, mailboxes.count) }

    // MARK: Subscribing

    /// Subscribes to a topic, until ``unsubscribe(_:)``.
    ///
    /// After this returns, publications on any loop reach the subscriber.
    package func subscribe(_ subscriber: some TopicSubscriber, to name: TopicName) -> TopicSubscription {
        assert(loop.isCurrent())
        return add(subscriber, to: topic(named: name), options: SubscriptionOptions())
    }

    /// Subscribes to the topics that a filter matches, until ``unsubscribe(_:)``.
    ///
    /// A subscriber has one subscription per filter; to change its options, set ``TopicSubscription/options``. If
    /// several of its filters match, it gets the publication once. After this returns, publications on any loop reach
    /// the subscriber.
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

    /// Releases an ended subscription, at once or after the present deliveries.
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

    /// Returns the number of the topic's own subscriptions on this loop, without wildcard filters and observers.
    package func subscriberCount(of name: TopicName) -> Int { topics.find(name)?.subscriberCount ?? 0 }

    /// Returns, for each loop, the largest possible number of subscriptions that get what is published to a room.
    /// Subscriptions to wildcard filters and observers are included.
    package func audience(of room: TopicName) -> [Int] { audiences.counts(of: room) }

    /// Returns topics that begin with `prefix` and have subscribers of their own on this loop, and the numbers of these
    /// subscribers. Observers do not count.
    ///
    /// - Parameters:
    ///   - place: where to begin: 0 at first, then the `next` of the previous call.
    ///   - limit: the most topics to look at, including topics that do not begin with `prefix`.
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

    /// The number of wildcard filters with subscribers on this loop or another.
    package var wildcardCount: Int { tree.count }

    // MARK: Publishing

    /// Records that the loop has written all its output for crowds; called by the loop.
    package func wroteOutputForCrowds() {
        crowdBytes = 0
        guard isBehindWithCrowds else { return }
        isBehindWithCrowds = false
        serveCrowdsInTurn()
    }

    /// Publishes: delivers to the subscribers on this loop now, and hands over to the other loops at the end of the
    /// tick.
    ///
    /// - Returns: the outcome, which also tells whether the publisher should pause.
    ///
    /// - Parameter isPaced: whether the caller waits as long as the publication waits (``PublishOutcome/ticket``).
    package func publish(_ publication: Publication, isPaced: Bool = true) -> PublishOutcome {
        assert(loop.isCurrent())
        takeInterest()
        guard let route = existingRoute(to: publication.topic) else {
            return PublishOutcome(localCount: 0, isCongested: false)
        }
        return publish(.one(publication), along: route, isPaced: isPaced)
    }

    /// Publishes as ``publish(_:isPaced:)`` does, but without a look-up, for a publisher that has kept the route.
    package func publish(_ publication: Publication, via route: TopicRoute) -> PublishOutcome {
        assert(loop.isCurrent())
        assert(publication.topic == route.topic)
        takeInterest()
        return publish(.one(publication), along: route.current(in: self))
    }

    /// Publishes publications that arrived together, for a publisher that has kept the route.
    package func publish(_ run: PublicationRun, via route: TopicRoute) -> PublishOutcome {
        assert(loop.isCurrent())
        assert(run.topic == route.topic)
        takeInterest()
        return publish(.run(run), along: route.current(in: self))
    }

    @inline(__always)
    private func publish(
        _ publication: PublicationBatch,
        along route: TopicRoute,
        isPaced: Bool = true
    ) -> PublishOutcome {
        refresh(route)
        let shards = route.shards
        let isCongested = !shards.isEmpty && enqueue(publication, to: shards)
        let localCount = route.entries.count
        var ticket: CrowdTicket?
        if localCount > 0 {
            if isBehindWithCrowds || !crowded.isEmpty {
                ticket = waitsForCrowd(publication, along: route, isPaced: isPaced)
            }
            if ticket == nil { deliver(publication, along: route) }
        }
        return PublishOutcome(
            localCount: localCount,
            isCongested: isCongested,
            ticket: ticket,
            matchedAnywhere: localCount > 0 || !shards.isEmpty
        )
    }

    /// Delivers to the subscribers on this loop. If another publication is being delivered, this one follows after it.
    ///
    /// - Parameter route: the topic's route, which must be up to date.
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

    /// Delivers to one subscription. If another publication is being delivered, this one follows after it. It does not
    /// keep the order of its topic's publications.
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
        isServingCrowd = route.entries.count >= CrowdedTopics.leastDeliveries
        defer { isServingCrowd = false }
        if isServingCrowd, let before = crowdBytes {
            let bytes = before &+ publication.copiedBytes &* route.entries.count
            crowdBytes = bytes
            if bytes >= CrowdedTopics.bytesAtOnce, !isBehindWithCrowds {
                isBehindWithCrowds = true
                becameBehind?()
            }
        }
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
            // The spare object keeps the bytes of this publication until the next publication. This is one publication
            // per loop.
            if isKnownUniquelyReferenced(&delivery) { spare = delivery }
        case .run(let run):
            let deliveries = run.count * route.entries.count
            let start = deliveries < DeliveryPace.least ? nil : SuspendingClock.now
            let run = DeliveryRun(run)
            Self.forEachEntry(of: route) { $0.deliver(run) }
            if let start { pace.learn(deliveries, SuspendingClock.now - start) }
        }
    }

    @inline(__always)
    private static func forEachEntry(of route: TopicRoute, _ body: (TopicSubscription) -> Void) {
        // The array is a snapshot, which costs one reference; it is copied only if members join or leave during the
        // loop. Members that join are not in the snapshot. Members that leave are not active any more, and stay alive
        // until the end (`retired`). A subscription that stands for several subscriptions lives as long as `resolved`.
        let resolved = route.resolved
        let entries = route.entries
        withExtendedLifetime(resolved) {
            entries.withUnsafeBufferPointer { entries in
                for entry in entries { entry._withUnsafeGuaranteedRef { body($0) } }
            }
        }
    }
}
