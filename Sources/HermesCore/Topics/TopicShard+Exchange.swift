// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The exchange with the shards of other loops.
extension TopicShard {
    /// Called once, before the shard is in use.
    func connect(to mailboxes: [ShardMailbox]) {
        self.mailboxes = mailboxes
        inbox = mailboxes[index]
        outgoing = Array(repeating: [], count: mailboxes.count)
        outgoingShared = Array(repeating: [], count: mailboxes.count)
    }

    /// Tells the others that this shard got its first member of a filter, or lost its last.
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
        let mailbox = mailboxes[shard]
        guard !mailbox.isFull else {
            droppedCount &+= 1
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
        loop.execute { confined.value.flush() }
    }

    private func flush() {
        isFlushScheduled = false
        for shard in outgoing.indices where !outgoing[shard].isEmpty {
            mailboxes[shard].post(outgoing[shard])
            outgoing[shard] = []
        }
        for shard in outgoingShared.indices where !outgoingShared[shard].isEmpty {
            mailboxes[shard].post(outgoingShared[shard])
            outgoingShared[shard] = []
        }
    }

    /// Takes the others' announced interest; before each publication, so that none is missed.
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
        // In this order: interest that arrives in between schedules another drain. In the opposite order it would
        // wait until the next publication, and with it the filters that it ends.
        let mail = inbox.takeMail()
        takeInterest()
        var room = crowded.isEmpty ? pace.most : 0
        for item in mail {
            switch item {
            case .handedOver(let publications):
                deliver(handedOver: publications, &room)
            case .shared(let shared):
                deliver(handedOver: shared)
                for item in shared { inbox.completed(item.publication.weight) }
            case .publish(let publication):
                publish(publication)
                inbox.completed(publication.weight)
            case .work(let work):
                work(self)
            }
        }
    }

    /// - Parameter room: the deliveries to crowds that may still be made; reduced.
    private func deliver(handedOver publications: [PublicationBatch], _ room: inout Int) {
        // Publications handed over together often have one topic.
        var last: TopicRoute?
        for publication in publications {
            if !crowded.isEmpty, crowded.append(publication) { continue }
            if let route = route(to: publication.topic, last) {
                last = route
                refresh(route)
                let receivers = route.entries.count
                if receivers >= CrowdedTopics.leastReceivers {
                    guard room >= receivers * publication.count else {
                        wait(publication)
                        continue
                    }
                    room -= receivers * publication.count
                }
                if receivers > 0 { deliver(publication, along: route) }
            }
            inbox?.completed(publication.weight)
        }
    }

    private func route(to topic: TopicName, _ last: TopicRoute?) -> TopicRoute? {
        if let last, last.isListed, last.name.hasBytes(of: topic.rawValue) { return last }
        return existingRoute(to: topic)
    }

    // MARK: Crowded topics

    /// Whether nothing waits for crowds; for tests.
    package var isEverythingDelivered: Bool { crowded.isEmpty }

    private func wait(_ publication: PublicationBatch) {
        if crowded.isEmpty { yield() }
        crowded.add(publication)
    }

    private func yield() {
        let confined = mailboxes[index].shard
        loop.yield { confined.value.serveCrowds() }
    }

    /// Delivers some of what waits for crowds, to each topic in turn.
    private func serveCrowds() {
        var room = pace.most
        while room > 0, let topic = crowded.next() {
            guard let route = existingRoute(to: topic) else {
                for weight in crowded.removeAll(of: topic) { inbox?.completed(weight) }
                continue
            }
            refresh(route)
            let receivers = max(1, route.entries.count)
            let count = max(1, min(room, DeliveryPace.least) / receivers)
            guard let (part, completed) = crowded.take(of: topic, atMost: count) else { continue }
            if !route.entries.isEmpty { deliver(part, along: route) }
            if let completed { inbox?.completed(completed) }
            room -= receivers * part.count
        }
        if !crowded.isEmpty { yield() }
    }
}
