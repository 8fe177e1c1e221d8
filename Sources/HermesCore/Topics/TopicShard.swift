// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The topics of one event loop: the subscriptions on this loop, and the other loops with subscribers.
///
/// Owner: one event loop. Not Sendable, without locks. ``TopicPlane/shard(_:)`` returns it on its loop only, and a
/// connection keeps it in its handler on the same loop.
///
/// No call waits. A delivery to a local subscriber allocates nothing. On every loop, the subscribers of a topic get
/// publications in the order of one loop's ``publish(_:)`` calls.
package final class TopicShard {
    package let index: Int
    let loop: LoopHandle
    /// Topics with members here, interest elsewhere, or recent publications.
    var topics = TopicTable()
    /// Filters with wildcards; the value is the index in ``wildcards``.
    var tree = TopicTree()
    var wildcards: [WildcardMembers?] = []
    var freeNumbers: [TopicTree.Value] = []
    /// Changes with each wildcard filter, its members and their options.
    var generation: UInt64 = 1
    var cache: RouteCache
    /// The mail for this shard; nil until ``connect(to:)``.
    var inbox: ShardMailbox?
    /// The mailbox of each shard, its own included; empty until ``connect(to:)``.
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
    /// Subscriptions that ended during a delivery; released afterwards.
    private var retired: [Unmanaged<TopicSubscription>] = []
    /// Publications by subscribers during a delivery; delivered afterwards, so that all see one order.
    private var deferred: [PublicationBatch] = []
    private var deferredToOne: [(publication: Publication, subscription: TopicSubscription)] = []
    /// Publications for the end of the tick, by shard.
    var outgoing: [[PublicationBatch]] = []
    var outgoingShared: [[SharedHandOver]] = []
    var isFlushScheduled = false
    /// What goes to other nodes; nil: there are none.
    var nodes: NodeOutput?
    /// Publications that wait, for topics with very many subscribers here.
    var crowded = CrowdedTopics()
    /// Shared by all shards.
    let sharedGroups: SharedGroups
    private let audiences: RoomAudiences
    /// The number of deliveries that may be made in one piece.
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

    /// The number of the topic's own subscriptions on this loop, without wildcard filters and observers.
    package func subscriberCount(of name: TopicName) -> Int { topics.find(name)?.subscriberCount ?? 0 }

    /// The most subscriptions that get what is published to a room, for each loop; with wildcard filters and observers.
    package func audience(of room: TopicName) -> [Int] { audiences.counts(of: room) }

    /// The topics with subscribers of their own on this loop, and their numbers; observers do not count.
    ///
    /// - Parameters:
    ///   - place: where to begin; 0 at first, then what came back as `next`.
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

    /// The number of wildcard filters with subscribers, here or on another loop.
    package var wildcardCount: Int { tree.count }

    // MARK: Publishing

    /// Called by the loop when it has written all output for crowds.
    package func wroteOutputForCrowds() {
        crowdBytes = 0
        guard isBehindWithCrowds else { return }
        isBehindWithCrowds = false
        serveCrowdsInTurn()
    }

    /// Delivers to the subscribers on this loop now, and to the other loops at the end of the tick.
    ///
    /// - Returns: also whether the publisher should pause.
    ///
    /// - Parameter isPaced: whether the caller waits while the publication does (``PublishOutcome/ticket``).
    package func publish(_ publication: Publication, isPaced: Bool = true) -> PublishOutcome {
        assert(loop.isCurrent())
        takeInterest()
        guard let route = existingRoute(to: publication.topic) else {
            return PublishOutcome(localCount: 0, isCongested: false)
        }
        return publish(.one(publication), along: route, isPaced: isPaced)
    }

    /// The same as ``publish(_:)`` without a look-up, for a publisher with a kept route.
    package func publish(_ publication: Publication, via route: TopicRoute) -> PublishOutcome {
        assert(loop.isCurrent())
        assert(publication.topic == route.topic)
        takeInterest()
        return publish(.one(publication), along: route.current(in: self))
    }

    /// The same for publications that arrived together.
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

    /// Delivers to the subscribers on this loop, after the present publication.
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

    /// Delivers to one subscription, after the present publication, outside of its topic's order.
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
            // It keeps the bytes of this publication until the next one: one publication per loop.
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
