// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A publication for a member that the group's home shard chose.
struct SharedHandOver: Sendable {
    let publication: Publication
    let seat: SharedGroup.Seat
    let group: SharedGroup
    /// Whether the publication counts towards the member's load.
    let isCounted: Bool

    /// Creates the hand-over, and counts the publication at once. If it were counted later, all publications of a tick
    /// (an iteration of the loop) would go to the same member.
    init(publication: Publication, to seat: SharedGroup.Seat, of group: SharedGroup) {
        self.publication = publication
        self.seat = seat
        self.group = group
        isCounted = seat.isBusied(by: publication)
        if isCounted { seat.load.add() }
    }
}

/// Shared subscriptions, `$share/group/filter` (MQTT 5, 4.8.2).
extension TopicShard {
    /// Subscribes `member` to its share of the filter's publications. Each publication goes to the least busy member of
    /// the group, on any loop.
    ///
    /// - Parameters:
    ///   - group: the name of the group, without `/`; name and filter together identify a group.
    ///   - options: the member's own options.
    package func subscribe(
        _ member: some SharedMember,
        sharing group: String,
        to filter: TopicFilter,
        options: SubscriptionOptions
    ) -> SharedSubscription {
        assert(loop.isCurrent())
        let group = join(SharedGroups.key(group: group, filter: filter), filter)
        let subscription = HeldSharedSubscription(member: member, group: group, options: options)
        let seat = SharedGroup.Seat(
            shard: index,
            load: member.load,
            reader: member.reader,
            options: options,
            subscription: LoopConfined(subscription, loop: loop)
        )
        subscription.seat = seat
        sharedGroups.sit(seat, in: group)
        changed(group, seat, by: 1)
        atHome(of: group) { _ in group.add(seat) }
        return subscription
    }

    /// Does some work on the home shard of a group, at once if this shard is the home.
    func atHome(of group: SharedGroup, _ work: @escaping @Sendable (TopicShard) -> Void) {
        if group.home == index { work(self) } else { mailboxes[group.home].post(work: work) }
    }

    func join(_ key: TopicFilter, _ filter: TopicFilter) -> SharedGroup {
        if let group = sharedGroups.join(key) { return group }
        // The group is registered only after it has begun to get publications, so that a member that joins on another
        // loop gets all later publications.
        let group = SharedGroup(key: key, filter: filter, home: index, shard: mailboxes[index].shard)
        group.begin(on: self)
        let known = sharedGroups.found(group)
        if known !== group { group.end(on: self) }
        return known
    }

    /// Ends a member's part in a shared subscription; repeated calls do nothing.
    ///
    /// - Parameter givingBack: the member's unacknowledged deliveries with QoS 1 or 2, oldest first. These publications
    ///   go to the other members, if there are any.
    package func unsubscribe(_ subscription: SharedSubscription, givingBack: [Publication]) {
        assert(loop.isCurrent())
        guard let seat = subscription.seat else { return }
        subscription.isActive = false
        subscription.seat = nil
        let group = subscription.group
        let isLast = sharedGroups.leave(group, seat)
        changed(group, seat, by: -1)
        retire(subscription)
        atHome(of: group) { group.remove(seat, givenBack: givingBack, isLast: isLast, on: $0) }
    }

    /// Passes a publication on, because a member cannot deliver it. Another member of the group gets the publication,
    /// if one can accept it. The first member must be unable to accept the publication
    /// (``SharedGroup/Seat/canTake(_:)``).
    package func passOn(_ publication: Publication, of subscription: SharedSubscription) {
        let group = subscription.group
        // This is not done at once, even if this shard is the home. If it were, the calls from several members that
        // pass the publication on would nest.
        mailboxes[group.home].post(work: { group.hand(publication, on: $0) })
    }

    /// Sends a publication to a member on another loop, at the end of the tick.
    func enqueue(_ publication: Publication, to seat: SharedGroup.Seat, of group: SharedGroup) {
        outgoingShared[seat.shard].append(SharedHandOver(publication: publication, to: seat, of: group))
        scheduleFlush()
    }

    func deliver(handedOver shared: [SharedHandOver]) {
        var returned: [SharedHandOver] = []
        for item in shared {
            let subscription = item.seat.subscription.value
            if item.isCounted { item.seat.load.subtract() }
            if subscription.isActive {
                deliver(item.publication, to: subscription)
            } else {
                returned.append(item)
            }
        }
        // The members of these publications have left meanwhile, so their groups choose again.
        for item in returned {
            mailboxes[item.group.home].post(work: { shard in item.group.hand(item.publication, on: shard) })
        }
    }
}
