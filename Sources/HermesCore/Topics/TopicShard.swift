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
    private let loop: LoopHandle
    /// Topics with members here, interest elsewhere, or publications lately.
    private var topics: [TopicName: TopicRoute] = [:]
    /// Filters with wildcards; the value is the place in ``wildcards``.
    private var tree = TopicTree()
    private var wildcards: [WildcardMembers?] = []
    private var freeNumbers: [TopicTree.Value] = []
    /// Changes with each filter with wildcards, its members and their options.
    private var generation: UInt64 = 1
    /// One for each shard, its own among them; empty until ``connect(to:)``.
    private var mailboxes: [ShardMailbox] = []
    private var spare: Delivery?
    private var isDelivering = false
    /// Subscriptions that ended while subscribers were called; let go of afterwards.
    private var retired: [Unmanaged<TopicSubscription>] = []
    /// What subscribers published while they were called: after the current publication, so that all see one order.
    private var deferred: [Publication] = []
    /// What waits for the end of the tick, by shard.
    private var outgoing: [[Publication]] = []
    private var isFlushScheduled = false
    /// Publications that were left out because another loop was too far behind.
    package private(set) var droppedCount: UInt64 = 0

    init(index: Int, loop: LoopHandle) {
        self.index = index
        self.loop = loop
    }

    /// Called once, before the shard is in use.
    func connect(to mailboxes: [ShardMailbox]) {
        self.mailboxes = mailboxes
        outgoing = Array(repeating: [], count: mailboxes.count)
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
        let subscription = HeldSubscription(
            subscriber: subscriber,
            filter: filter,
            index: filter.members.count,
            options: options
        )
        filter.members.append(Unmanaged<TopicSubscription>.passRetained(subscription))
        filter.membersChanged()
        if filter.members.count == 1 { announce(filter, isInterested: true) }
        return subscription
    }

    /// Ends a subscription; a second time does nothing. No delivery follows, not even of a publication under way.
    package func unsubscribe(_ subscription: TopicSubscription) {
        assert(loop.isCurrent())
        guard let filter = subscription.filter else { return }
        subscription.filter = nil
        subscription.isActive = false
        guard let last = filter.members.popLast() else { return }
        let own: Unmanaged<TopicSubscription>
        if subscription.index == filter.members.count {
            own = last
        } else {
            own = filter.members[subscription.index]
            filter.members[subscription.index] = last
            last._withUnsafeGuaranteedRef { $0.index = subscription.index }
        }
        filter.membersChanged()
        if isDelivering {
            retired.append(own)
        } else {
            Self.letGo(own)
        }
        if filter.members.isEmpty {
            announce(filter, isInterested: false)
            drop(filter)
        }
    }

    private static func letGo(_ subscription: Unmanaged<TopicSubscription>) {
        subscription._withUnsafeGuaranteedRef { $0.letGo() }
        subscription.release()
    }

    /// How many subscriptions the topic has on this loop.
    package func subscriberCount(of name: TopicName) -> Int { topics[name]?.members.count ?? 0 }

    /// The topics that have subscribers on this loop, with their numbers.
    package func subscriberCounts(withPrefix prefix: String) -> [TopicName: Int] {
        var counts: [TopicName: Int] = [:]
        for topic in topics.values where !topic.members.isEmpty && topic.name.hasPrefix(prefix) {
            counts[topic.topic] = topic.members.count
        }
        return counts
    }

    private func announce(_ filter: FilterMembers, isInterested: Bool) {
        let change = ShardMailbox.Interest(
            filter: TopicFilter(of: filter),
            shard: index,
            isInterested: isInterested
        )
        for mailbox in mailboxes where mailbox.index != index { mailbox.post(change) }
    }

    // MARK: Routes

    private func topic(named name: TopicName) -> TopicRoute {
        if let topic = topics[name] { return topic }
        let topic = TopicRoute(topic: name, shard: self)
        topics[name] = topic
        return topic
    }

    private func members(of filter: TopicFilter) -> FilterMembers {
        guard filter.hasWildcard else { return topic(named: TopicName(checked: filter.rawValue)) }
        if let number = tree.value(of: filter), let members = wildcards[Int(number)] { return members }
        let number = freeNumbers.popLast() ?? TopicTree.Value(wildcards.count)
        let members = WildcardMembers(filter: filter, number: number, shard: self)
        if Int(number) == wildcards.count {
            wildcards.append(members)
        } else {
            wildcards[Int(number)] = members
        }
        tree.insert(filter, value: number)
        return members
    }

    /// Forgets a filter that nobody is interested in.
    private func drop(_ filter: FilterMembers) {
        guard filter.isIdle else { return }
        if let wildcard = filter as? WildcardMembers {
            tree.remove(TopicFilter(of: wildcard))
            wildcards[Int(wildcard.number)] = nil
            freeNumbers.append(wildcard.number)
        } else if let topic = filter as? TopicRoute {
            topic.isListed = false
            topics[topic.topic] = nil
        }
    }

    /// Routes must be looked at again.
    func wildcardsChanged() { generation &+= 1 }

    /// The way to the subscribers of a topic, for a publisher to keep.
    package func route(to name: TopicName) -> TopicRoute {
        assert(loop.isCurrent())
        return topic(named: name)
    }

    private func current(_ route: TopicRoute) -> TopicRoute {
        if route.isListed { return route }
        if let replacement = route.replacement, replacement.isListed { return replacement }
        let replacement = topic(named: route.topic)
        route.replacement = replacement
        return replacement
    }

    private func refresh(_ route: TopicRoute) {
        guard route.generation != generation else { return }
        route.generation = generation
        var matching: [WildcardMembers] = []
        tree.forEachMatch(of: route.topic) { if let filter = wildcards[Int($0)] { matching.append(filter) } }
        if matching.isEmpty {
            route.resolved = nil
        } else if route.resolved?.isCurrent(own: route, wildcards: matching) != true {
            route.resolved = ResolvedRoute(own: route, wildcards: matching)
        }
    }

    // MARK: Publishing

    /// Delivers to the subscribers on this loop now and hands over to the other loops at the end of the tick.
    ///
    /// - Returns: whether the publisher should pause, because another loop is far behind.
    @discardableResult
    package func publish(_ publication: Publication) -> PublishOutcome {
        assert(loop.isCurrent())
        if mailboxes[index].hasInterest { applyInterest() }
        guard let route = route(of: publication.topic) else {
            return PublishOutcome(localCount: 0, isCongested: false)
        }
        return publish(publication, along: route)
    }

    /// The same as ``publish(_:)``, for a publisher that kept the route of the publication's topic.
    @discardableResult
    package func publish(_ publication: Publication, via route: TopicRoute) -> PublishOutcome {
        assert(loop.isCurrent())
        if mailboxes[index].hasInterest { applyInterest() }
        return publish(publication, along: current(route))
    }

    private func route(of name: TopicName) -> TopicRoute? {
        if let topic = topics[name] { return topic }
        return tree.isEmpty ? nil : topic(named: name)
    }

    private func publish(_ publication: Publication, along route: TopicRoute) -> PublishOutcome {
        refresh(route)
        var isCongested = false
        let shards = route.shards
        for shard in shards {
            if enqueue(publication, to: shard) { isCongested = true }
        }
        let localCount = route.entries.count
        deliver(publication, along: route)
        return PublishOutcome(
            localCount: localCount,
            isCongested: isCongested,
            matchedAnywhere: localCount > 0 || !shards.isEmpty
        )
    }

    private func deliver(_ publication: Publication, along route: TopicRoute) {
        refresh(route)
        guard !route.entries.isEmpty else { return }
        guard !isDelivering else {
            deferred.append(publication)
            return
        }
        isDelivering = true
        deliverToMembers(publication, of: route)
        if !deferred.isEmpty { deliverDeferred() }
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
            guard let route = route(of: publication.topic) else { continue }
            refresh(route)
            deliverToMembers(publication, of: route)
        }
        deferred.removeAll(keepingCapacity: next <= 1024)
    }

    private func deliverToMembers(_ publication: Publication, of route: TopicRoute) {
        var delivery: Delivery
        if let spare {
            delivery = spare
            self.spare = nil
            delivery.reset(to: publication)
        } else {
            delivery = Delivery(publication)
        }
        // A snapshot, which costs a reference: members that join during the loop are not in it, members that leave are
        // not active any more and stay alive until the end (`retired`); only then is the array copied.
        let resolved = route.resolved
        let members = route.entries
        defer { withExtendedLifetime(resolved) {} }
        members.withUnsafeBufferPointer { members in
            for member in members { member._withUnsafeGuaranteedRef { $0.deliver(delivery) } }
        }
        // It keeps the bytes of this publication until the next; that is one for each loop.
        if isKnownUniquelyReferenced(&delivery) { spare = delivery }
    }

    // MARK: Other loops

    /// - Returns: whether the other shard is too far behind.
    private func enqueue(_ publication: Publication, to shard: Int) -> Bool {
        let mailbox = mailboxes[shard]
        guard !mailbox.isFull else {
            droppedCount &+= 1
            return true
        }
        outgoing[shard].append(publication)
        if !isFlushScheduled {
            isFlushScheduled = true
            let confined = mailboxes[index].shard
            loop.execute { confined.value.flush() }
        }
        return mailbox.isCongested
    }

    private func flush() {
        isFlushScheduled = false
        for shard in outgoing.indices where !outgoing[shard].isEmpty {
            mailboxes[shard].post(outgoing[shard])
            outgoing[shard] = []
        }
    }

    private func applyInterest() {
        for change in mailboxes[index].takeInterest() {
            let filter = members(of: change.filter)
            if change.isInterested {
                if !filter.remoteShards.contains(change.shard) { filter.remoteShards.append(change.shard) }
            } else {
                filter.remoteShards.removeAll { $0 == change.shard }
            }
            filter.membersChanged()
            drop(filter)
        }
    }

    /// Takes what other threads posted.
    func drain() {
        applyInterest()
        let mail = mailboxes[index].takeMail()
        for item in mail {
            switch item {
            case .handedOver(let publications):
                for publication in publications {
                    if let route = route(of: publication.topic) { deliver(publication, along: route) }
                    mailboxes[index].completed(publication.weight)
                }
            case .publish(let publication):
                publish(publication)
                mailboxes[index].completed(publication.weight)
            case .work(let work):
                work(self)
            }
        }
    }
}

/// What became of a publication on the publisher's own loop.
package struct PublishOutcome: Sendable, Hashable {
    /// The subscriptions on this loop that got it, or get it after the publication under way.
    package let localCount: Int
    /// Another loop is far behind: the publisher should stop reading for a while.
    package let isCongested: Bool

    /// Somebody, on this loop or another, has a subscription that matches.
    package let matchedAnywhere: Bool

    package init(localCount: Int, isCongested: Bool, matchedAnywhere: Bool = false) {
        self.localCount = localCount
        self.isCongested = isCongested
        self.matchedAnywhere = matchedAnywhere
    }
}

extension TopicFilter {
    /// The filter whose members these are.
    init(of members: FilterMembers) {
        self.init(checked: members.name, hasWildcard: members is WildcardMembers)
    }
}
