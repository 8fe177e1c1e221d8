// Hermes
// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Mail of other threads for one ``TopicShard``: interest, publications, and work.
///
/// State: a ``Locked`` around two arrays; nothing is called under it. Interest has a flag that costs one load to
/// check: a shard takes it before each publication, so that a confirmed subscription is never missed.
final class ShardMailbox: Sendable {
    /// A shard or another node got its first subscriber of a topic or filter, or lost its last.
    struct Interest: Sendable {
        let filter: TopicFilter
        /// Those of other nodes follow those of the loops.
        let shard: Int
        let isInterested: Bool
    }

    enum Mail: Sendable {
        /// From another shard, in its order, for the subscribers here.
        case handedOver([PublicationBatch])
        /// From another shard, for members that it chose.
        case shared([SharedHandOver])
        /// From a thread that is not an event loop, for all subscribers.
        case publish(Publication)
        /// From another node.
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
    /// The weight of all posted publications that are not taken up.
    private let backlog = Atomic(0)
    /// The weight of those that wait for crowds.
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
    /// Whether no more publications of other loops may wait for crowds.
    var isFullOfCrowds: Bool { crowdBacklog.load(ordering: .relaxed) >= maxBacklog }
    /// The same for those of this loop, whose publishers wait.
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

    /// A publication waits for a crowd, or does so no longer.
    func waitsForCrowd(_ weight: Int) { crowdBacklog.add(weight, ordering: .relaxed) }

    /// The weight of all that waits.
    var waitingBytes: Int { backlog.load(ordering: .relaxed) &+ crowdBacklog.load(ordering: .relaxed) }
    /// The publications that were dropped because too many waited, since the start.
    var droppedCount: Int { dropped.load(ordering: .relaxed) }

    /// Publications are not delivered, because too many wait.
    func dropped(_ count: Int) { dropped.add(count, ordering: .relaxed) }

    /// A posted publication was delivered, or waits for a crowd.
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
