// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The members of one shared subscription, over all loops. To the topic plane it is one subscriber, on its home shard.
///
/// Owner of the state: the loop of the home shard, that of the first member; `key`, `filter` and `home` never change.
package final class SharedGroup: @unchecked Sendable {  // Confined to the home shard's loop, see above.
    /// What the home shard knows of a member.
    final class Seat: Sendable {
        /// Where the member lives.
        let shard: Int
        let load: SharedLoad
        /// The most the member wanted when it joined.
        private let qos: QoS
        /// The member's session is durable.
        let isDurable: Bool
        let subscription: LoopConfined<SharedSubscription>

        init(
            shard: Int,
            load: SharedLoad,
            options: SubscriptionOptions,
            subscription: LoopConfined<SharedSubscription>
        ) {
            self.shard = shard
            self.load = load
            qos = options.qos
            isDurable = options.isLiveAtMostOnceOnly
            self.subscription = subscription
        }

        /// Whether the member will have something to do for a publication until it is acknowledged.
        func isBusied(by publication: Publication) -> Bool { min(publication.qos, qos) > .atMostOnce }

        /// Whether the member gets a publication through the store, if it is the one to get it.
        func isServedByStore(_ publication: Publication) -> Bool { isDurable && isBusied(by: publication) }
    }

    let key: TopicFilter
    let filter: TopicFilter
    let home: Int
    private let shard: LoopConfined<TopicShard>
    private var seats: [Seat] = []
    private var durableCount = 0
    /// Where the next choice begins, so that equals take turns.
    private var next = 0
    private var held: TopicSubscription?

    init(key: TopicFilter, filter: TopicFilter, home: Int, shard: LoopConfined<TopicShard>) {
        self.key = key
        self.filter = filter
        self.home = home
        self.shard = shard
    }

    // MARK: On the home shard

    /// From now on the group gets what the filter matches.
    func begin(on shard: TopicShard) {
        // Each member decides by its own options.
        let options = SubscriptionOptions(qos: .exactlyOnce, retainAsPublished: true)
        held = shard.subscribe(self, to: filter, options: options)
    }

    func add(_ seat: Seat) {
        seats.append(seat)
        if seat.isDurable { durableCount += 1 }
    }

    /// Takes a member out; the others get what it gives back.
    ///
    /// - Parameter isLast: nobody is left, nor joins.
    func remove(_ seat: Seat, givenBack: [Publication], isLast: Bool, on shard: TopicShard) {
        if let place = seats.firstIndex(where: { $0 === seat }) {
            seats.remove(at: place)
            if seat.isDurable { durableCount -= 1 }
            if place < next { next -= 1 }
        }
        for publication in givenBack { hand(publication, on: shard) }
        if isLast { end(on: shard) }
    }

    func end(on shard: TopicShard) {
        if let held { shard.unsubscribe(held) }
        held = nil
    }

    /// Hands a publication to the member with the least to do, outside of a delivery.
    func hand(_ publication: Publication, on shard: TopicShard) {
        guard let seat = choose(for: publication, on: shard) else { return }
        if seat.shard == home {
            shard.deliver(publication, to: seat.subscription.value)
        } else {
            shard.enqueue(publication, to: seat, of: self)
        }
    }

    /// The member with the least to do; equals take turns. Nil if all are on loops that are too far behind.
    ///
    /// Looks at each member at most once, and no further than the first that is idle.
    private func choose(for publication: Publication, on shard: TopicShard) -> Seat? {
        var best: Seat?
        var bestPlace = 0
        var bestLoad = Int.max
        var place = next < seats.count ? next : 0
        for _ in seats.indices {
            let seat = seats[place]
            let load = seat.load.current
            let isReachable = seat.shard == home || !shard.mailboxes[seat.shard].isFull
            if load < bestLoad && isReachable && !seat.isServedByStore(publication) {
                best = seat
                bestPlace = place
                bestLoad = load
                if load <= 0 { break }
            }
            place += 1
            if place == seats.count { place = 0 }
        }
        next = bestPlace + 1
        return best
    }
}

extension SharedGroup: TopicSubscriber {
    package func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
        let shard = shard.value
        let publication = delivery.publication
        // It goes to one member only, and the store has chosen it among the durable ones.
        if durableCount > 0, seats.contains(where: { $0.isServedByStore(publication) }) { return }
        guard let seat = choose(for: publication, on: shard) else {
            shard.droppedCount &+= 1
            return
        }
        if seat.shard == home {
            seat.subscription.value.deliver(delivery)
        } else {
            shard.enqueue(publication, to: seat, of: self)
        }
    }
}
