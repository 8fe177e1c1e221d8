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
    /// A topic with members here or interest elsewhere.
    final class Topic {
        let name: TopicName
        /// Dense: the last member takes the place of one that leaves. Each is retained by hand, so that a delivery loop
        /// touches no reference counts: two atomic operations cost as much as all the rest of a delivery.
        var members: [Unmanaged<TopicSubscription>] = []
        /// The other shards that have members.
        var remoteShards: [Int] = []

        init(name: TopicName) { self.name = name }
    }

    package let index: Int
    private let loop: LoopHandle
    private var topics: [TopicName: Topic] = [:]
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
        let topic = topic(named: name)
        let subscription = HeldSubscription(subscriber: subscriber, topic: topic, index: topic.members.count)
        topic.members.append(Unmanaged<TopicSubscription>.passRetained(subscription))
        if topic.members.count == 1 { announce(name, isInterested: true) }
        return subscription
    }

    /// Ends a subscription; a second time does nothing. No delivery follows, not even of a publication under way.
    package func unsubscribe(_ subscription: TopicSubscription) {
        assert(loop.isCurrent())
        guard let topic = subscription.topic else { return }
        subscription.topic = nil
        subscription.isActive = false
        guard let last = topic.members.popLast() else { return }
        let own: Unmanaged<TopicSubscription>
        if subscription.index == topic.members.count {
            own = last
        } else {
            own = topic.members[subscription.index]
            topic.members[subscription.index] = last
            last._withUnsafeGuaranteedRef { $0.index = subscription.index }
        }
        if isDelivering {
            retired.append(own)
        } else {
            Self.letGo(own)
        }
        if topic.members.isEmpty {
            announce(topic.name, isInterested: false)
            if topic.remoteShards.isEmpty { topics[topic.name] = nil }
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
        for topic in topics.values where !topic.members.isEmpty && topic.name.rawValue.hasPrefix(prefix) {
            counts[topic.name] = topic.members.count
        }
        return counts
    }

    private func topic(named name: TopicName) -> Topic {
        if let topic = topics[name] { return topic }
        let topic = Topic(name: name)
        topics[name] = topic
        return topic
    }

    private func announce(_ name: TopicName, isInterested: Bool) {
        let change = ShardMailbox.Interest(topic: name, shard: index, isInterested: isInterested)
        for mailbox in mailboxes where mailbox.index != index { mailbox.post(change) }
    }

    // MARK: Publishing

    /// Delivers to the subscribers on this loop now and hands over to the other loops at the end of the tick.
    ///
    /// - Returns: whether the publisher should pause, because another loop is far behind.
    @discardableResult
    package func publish(_ publication: Publication) -> PublishOutcome {
        assert(loop.isCurrent())
        if mailboxes[index].hasInterest { applyInterest() }
        guard let topic = topics[publication.topic] else { return PublishOutcome(localCount: 0, isCongested: false) }
        var isCongested = false
        for shard in topic.remoteShards {
            if enqueue(publication, to: shard) { isCongested = true }
        }
        let localCount = topic.members.count
        deliver(publication, to: topic)
        return PublishOutcome(localCount: localCount, isCongested: isCongested)
    }

    private func deliver(_ publication: Publication, to topic: Topic) {
        guard !topic.members.isEmpty else { return }
        guard !isDelivering else {
            deferred.append(publication)
            return
        }
        isDelivering = true
        deliverToMembers(publication, of: topic)
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
            if let topic = topics[publication.topic] { deliverToMembers(publication, of: topic) }
        }
        deferred.removeAll(keepingCapacity: next <= 1024)
    }

    private func deliverToMembers(_ publication: Publication, of topic: Topic) {
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
        let members = topic.members
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
            if change.isInterested {
                let topic = topic(named: change.topic)
                if !topic.remoteShards.contains(change.shard) { topic.remoteShards.append(change.shard) }
            } else if let topic = topics[change.topic] {
                topic.remoteShards.removeAll { $0 == change.shard }
                if topic.members.isEmpty && topic.remoteShards.isEmpty { topics[change.topic] = nil }
            }
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
                    if let topic = topics[publication.topic] { deliver(publication, to: topic) }
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

    package init(localCount: Int, isCongested: Bool) {
        self.localCount = localCount
        self.isCongested = isCongested
    }
}

/// One subscriber's hold on one topic; ended by ``TopicShard/unsubscribe(_:)``. Owner: the shard's loop.
package class TopicSubscription {
    fileprivate final var topic: TopicShard.Topic?
    fileprivate final var index: Int
    fileprivate final var isActive = true

    fileprivate init(topic: TopicShard.Topic, index: Int) {
        self.topic = topic
        self.index = index
    }

    fileprivate func deliver(_ delivery: Delivery) {}

    fileprivate func letGo() {}
}

/// A subscription that knows the type of its subscriber, and keeps it alive until it ends.
private final class HeldSubscription<Subscriber: TopicSubscriber>: TopicSubscription {
    private let subscriber: Unmanaged<Subscriber>

    init(subscriber: Subscriber, topic: TopicShard.Topic, index: Int) {
        self.subscriber = .passRetained(subscriber)
        super.init(topic: topic, index: index)
    }

    override func deliver(_ delivery: Delivery) {
        if isActive { subscriber._withUnsafeGuaranteedRef { $0.deliver(delivery) } }
    }

    override func letGo() { subscriber.release() }
}
