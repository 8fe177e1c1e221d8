// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The publications that cannot all be delivered in one turn (iteration) of the loop. Most of them are for crowds: a
/// topic with ``leastDeliveries`` or more subscribers on this loop has a crowd. This type does no I/O.
///
/// The publications wait here and are delivered in parts; the topics take turns. In between, the loop serves its
/// connections. Publications to few subscribers wait here only if there are very many such publications and the loop's
/// turn has no time left.
struct CrowdedTopics {
    /// The smallest number of deliveries for which a publication from another loop waits if other publications are
    /// already waiting. Fewer deliveries take only a few microseconds.
    static let leastDeliveries = 64

    /// The number of bytes that may be copied for crowds before the loop must write them out. Each of thousands of
    /// peers has its own copy, and the copies do not count toward any budget until they are written.
    static let bytesAtOnce = 64 << 20

    /// The waiting publications of one topic.
    private struct Waiting {
        var batches: Deque<(batch: PublicationBatch, ticket: UInt64, isOfCrowd: Bool)> = []
        /// The number of delivered publications of the first batch.
        var delivered = 0
    }

    /// The next publications of a topic.
    struct Part {
        let topic: TopicName
        let publications: PublicationBatch
        /// The weight of the batch that these publications complete; nil if they do not complete their batch.
        let completed: Int?
        let isOfCrowd: Bool
    }

    /// The waiting publications of each topic. A topic stays here while it is served. So if its subscribers publish to
    /// it meanwhile, their publications wait until the other topics have had their turns.
    private var topics: [TopicName: Waiting] = [:]
    /// The topics in the order of their turns, except for a topic that is being served.
    private var turns = Deque<TopicName>()
    private var lastTicket: UInt64 = 0
    /// The tickets of batches that are not completely delivered.
    private var tickets: Set<UInt64> = []

    var isEmpty: Bool { topics.isEmpty }

    /// Whether publications of a topic wait.
    func isWaiting(_ topic: TopicName) -> Bool { !topics.isEmpty && topics[topic] != nil }

    /// Whether the batch with this ticket waits.
    func isWaiting(_ ticket: UInt64) -> Bool { tickets.contains(ticket) }

    /// Appends publications after the waiting publications of their topic. If no publications of the topic are waiting,
    /// the topic gets its turn after the other topics.
    ///
    /// - Parameter isOfCrowd: the value of ``Part/isOfCrowd`` for each part of the batch.
    /// - Returns: the ticket.
    mutating func append(_ batch: PublicationBatch, isOfCrowd: Bool) -> UInt64 {
        lastTicket &+= 1
        tickets.insert(lastTicket)
        if topics[batch.topic] == nil { turns.append(batch.topic) }
        topics[batch.topic, default: Waiting()].batches.append((batch, lastTicket, isOfCrowd))
        return lastTicket
    }

    /// Removes and returns the next publications of the topic whose turn it is. A call to ``finish(_:)`` must follow.
    ///
    /// - Parameter count: returns the largest number of publications that are taken from a run; at least 1.
    /// - Returns: nil if nothing waits.
    mutating func next(atMost count: (TopicName) -> Int) -> Part? {
        guard let topic = turns.popFirst(), let index = topics.index(forKey: topic),
            let (batch, ticket, isOfCrowd) = topics.values[index].batches.first
        else { return nil }
        let start = topics.values[index].delivered
        let end = start + min(batch.count - start, count(topic))
        let part: PublicationBatch
        if case .run(let run) = batch { part = .run(run.part(start..<end)) } else { part = batch }
        guard end == batch.count else {
            topics.values[index].delivered = end
            return Part(topic: topic, publications: part, completed: nil, isOfCrowd: isOfCrowd)
        }
        topics.values[index].delivered = 0
        topics.values[index].batches.removeFirst()
        tickets.remove(ticket)
        return Part(topic: topic, publications: part, completed: batch.weight, isOfCrowd: isOfCrowd)
    }

    /// Records that the part of a topic is delivered. The topic then has its next turn after the other topics. If no
    /// publications of the topic wait any more, the topic is removed.
    mutating func finish(_ topic: TopicName) {
        if topics[topic]?.batches.isEmpty ?? true { topics[topic] = nil } else { turns.append(topic) }
    }
}
