// Hermes
// SPDX-License-Identifier: Apache-2.0

/// A publication on its way to a member that its group's home shard chose.
struct SharedHandOver: Sendable {
    let publication: Publication
    let seat: SharedGroup.Seat
    let group: SharedGroup
    /// It counts as something the member has to do.
    let isCounted: Bool

    /// Counts it for the member from here on, or all publications of a tick would go to the same one.
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
    /// From now on `member` gets its share of what is published to the topics that the filter matches: each publication
    /// goes to the member of the group that has the least to do, on whatever loop it lives.
    ///
    /// - Parameters:
    ///   - group: the name of the group, without `/`; a group is known by its name and its filter.
    ///   - options: the member's own.
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
        if group.home == index {
            group.add(seat)
        } else {
            mailboxes[group.home].post(work: { _ in group.add(seat) })
        }
        return subscription
    }

    private func join(_ key: TopicFilter, _ filter: TopicFilter) -> SharedGroup {
        if let group = sharedGroups.join(key) { return group }
        // It is made known only when it gets publications: whoever joins on another loop must not miss one.
        let group = SharedGroup(key: key, filter: filter, home: index, shard: mailboxes[index].shard)
        group.begin(on: self)
        let known = sharedGroups.found(group)
        if known !== group { group.end(on: self) }
        return known
    }

    /// Ends a member's part in a shared subscription; a second time does nothing.
    ///
    /// - Parameter givingBack: what was delivered for it with QoS 1 or 2 and is not acknowledged, the oldest first: goes to
    ///   the others of the group, if there are any.
    package func unsubscribe(_ subscription: SharedSubscription, givingBack: [Publication]) {
        assert(loop.isCurrent())
        guard subscription.isActive, let seat = subscription.seat else { return }
        subscription.isActive = false
        subscription.seat = nil
        let group = subscription.group
        let isLast = sharedGroups.leave(group, seat)
        retire(subscription)
        if group.home == index {
            group.remove(seat, givenBack: givingBack, isLast: isLast, on: self)
        } else {
            mailboxes[group.home].post(work: { shard in
                group.remove(seat, givenBack: givingBack, isLast: isLast, on: shard)
            })
        }
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
        // The member left in the meantime: its group chooses anew.
        for item in returned {
            mailboxes[item.group.home].post(work: { shard in item.group.hand(item.publication, on: shard) })
        }
    }
}
