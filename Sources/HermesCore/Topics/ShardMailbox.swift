// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The mail from other threads for one ``TopicShard``: the interest of other shards and nodes in topics (``Interest``),
/// publications, and work.
///
/// State: a ``Locked`` around two arrays; no other code is called while it is locked. A shard takes the interest from
/// the mailbox before each publication, so that a confirmed subscription is never overlooked. A single load of a flag
/// shows whether the mailbox contains interest.
final class ShardMailbox: Sendable {
    /// The message that a shard or another node got its first subscriber of a topic or filter, or lost its last one.
    struct Interest: Sendable {
        let filter: TopicFilter
        /// The number of the shard or node. The numbers of the nodes follow those of the shards.
        let shard: Int
        let isInterested: Bool
    }

    enum Mail: Sendable {
        /// Publications from another shard, in the order of that shard, for the subscribers on this loop.
        case handedOver([PublicationBatch])
        /// Publications from another shard. That shard has chosen the members of shared subscriptions that get them.
        case shared([SharedHandOver])
        /// A publication from a thread that is not an event loop, for all subscribers.
        case publish(Publication)
        /// Publications from another node.
        case received([NodePublication])
        case work(@Sendable (TopicShard) -> Void)
    }

    private struct State: Sendable {
        var interest: [Interest] = []
        var mail: [Mail] = []
        var isScheduled = false
    }

    let index: Int
    let shard: LoopConfined<TopicShard>
    private let state = Locked(State())
    private let interestFlag = Atomic(false)
    /// The weight of all posted publications that are neither delivered nor counted in ``crowdBacklog``.
    private let backlog = Atomic(0)
    /// The weight of all publications that wait for crowds (``CrowdedTopics``).
    private let crowdBacklog = Atomic(0)
    private let dropped = Atomic(0)
    let maxBacklog: Int

    init(index: Int, shard: LoopConfined<TopicShard>, maxBacklog: Int) {
        self.index = index
        self.shard = shard
        self.maxBacklog = maxBacklog
    }

    var hasInterest: Bool { interestFlag.load(ordering: .acquiring) }
    /// Whether no more publications are accepted.
    var isFull: Bool { backlog.load(ordering: .relaxed) >= maxBacklog }
    /// Whether publishers should slow down.
    var isCongested: Bool {
        backlog.load(ordering: .relaxed) &+ crowdBacklog.load(ordering: .relaxed) >= maxBacklog / 4
    }
    /// Whether no more publications from other loops may wait for crowds.
    var isFullOfCrowds: Bool { crowdBacklog.load(ordering: .relaxed) >= maxBacklog }
    /// Whether no more publications of this loop may wait for crowds. The limit for this loop's publications is higher,
    /// because the publishers on this loop pause while their publications wait.
    var isOverfullOfCrowds: Bool { crowdBacklog.load(ordering: .relaxed) / 4 >= maxBacklog }

    func post(_ interest: Interest) {
        post { state in
            state.interest.append(interest)
            interestFlag.store(true, ordering: .releasing)
        }
    }

    func post(_ publications: [PublicationBatch]) {
        backlog.add(publications.reduce(0) { $0 &+ $1.weight }, ordering: .relaxed)
        post { $0.mail.append(.handedOver(publications)) }
    }

    func post(_ shared: [SharedHandOver]) {
        backlog.add(shared.reduce(0) { $0 &+ $1.publication.weight }, ordering: .relaxed)
        post { $0.mail.append(.shared(shared)) }
    }

    func post(publish publication: Publication) {
        backlog.add(publication.weight, ordering: .relaxed)
        post { $0.mail.append(.publish(publication)) }
    }

    func post(received publications: [NodePublication]) {
        backlog.add(publications.reduce(0) { $0 &+ $1.publication.weight }, ordering: .relaxed)
        post { $0.mail.append(.received(publications)) }
    }

    func post(work: @escaping @Sendable (TopicShard) -> Void) {
        post { $0.mail.append(.work(work)) }
    }

    /// Counts a publication that waits for a crowd. A negative weight removes the publication from the count again.
    func waitsForCrowd(_ weight: Int) { crowdBacklog.add(weight, ordering: .relaxed) }

    /// The weight of all waiting publications, in bytes.
    var waitingBytes: Int { backlog.load(ordering: .relaxed) &+ crowdBacklog.load(ordering: .relaxed) }
    /// The number of publications that were dropped since the start of the process, because too many waited.
    var droppedCount: Int { dropped.load(ordering: .relaxed) }

    /// Counts publications that are dropped because too many wait.
    func dropped(_ count: Int) { dropped.add(count, ordering: .relaxed) }

    /// Records that a posted publication was delivered, or that it waits for a crowd from now on.
    func completed(_ weight: Int) { backlog.subtract(weight, ordering: .relaxed) }

    func takeInterest() -> [Interest] {
        state.withLock { state in
            let interest = state.interest
            state.interest = []
            interestFlag.store(false, ordering: .relaxed)
            return interest
        }
    }

    func takeMail() -> [Mail] {
        state.withLock { state in
            let mail = state.mail
            state.mail = []
            state.isScheduled = false
            return mail
        }
    }

    private func post(_ change: (inout State) -> Void) {
        let mustSchedule = state.withLock { state in
            change(&state)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if mustSchedule {
            let shard = shard
            shard.loop.execute { shard.value.drain() }
        }
    }
}
