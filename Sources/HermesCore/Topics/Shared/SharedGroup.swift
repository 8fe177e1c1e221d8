// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The members of one shared subscription, over all loops. To the topic plane it is one subscriber, on its home shard.
///
/// Where some of the members' sessions are kept, whoever publishes with QoS 1 or 2 has the member chosen among all
/// (``DurableGroup``), and says so in the publication (``Publication/decided``).
///
/// Owner of the state: the loop of the home shard, that of the first member; `key`, `filter` and `home` never change.
package final class SharedGroup: @unchecked Sendable {  // Confined to the home shard's loop, see above.
    /// What others than its own shard know of a member.
    final class Seat: Sendable {
        /// Where the member lives.
        let shard: Int
        let load: SharedLoad
        private let reader: (any TopicReader)?
        /// The most the member wants (2 bits), whether its session is durable (4), whether it may not read all that the
        /// filter matches (8).
        private let traits: Atomic<UInt8>
        let subscription: LoopConfined<SharedSubscription>

        init(
            shard: Int,
            load: SharedLoad,
            reader: (any TopicReader)? = nil,
            options: SubscriptionOptions,
            subscription: LoopConfined<SharedSubscription>
        ) {
            self.shard = shard
            self.load = load
            self.reader = reader
            traits = Atomic(Self.traits(options))
            self.subscription = subscription
        }

        private static func traits(_ options: SubscriptionOptions) -> UInt8 {
            options.qos.rawValue | (options.isLiveAtMostOnceOnly ? 4 : 0) | (options.isFiltered ? 8 : 0)
        }

        /// The member asked for something else.
        func change(_ options: SubscriptionOptions) { traits.store(Self.traits(options), ordering: .relaxed) }

        /// Whether the member will have something to do for a publication until it is acknowledged.
        func isBusied(by publication: Publication) -> Bool {
            publication.qos > .atMostOnce && traits.load(ordering: .relaxed) & 3 > 0
        }

        /// Whether the member's session is durable.
        var isKept: Bool { traits.load(ordering: .relaxed) & 4 != 0 }

        /// Whether the member can get a publication by the live path: it may read it, and does not get it through the
        /// store.
        func canTake(_ publication: Publication) -> Bool {
            let traits = traits.load(ordering: .relaxed)
            if publication.qos > .atMostOnce, traits & 4 != 0, traits & 3 > 0 { return false }
            return traits & 8 == 0 || reader?.mayRead(publication.topic) ?? true
        }
    }

    let key: TopicFilter
    let filter: TopicFilter
    let home: Int
    private let shard: LoopConfined<TopicShard>
    private var seats: [Seat] = []
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

    func add(_ seat: Seat) { seats.append(seat) }

    /// Takes a member out; the others get what it gives back.
    ///
    /// - Parameter isLast: nobody is left, nor joins.
    func remove(_ seat: Seat, givenBack: [Publication], isLast: Bool, on shard: TopicShard) {
        if let place = seats.firstIndex(where: { $0 === seat }) {
            seats.remove(at: place)
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
        if publication.qos > .atMostOnce, shard.sharedGroups.keeper?.hand(publication, in: key) ?? false { return }
        guard let seat = choose(for: publication, on: shard) else { return }
        if seat.shard == home {
            shard.deliver(publication, to: seat.subscription.value)
        } else {
            shard.enqueue(publication, to: seat, of: self)
        }
    }

    /// The member with the least to do; equals take turns. Nil if none can take it: it gets such publications through the
    /// store, may not read them, or its loop is too far behind.
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
            if load < bestLoad, isReachable, seat.canTake(publication) {
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
        // It goes to one member only, which is chosen elsewhere.
        if let decided = publication.decided, decided.contains(key) { return }
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
