// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Publishing and subscribing across all event loops, with one ``TopicShard`` per loop. Thread-safe.
///
/// A plane lives as long as the process, because shards and mailboxes refer to each other.
package final class TopicPlane: Sendable {
    private let mailboxes: [ShardMailbox]
    private let sharedGroups: SharedGroups
    private let links = Mutex<TopicLinks?>(nil)

    /// Creates a shard for each loop.
    ///
    /// - Parameters:
    ///   - loops: all event loops of connections; at least one.
    ///   - maxBacklogBytes: the largest number of bytes that publications from other loops may have while they wait for
    ///     one loop. Further publications to that loop are dropped.
    ///   - limits: the bounds of each shard's caches.
    package init(loops: [LoopHandle], maxBacklogBytes: Int = 64 << 20, limits: TopicLimits = TopicLimits()) {
        precondition(!loops.isEmpty, "a topic plane needs an event loop")
        var shards: [TopicShard] = []
        var mailboxes: [ShardMailbox] = []
        let groups = SharedGroups()
        let audiences = RoomAudiences(loops: loops.count)
        for (index, loop) in loops.enumerated() {
            let shard = TopicShard(
                index: index,
                loop: loop,
                limits: limits,
                sharedGroups: groups,
                audiences: audiences
            )
            shards.append(shard)
            let confined = LoopConfined(shard, loop: loop)
            mailboxes.append(ShardMailbox(index: index, shard: confined, maxBacklog: maxBacklogBytes))
        }
        for shard in shards { shard.connect(to: mailboxes) }
        groups.connect(to: mailboxes)
        self.mailboxes = mailboxes
        sharedGroups = groups
    }

    /// Lets clean and kept sessions share one subscription; called once, before the first connection.
    package func share(with durable: DurableSessions) {
        durable.share(sharedGroups)
        sharedGroups.connect(to: durable)
    }

    /// The number of loops and shards.
    package var shardCount: Int { mailboxes.count }

    /// Returns the shard of the loop with this index in the initializer's list; called only on that loop, once per
    /// connection.
    package func shard(_ index: Int) -> TopicShard { mailboxes[index].shard.value }

    /// Publishes from a thread that is not an event loop.
    ///
    /// - Returns: false if the server is too far behind with its deliveries.
    package func publish(_ publication: Publication) -> Bool {
        guard !isCongested else { return false }
        mailboxes[0].post(publish: publication)
        return true
    }

    /// Whether the server accepts no more publications, because it is too far behind with its deliveries.
    package var isCongested: Bool { mailboxes[0].isFull || mailboxes[0].isFullOfCrowds }

    /// Publishes a publication that is already stored, from a thread that is not an event loop. The caller checks
    /// ``isCongested`` before it stores the publication.
    package func publish(stored publication: Publication) { mailboxes[0].post(publish: publication) }

    /// Returns the number of a topic's subscriptions on all loops and nodes.
    package func subscriberCount(of topic: TopicName) async -> Int {
        let here = await subscriberCountHere(of: topic)
        return here + (await links.withLock { $0 }?.subscriberCount(of: topic) ?? 0)
    }

    func subscriberCountHere(of topic: TopicName) async -> Int {
        var sum = 0
        for mailbox in mailboxes {
            sum += await ask(mailbox) { $0.subscriberCount(of: topic) }
        }
        return sum
    }

    /// The largest number of topics that a loop examines before it does other work. Examining them takes about 100 µs.
    private static let topicsAtOnce = 1_024

    /// Returns the topics that begin with `prefix` and have subscribers, with the numbers of their subscribers on all
    /// loops and nodes. The search examines every topic, so frequent callers use ``RoomDirectory`` instead.
    ///
    /// - Returns: `examined` is the number of examined places in the tables of this node's loops.
    package func subscriberCounts(
        withPrefix prefix: String
    ) async -> (counts: [TopicName: Int], examined: Int) {
        var (counts, examined) = await subscriberCountsHere(withPrefix: prefix)
        if let links = links.withLock({ $0 }) {
            counts.merge(await links.subscriberCounts(withPrefix: prefix), uniquingKeysWith: +)
        }
        return (counts, examined)
    }

    func subscriberCountsHere(withPrefix prefix: String) async -> (counts: [TopicName: Int], examined: Int) {
        var sums: [TopicName: Int] = [:]
        var examined = 0
        for mailbox in mailboxes {
            var place: Int? = 0
            while let from = place {
                let part = await ask(mailbox) {
                    $0.subscriberCounts(withPrefix: prefix, from: from, limit: Self.topicsAtOnce)
                }
                sums.merge(part.counts, uniquingKeysWith: +)
                examined += Self.topicsAtOnce
                place = part.next
            }
        }
        return (sums, examined)
    }

    /// The bytes of the publications that wait for loops, the limit on these bytes, and the number of publications that
    /// were dropped because of the limit since the start of the process.
    package var backlog: (used: Int, limit: Int, dropped: Int) {
        (
            mailboxes.reduce(0) { $0 &+ max(0, $1.waitingBytes) },
            mailboxes.reduce(0) { $0 &+ $1.maxBacklog },
            mailboxes.reduce(0) { $0 &+ $1.droppedCount }
        )
    }

    // MARK: Other nodes

    func connect(to links: TopicLinks) {
        self.links.withLock { $0 = links }
        for mailbox in mailboxes { mailbox.post(work: { $0.nodes = NodeOutput(links, loop: $0.index) }) }
    }

    /// Takes over another node's changed subscriber counts.
    func learn(_ interest: [TopicInterest], of node: NodeID) {
        for interest in interest {
            let filter = interest.key.filter
            if let share = interest.key.share {
                mailboxes[index(of: share)].post(work: { $0.note(interest.subscribers, on: node, of: share, filter) })
            } else {
                let shard = mailboxes.count + Int(node.rawValue)
                let change = ShardMailbox.Interest(
                    filter: filter,
                    shard: shard,
                    isInterested: interest.subscribers > 0
                )
                for mailbox in mailboxes { mailbox.post(change) }
            }
        }
    }

    /// Delivers the publications that another node sent. The publications of each topic keep their order.
    func received(_ publications: [NodePublication]) {
        var parts: [[NodePublication]] = Array(repeating: [], count: mailboxes.count)
        for item in publications {
            let home = item.share.map { sharedGroups.home(of: $0) ?? 0 }
            let index = home ?? index(of: item.publication.topic)
            if mailboxes[index].isFull { mailboxes[index].dropped(1) } else { parts[index].append(item) }
        }
        for (mailbox, part) in zip(mailboxes, parts) where !part.isEmpty { mailbox.post(received: part) }
    }

    private func index(of key: some Hashable) -> Int {
        Int(UInt(bitPattern: key.hashValue) % UInt(mailboxes.count))
    }

    private func ask<Answer: Sendable>(
        _ mailbox: ShardMailbox,
        _ question: @escaping @Sendable (TopicShard) -> Answer
    ) async -> Answer {
        await withCheckedContinuation { continuation in
            mailbox.post(work: { continuation.resume(returning: question($0)) })
        }
    }
}
