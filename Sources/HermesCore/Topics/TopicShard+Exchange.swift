// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The exchange with the shards of other loops.
extension TopicShard {
    /// Connects the shard to the mailboxes of all shards; called once, before the shard is in use.
    func connect(to mailboxes: [ShardMailbox]) {
        self.mailboxes = mailboxes
        inbox = mailboxes[index]
        outgoing = Array(repeating: [], count: mailboxes.count)
        outgoingShared = Array(repeating: [], count: mailboxes.count)
    }

    /// Tells the other shards that this shard got its first member of a filter, or lost its last member.
    func announce(_ filter: FilterMembers, isInterested: Bool) {
        guard mailboxes.count > 1 else { return }
        let change = ShardMailbox.Interest(filter: TopicFilter(of: filter), shard: index, isInterested: isInterested)
        for mailbox in mailboxes where mailbox.index != index { mailbox.post(change) }
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

    /// Hands the collected publications over to the other shards. This happens at the end of each tick in any case; the
    /// loop also does it before it writes acknowledgements.
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

    /// Takes over the interest that other shards have announced. Called before each publication, so that no interest is
    /// missed.
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

    /// Takes the mail of other threads.
    func drain() {
        guard let inbox else { return }
        // The mail is taken before the interest, because interest that arrives in between then schedules another drain.
        // In the opposite order, such interest would wait until the next publication, and filters that have no more
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
                // The publisher asked beforehand whether the server is too far behind. It is not known here, so it
                // cannot be paused.
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
        // Publications handed over together often have one topic.
        var last: TopicRoute?
        // The number of deliveries to crowds (``CrowdedTopics``) since the last look at the time. Such a look costs as
        // much as some deliveries.
        var unlooked = 0
        // The same for publications to few subscribers, weighted by their size. Many of these publications together
        // wait, too.
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

    /// Whether the publication with this ticket (``PublishOutcome/ticket``) still waits for its crowd.
    package func isWaiting(_ ticket: CrowdTicket) -> Bool { crowded.isWaiting(ticket.number) }

    /// Lets a publication of this loop wait if earlier publications of its topic wait. If the topic has a crowd, the
    /// publication also waits until earlier output for crowds was written. Otherwise, a loop that is behind would copy
    /// each publication for thousands of peers.
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

    /// Lets a publication of another loop wait. If too much waits for crowds, a publication for a crowd is dropped.
    /// This does not harm other topics, because their publications still count as mail.
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

    /// Delivers the publications that wait, while there is time.
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
