// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The members of one shared subscription on all loops. For the topic plane, the group is one subscriber, on the
/// group's home shard.
///
/// Each node has a separate group for the publications that are published on that node. The group counts the members on
/// the other nodes. It sends a part of the publications to each other node, in proportion to the number of that node's
/// members. That node then chooses the member that gets a publication.
///
/// If some members' sessions are kept, ``DurableGroup`` chooses among all members for each publication with QoS 1 or 2.
/// Such a publication is marked (``Publication/decided``).
///
/// Owner of the state: the loop of the home shard, which is the shard of the first member. `key`, `filter` and `home`
/// never change.
package final class SharedGroup: @unchecked Sendable {  // Confined to the home shard's loop (see above).
    /// The part of a member that other shards see.
    final class Seat: Sendable {
        /// The member's shard.
        let shard: Int
        let load: SharedLoad
        private let reader: (any TopicReader)?
        private let maxMessageBytes: Int
        /// The member's ``Traits``. They determine which publications the member accepts.
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
            traits = Atomic(Self.traits(options).rawValue)
            self.subscription = subscription
        }

        private struct Traits: OptionSet {
            let rawValue: UInt8

            /// The two bits of the member's highest QoS.
            static let qos = Traits(rawValue: 0b11)
            /// The member's session is durable.
            static let kept = Traits(rawValue: 1 << 2)
            /// The member may read only some of the topics that the filter matches.
            static let filtered = Traits(rawValue: 1 << 3)
            static let leaving = Traits(rawValue: 1 << 4)

            /// Whether the member acknowledges publications of QoS 1 and 2.
            var acknowledges: Bool { !isDisjoint(with: .qos) }
        }

        private static func traits(_ options: SubscriptionOptions) -> Traits {
            var traits = Traits(rawValue: options.qos.rawValue)
            if options.isLiveAtMostOnceOnly { traits.insert(.kept) }
            if options.isFiltered { traits.insert(.filtered) }
            return traits
        }

        private var currentTraits: Traits { Traits(rawValue: traits.load(ordering: .relaxed)) }

        /// Takes over the member's changed options. Like ``leave()``, it is called only on the member's loop.
        func change(_ options: SubscriptionOptions) {
            let leaving = currentTraits.intersection(.leaving)
            traits.store(Self.traits(options).union(leaving).rawValue, ordering: .relaxed)
        }

        /// Marks the member as leaving, so that it gets no more publications.
        func leave() { traits.bitwiseOr(Traits.leaving.rawValue, ordering: .relaxed) }

        var isLeaving: Bool { currentTraits.contains(.leaving) }

        /// Whether a publication keeps the member busy until the member acknowledges it.
        func isBusied(by publication: Publication) -> Bool {
            publication.qos > .atMostOnce && acknowledges
        }

        /// Whether the member acknowledges publications of QoS 1 and 2.
        var acknowledges: Bool { currentTraits.acknowledges }

        /// Whether the member's session is durable.
        var isKept: Bool { currentTraits.contains(.kept) }

        /// Whether the member accepts a message of this length, in bytes.
        func fits(_ bytes: Int) -> Bool { bytes <= maxMessageBytes }

        /// Whether the member can get a publication through the live path. It can if it is not leaving, may read the
        /// topic, has room, and does not get the publication through the store.
        func canTake(_ publication: Publication) -> Bool {
            let traits = currentTraits
            if traits.contains(.leaving) { return false }
            if publication.qos > .atMostOnce, traits.acknowledges, traits.contains(.kept) || load.isFull {
                return false
            }
            return !traits.contains(.filtered) || reader?.mayRead(publication.topic) ?? true
        }
    }

    static let window = 64

    /// The receiver of a publication: a member on this node, or another node.
    private enum Place {
        case seat(Seat)
        case node(NodeID)
    }

    /// A node and its points. For each choice, every node gets as many points as it has members. The node with the most
    /// points is chosen, and loses as many points as all nodes together got.
    private struct Share {
        /// The other node; nil for this node.
        let node: NodeID?
        var members: Int
        var points = 0
    }

    let key: TopicFilter
    let filter: TopicFilter
    let home: Int
    private let shard: LoopConfined<TopicShard>
    private var seats: [Seat] = []
    /// The index at which the next choice starts, so that equally busy members take turns.
    private var next = 0
    private var held: TopicSubscription?
    /// This node and the other nodes with members; empty if no other node has members.
    private var shares: [Share] = []

    init(key: TopicFilter, filter: TopicFilter, home: Int, shard: LoopConfined<TopicShard>) {
        self.key = key
        self.filter = filter
        self.home = home
        self.shard = shard
    }

    // MARK: On the home shard

    /// Subscribes the group to its filter.
    func begin(on shard: TopicShard) {
        // The group gets every publication as it was published. Each member's own options apply afterwards.
        let options = SubscriptionOptions(
            qos: .exactlyOnce,
            retainAsPublished: true,
            isObserver: true,
            isOfThisNode: true
        )
        held = shard.subscribe(self, to: filter, options: options)
    }

    func add(_ seat: Seat) { seats.append(seat) }

    /// Removes a member. Other members get the publications that this member gives back.
    ///
    /// - Parameter isLast: whether the group is now empty; an empty group gets no new members.
    func remove(_ seat: Seat, givenBack: [Publication], isLast: Bool, on shard: TopicShard) {
        if let place = seats.firstIndex(where: { $0 === seat }) {
            seats.remove(at: place)
            if place < next { next -= 1 }
        }
        for publication in givenBack { hand(publication, on: shard) }
        if isLast { end(on: shard) }
    }

    /// Records the number of members that the group has on another node.
    ///
    /// - Parameter isLast: whether no member remains on any node.
    func note(_ members: Int, on node: NodeID, isLast: Bool, shard: TopicShard) {
        shares.removeAll { $0.node == node }
        if members > 0 {
            if shares.isEmpty { shares.append(Share(node: nil, members: 0)) }
            shares.append(Share(node: node, members: members))
        } else if shares.count == 1 {
            shares = []
        }
        if isLast { end(on: shard) }
    }

    func end(on shard: TopicShard) {
        if let held { shard.unsubscribe(held) }
        held = nil
    }

    /// Gives a publication to a member, outside of a delivery.
    func hand(_ publication: Publication, on shard: TopicShard) {
        if publication.qos > .atMostOnce, shard.sharedGroups.keeper?.hand(publication, in: key) ?? false { return }
        guard let place = place(for: publication, on: shard) else {
            shard.inbox?.dropped(1)
            return
        }
        give(publication, to: place, on: shard)
    }

    /// Gives a publication of another node to a member. If no member on this node can accept the publication, the
    /// publication goes to another node that has not refused it.
    func take(_ item: NodePublication, on shard: TopicShard) {
        let publication = item.publication
        if let seat = choose(for: publication, on: shard) { return give(publication, to: .seat(seat), on: shard) }
        var refused = item.refused
        if let links = shard.nodes?.links { refused.formUnion(NodeSet(links.node)) }
        if let node = shares.compactMap(\.node).filter({ !refused.contains($0) }).randomElement() {
            shard.enqueue(publication, sharing: key, refused: refused, to: node)
        } else {
            shard.inbox?.dropped(1)
        }
    }

    private func give(_ publication: Publication, to place: Place, on shard: TopicShard) {
        switch place {
        case .seat(let seat) where seat.shard == home: shard.deliver(publication, to: seat.subscription.value)
        case .seat(let seat): shard.enqueue(publication, to: seat, of: self)
        case .node(let node): shard.enqueue(publication, sharing: key, refused: NodeSet(), to: node)
        }
    }

    /// Returns the receiver of a publication. If it is another node's turn, the receiver is that node. If it is this
    /// node's turn, the receiver is the least busy member on this node. If no member on this node can accept the
    /// publication, the receiver is another node. Returns nil if there is no receiver.
    private func place(for publication: Publication, on shard: TopicShard) -> Place? {
        guard !shares.isEmpty else { return choose(for: publication, on: shard).map(Place.seat) }
        for place in shares.indices {
            if shares[place].node == nil { shares[place].members = seats.count }
            shares[place].points += shares[place].members
        }
        var all = shares.reduce(0) { $0 + $1.members }
        // Earlier choices may have been among more members, so a node can have too many points.
        for place in shares.indices { shares[place].points = max(-all, min(shares[place].points, all)) }
        for place in shares.indices.sorted(by: { shares[$0].points > shares[$1].points })
        where shares[place].members > 0 {
            let found: Place?
            if let node = shares[place].node {
                found = .node(node)
            } else {
                found = choose(for: publication, on: shard).map(Place.seat)
            }
            guard let found else {
                // This node gets no points for a publication that none of its members can accept.
                shares[place].points -= shares[place].members
                all -= shares[place].members
                continue
            }
            shares[place].points -= all
            return found
        }
        return nil
    }

    /// Returns the least busy member; equally busy members take turns. Members that do not keep up with their
    /// publications, or that do not accept a message of this length, are chosen last. Returns nil if no member can
    /// accept the publication. A member cannot accept it if the member gets it through the store, is not permitted to
    /// read it, has no room, is leaving, or is on a loop that is too far behind.
    ///
    /// The search examines each member at most once, and stops at the first idle member. If one of the first ``window``
    /// members can accept the publication, the search examines only these members. This bounds the cost of a very large
    /// group.
    private func choose(for publication: Publication, on shard: TopicShard) -> Seat? {
        var best: Seat?
        var bestPlace = 0
        var bestLoad = Int.max
        var place = next < seats.count ? next : 0
        let bytes = publication.leastMessageBytes
        for looked in seats.indices {
            if looked >= Self.window, best != nil { break }
            let seat = seats[place]
            let load = seat.load.current &+ (seat.fits(bytes) ? 0 : SharedLoad.most)
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
        // The publication goes to only one member, and this member is chosen elsewhere.
        if let decided = publication.decided, decided.contains(key) { return }
        switch place(for: publication, on: shard) {
        case .seat(let seat) where seat.shard == home: seat.subscription.value.deliver(delivery)
        case let place?: give(publication, to: place, on: shard)
        case nil: shard.inbox?.dropped(1)
        }
    }
}
