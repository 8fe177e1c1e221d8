// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The members of one shared subscription, over all loops. The topic plane sees one subscriber, on its home shard.
///
/// If some members' sessions are kept, a publisher of QoS 1 or 2 lets ``DurableGroup`` choose among all members, and
/// marks the publication (``Publication/decided``).
///
/// Owner of the state: the loop of the home shard, that of the first member; `key`, `filter` and `home` never change.
package final class SharedGroup: @unchecked Sendable {  // Confined to the home shard's loop, see above.
    /// The part of a member that other shards see.
    final class Seat: Sendable {
        /// The member's shard.
        let shard: Int
        let load: SharedLoad
        private let reader: (any TopicReader)?
        private let maxMessageBytes: Int
        /// The member's highest QoS (2 bits), whether its session is durable (4), whether it may not read everything
        /// that the filter matches (8), whether it is leaving (16).
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
            maxMessageBytes = reader?.maxMessageBytes ?? .max
            traits = Atomic(Self.traits(options))
            self.subscription = subscription
        }

        private static func traits(_ options: SubscriptionOptions) -> UInt8 {
            options.qos.rawValue | (options.isLiveAtMostOnceOnly ? 4 : 0) | (options.isFiltered ? 8 : 0)
        }

        /// The member changed its options.
        func change(_ options: SubscriptionOptions) { traits.store(Self.traits(options), ordering: .relaxed) }

        /// The member gets nothing any more.
        func leave() { traits.bitwiseOr(16, ordering: .relaxed) }

        var isLeaving: Bool { traits.load(ordering: .relaxed) & 16 != 0 }

        /// Whether a publication keeps the member busy until it is acknowledged.
        func isBusied(by publication: Publication) -> Bool {
            publication.qos > .atMostOnce && traits.load(ordering: .relaxed) & 3 > 0
        }

        /// Whether the member's session is durable.
        var isKept: Bool { traits.load(ordering: .relaxed) & 4 != 0 }

        /// Whether the member most likely accepts a message of that length.
        func fits(_ publication: Publication) -> Bool { publication.leastMessageBytes <= maxMessageBytes }

        /// Whether the member can get a publication by the live path: it may read the topic, and does not get the
        /// publication through the store.
        func canTake(_ publication: Publication) -> Bool {
            let traits = traits.load(ordering: .relaxed)
            if traits & 16 != 0 { return false }
            if publication.qos > .atMostOnce, traits & 4 != 0, traits & 3 > 0 { return false }
            return traits & 8 == 0 || reader?.mayRead(publication.topic) ?? true
        }
    }

    static let window = 64

    let key: TopicFilter
    let filter: TopicFilter
    let home: Int
    private let shard: LoopConfined<TopicShard>
    private var seats: [Seat] = []
    /// The start of the next choice, so that equals take turns.
    private var next = 0
    private var held: TopicSubscription?

    init(key: TopicFilter, filter: TopicFilter, home: Int, shard: LoopConfined<TopicShard>) {
        self.key = key
        self.filter = filter
        self.home = home
        self.shard = shard
    }

    // MARK: On the home shard

    /// Subscribes the group to its filter.
    func begin(on shard: TopicShard) {
        // Each member decides by its own options.
        let options = SubscriptionOptions(qos: .exactlyOnce, retainAsPublished: true)
        held = shard.subscribe(self, to: filter, options: options)
    }

    func add(_ seat: Seat) { seats.append(seat) }

    /// Removes a member; the others get the publications that it gives back.
    ///
    /// - Parameter isLast: no member is left, and none can join.
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

    /// Gives a publication to the least busy member, outside of a delivery.
    func hand(_ publication: Publication, on shard: TopicShard) {
        if publication.qos > .atMostOnce, shard.sharedGroups.keeper?.hand(publication, in: key) ?? false { return }
        guard let seat = choose(for: publication, on: shard) else { return }
        if seat.shard == home {
            shard.deliver(publication, to: seat.subscription.value)
        } else {
            shard.enqueue(publication, to: seat, of: self)
        }
    }

    /// The least busy member; equals take turns. Members that do not take what they are sent come last, and so do those
    /// that do not accept a message of that length. Nil if none can take the publication: members get it through the store,
    /// may not read it, or their loops are too far behind.
    ///
    /// Examines each member at most once and stops at the first idle one. It examines only ``window`` members if one of
    /// those can take the publication, so that a very large group costs its publishers no more than that.
    private func choose(for publication: Publication, on shard: TopicShard) -> Seat? {
        var best: Seat?
        var bestPlace = 0
        var bestLoad = Int.max
        var place = next < seats.count ? next : 0
        for looked in seats.indices {
            if looked >= Self.window, best != nil { break }
            let seat = seats[place]
            let load = seat.load.current &+ (seat.fits(publication) ? 0 : SharedLoad.most)
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
            shard.inbox?.dropped(1)
            return
        }
        if seat.shard == home {
            seat.subscription.value.deliver(delivery)
        } else {
            shard.enqueue(publication, to: seat, of: self)
        }
    }
}
