// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The topics of one event loop: the subscriptions on this loop, and the other loops with subscribers.
///
/// Owner: one event loop. The shard is not Sendable, and has no locks. ``TopicPlane/shard(_:)`` returns the shard only
/// on its own loop. A connection keeps the shard in its handler on the same loop.
///
/// No call blocks. A delivery to a local subscriber allocates nothing. The publications of one loop reach a topic's
/// subscribers on every loop in the order of the ``publish(_:isPaced:)`` calls.
///
/// A ``TopicRoute`` has the subscribers of one topic on this loop: those of the topic itself, and those of the matching
/// filters with wildcards, each subscriber once. It also lists the other loops with subscribers. Publications for these
/// loops are collected, and are posted to the mailboxes of the loops at the end of the tick. A full mailbox drops them.
/// If a topic has very many subscribers on a loop (a crowd), its publications wait while the loop has much to write
/// (``CrowdedTopics``).
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
    /// Whether publications to very many subscribers wait until the loop has written out its copies of earlier
    /// publications.
    @exclusivity(unchecked)
    package internal(set) var isBehindWithCrowds = false
    /// Called when ``isBehindWithCrowds`` becomes true. The loop must then ensure that the value becomes false again.
    package var becameBehind: (() -> Void)?
    var isServingScheduled = false
    /// The number of bytes that were copied for crowds since the loop last reported that it had written out such copies
    /// (``wroteOutputForCrowds()``); nil if the loop has never reported this.
    private var crowdBytes: Int?
    /// Subscriptions that ended during a delivery. They are released after the delivery.
    private var retired: [Unmanaged<TopicSubscription>] = []
    /// Publications by subscribers during a delivery. They are delivered after that delivery, so that all subscribers
    /// see the same order.
    private var deferred: [PublicationBatch] = []
    private var deferredToOne: [(publication: Publication, subscription: TopicSubscription)] = []
    /// The publications that are handed over at the end of the tick (the loop's iteration), by shard.
    var outgoing: [[PublicationBatch]] = []
    var outgoingShared: [[SharedHandOver]] = []
    var isFlushScheduled = false
    /// The output to other nodes; nil if there are no other nodes.
    var nodes: NodeOutput?
    /// The publications that wait for their delivery on this loop, most of them for crowds.
    var crowded = CrowdedTopics()
    /// The groups of all shared subscriptions. All shards use the same object.
    let sharedGroups: SharedGroups
    let audiences: RoomAudiences
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

    // MARK: Publishing

    /// Records that the loop has written all its output for crowds; called by the loop.
    package func wroteOutputForCrowds() {
        crowdBytes = 0
        guard isBehindWithCrowds else { return }
        isBehindWithCrowds = false
        serveCrowdsInTurn()
    }

    /// Publishes a publication. The subscribers on this loop get it now, and it is handed over to the other loops at
    /// the end of the tick.
    ///
    /// - Parameter isPaced: whether the caller waits while the publication waits (``PublishOutcome/ticket``).
    /// - Returns: the outcome. It shows, among other things, whether the publisher should pause.
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

    /// Delivers to one subscription. If another publication is being delivered, this one follows after it. A delivery
    /// to one subscription does not keep the order of the topic's publications.
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
            for (publication, subscription) in others {
                if !subscription.isActive, let ended = subscription as? SharedSubscription {
                    // The member has left meanwhile, so its group chooses again.
                    passOn(publication, of: ended)
                } else {
                    subscription.deliver(Delivery(publication))
                }
            }
        }
        isDelivering = false
        if !retired.isEmpty {
            let ended = retired
            retired = []
            for subscription in ended { Self.letGo(subscription) }
        }
    }

    /// Releases an ended subscription, at once or after the present deliveries.
    func retire(_ subscription: Unmanaged<TopicSubscription>) {
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
            // The spare object keeps the bytes of this publication until the next publication. So each loop keeps the
            // bytes of one publication.
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
        // The array is a snapshot, which costs one reference. It is copied only if members join or leave during the
        // iteration. Members that join are not in the snapshot. Members that leave are not active any more, and stay
        // alive until the end of the delivery (`retired`). A subscription that represents several subscriptions lives
        // as long as `resolved`.
        let resolved = route.resolved
        let entries = route.entries
        withExtendedLifetime(resolved) {
            entries.withUnsafeBufferPointer { entries in
                for entry in entries { entry._withUnsafeGuaranteedRef { body($0) } }
            }
        }
    }
}

// MARK: - The exchange with the shards of other loops
extension TopicShard {
    /// Connects the shard to the mailboxes of all shards; called once, before the shard is in use.
    func connect(to mailboxes: [ShardMailbox]) {
        self.mailboxes = mailboxes
        inbox = mailboxes[index]
        outgoing = Array(repeating: [], count: mailboxes.count)
        outgoingShared = Array(repeating: [], count: mailboxes.count)
    }

    /// - Returns: whether one of the shards is far behind.
    func enqueue(_ publication: PublicationBatch, to shards: ShardSet) -> Bool {
        var isCongested = false
        shards.forEachShard { if enqueue(publication, to: $0) { isCongested = true } }
        return isCongested
    }

    private func enqueue(_ publication: PublicationBatch, to shard: Int) -> Bool {
        guard shard < mailboxes.count else {
            enqueue(publication, toNode: shard - mailboxes.count)
            return false
        }
        let mailbox = mailboxes[shard]
        guard !mailbox.isFull else {
            mailbox.dropped(publication.count)
            return true
        }
        outgoing[shard].append(publication)
        scheduleFlush()
        return mailbox.isCongested
    }

    func scheduleFlush() {
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        let confined = mailboxes[index].shard
        loop.execute {
            confined.value.handOver()
            confined.value.isFlushScheduled = false
        }
    }

    /// Hands the collected publications over to the other shards. This happens at the end of each tick. The loop also
    /// does this before it writes acknowledgements.
    package func handOver() {
        guard isFlushScheduled else { return }
        for shard in outgoing.indices where !outgoing[shard].isEmpty {
            mailboxes[shard].post(outgoing[shard])
            outgoing[shard] = []
        }
        for shard in outgoingShared.indices where !outgoingShared[shard].isEmpty {
            mailboxes[shard].post(outgoingShared[shard])
            outgoingShared[shard] = []
        }
        nodes?.handOver()
    }

    /// Takes over the interest that other shards have announced. This is called before each publication, so that no
    /// interest is overlooked.
    @inline(__always)
    func takeInterest() {
        if let inbox, inbox.hasInterest { apply(inbox.takeInterest()) }
    }

    private func apply(_ changes: [ShardMailbox.Interest]) {
        for change in changes {
            let filter = members(of: change.filter)
            if change.isInterested {
                filter.remoteShards.insert(change.shard)
            } else {
                filter.remoteShards.remove(change.shard)
            }
            filter.membersChanged()
            dropIfIdle(filter)
        }
    }

    /// Handles the mail from other threads.
    func drain() {
        guard let inbox else { return }
        // The mail is taken before the interest. In this order, interest that arrives in between schedules another
        // drain. In the opposite order, such interest would wait until the next publication, and filters without
        // members would stay until then.
        let mail = inbox.takeMail()
        takeInterest()
        for item in mail {
            switch item {
            case .handedOver(let publications):
                deliver(handedOver: publications)
            case .shared(let shared):
                deliver(handedOver: shared)
                for item in shared { inbox.completed(item.publication.weight) }
            case .publish(let publication):
                // The publisher checked beforehand whether the server is too far behind. The publisher is not known
                // here, so it cannot be paused.
                inbox.completed(publication.weight)
                _ = publish(publication, isPaced: false)
            case .received(let publications):
                deliver(received: publications)
            case .work(let work):
                work(self)
            }
        }
    }

    func deliver(handedOver publications: [PublicationBatch]) {
        // Publications that are handed over together often have the same topic.
        var last: TopicRoute?
        // The number of deliveries to crowds (``CrowdedTopics``) since the time was last checked. Checking the time
        // costs as much as a few deliveries.
        var unlooked = 0
        // The number of deliveries to few subscribers since the time was last checked for them, weighted by the sizes
        // of the publications. If there are many such deliveries and no time is left, publications to few subscribers
        // also wait.
        var unlookedFew = 0
        var isLate = false
        for publication in publications {
            if crowded.isWaiting(publication.topic) {
                letWait(handedOver: publication, isOfCrowd: isCrowded(publication.topic))
                continue
            }
            if let route = route(to: publication.topic, last) {
                last = route
                refresh(route)
                let deliveries = route.entries.count * publication.count
                if deliveries >= CrowdedTopics.leastDeliveries {
                    unlooked += deliveries
                    let isLook = unlooked >= Self.deliveriesPerLook
                    if isLook { unlooked = 0 }
                    guard crowded.isEmpty, !isBehindWithCrowds, deliveries <= pace.most, !isLook || loop.hasTime()
                    else {
                        letWait(handedOver: publication, isOfCrowd: true)
                        continue
                    }
                } else if deliveries > 0 {
                    unlookedFew += deliveries * (1 + publication.weight / Self.bytesPerDelivery)
                    if unlookedFew >= Self.deliveriesPerLook {
                        unlookedFew = 0
                        isLate = !loop.hasTime()
                    }
                    guard !isLate else {
                        letWait(handedOver: publication, isOfCrowd: false)
                        continue
                    }
                }
                if deliveries > 0 { deliver(publication, along: route) }
            }
            inbox?.completed(publication.weight)
        }
    }

    private static var deliveriesPerLook: Int { 2_048 }
    /// Copying this many bytes may take as long as a delivery.
    private static var bytesPerDelivery: Int { 4_096 }

    private func route(to topic: TopicName, _ last: TopicRoute?) -> TopicRoute? {
        if let last, last.isListed, last.name.hasBytes(of: topic.rawValue) { return last }
        return existingRoute(to: topic)
    }

    // MARK: Crowded topics

    /// Whether the publication with this ticket (``PublishOutcome/ticket``) still waits for its delivery to a crowd.
    package func isWaiting(_ ticket: CrowdTicket) -> Bool { crowded.isWaiting(ticket.number) }

    /// Makes a publication of this loop wait if earlier publications of its topic wait. If the topic has a crowd, the
    /// publication also waits until earlier output for crowds is written. Without this wait, a loop that is behind
    /// would copy each publication for thousands of peers.
    ///
    /// - Parameter isPaced: whether the caller stops reading from the publisher until the publication is delivered. If
    ///   not, publications are dropped at a lower limit.
    /// - Returns: the publication's ticket; nil if the publication may be delivered now.
    func waitsForCrowd(_ publication: PublicationBatch, along route: TopicRoute, isPaced: Bool) -> CrowdTicket? {
        let isCrowded = isBehindWithCrowds && route.entries.count >= CrowdedTopics.leastDeliveries
        guard isCrowded || crowded.isWaiting(publication.topic) else { return nil }
        let isFull = inbox.map { isPaced ? $0.isOverfullOfCrowds : $0.isFullOfCrowds } ?? false
        guard !isFull else {
            inbox?.dropped(publication.count)
            return CrowdTicket(number: 0, weight: 0)
        }
        inbox?.waitsForCrowd(publication.weight)
        return CrowdTicket(number: letWait(publication, isOfCrowd: true), weight: publication.weight)
    }

    private func isCrowded(_ topic: TopicName) -> Bool {
        existingRoute(to: topic).map { $0.entries.count >= CrowdedTopics.leastDeliveries } ?? false
    }

    /// Makes a publication of another loop wait. If too many publications wait for crowds, a further publication for a
    /// crowd is dropped. This does not harm other topics, because their publications still count as mail.
    private func letWait(handedOver publication: PublicationBatch, isOfCrowd: Bool) {
        if isOfCrowd {
            inbox?.completed(publication.weight)
            guard inbox?.isFullOfCrowds != true else {
                inbox?.dropped(publication.count)
                return
            }
            inbox?.waitsForCrowd(publication.weight)
        }
        _ = letWait(publication, isOfCrowd: isOfCrowd)
    }

    private func letWait(_ publication: PublicationBatch, isOfCrowd: Bool) -> UInt64 {
        // The publication's bytes may be a small part of a read buffer.
        let number = crowded.append(publication.compacted(), isOfCrowd: isOfCrowd)
        serveCrowdsInTurn()
        return number
    }

    func serveCrowdsInTurn() {
        guard !crowded.isEmpty, !isBehindWithCrowds, !isServingScheduled else { return }
        isServingScheduled = true
        let confined = mailboxes[index].shard
        loop.inTurn { confined.value.serveCrowds() }
    }

    /// Delivers waiting publications while the loop's turn has time left.
    private func serveCrowds() {
        isServingScheduled = false
        guard !isBehindWithCrowds else { return }
        repeat {
            var route: TopicRoute?
            let part = crowded.next { topic in
                route = existingRoute(to: topic)
                if let route { refresh(route) }
                let receivers = route?.entries.count ?? 0
                return receivers == 0 ? Int.max : max(1, pace.most / receivers)
            }
            guard let part else { return }
            if let route, !route.entries.isEmpty { deliver(part.publications, along: route) }
            if let completed = part.completed {
                if part.isOfCrowd { inbox?.waitsForCrowd(-completed) } else { inbox?.completed(completed) }
            }
            crowded.finish(part.topic)
        } while !isBehindWithCrowds && loop.hasTime()
        serveCrowdsInTurn()
    }
}
