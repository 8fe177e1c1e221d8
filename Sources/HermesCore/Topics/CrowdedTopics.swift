// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Publications that one turn of the loop cannot all deliver, mainly to topics with many subscribers on this loop.
/// Pure.
///
/// They wait here and are delivered in parts, to each topic in turn. Between the turns the loop serves its connections.
/// Publications to few subscribers do not wait here, unless there are very many of them and the turn has no time left.
struct CrowdedTopics {
    /// From this number of deliveries on, the deliveries of one hand-over wait behind those that wait already. Fewer
    /// take only some microseconds.
    static let leastDeliveries = 64

    /// The bytes that are copied for crowds before the loop must have written them out: thousands of peers have a copy
    /// each, which no budget counts until it is written.
    static let bytesAtOnce = 64 << 20

    /// The publications that wait for one topic.
    private struct Waiting {
        var batches: Deque<(batch: PublicationBatch, ticket: UInt64, isOfCrowd: Bool)> = []
        /// The number of delivered publications of the first batch.
        var delivered = 0
    }

    /// The next publications of a topic.
    struct Part {
        let topic: TopicName
        let publications: PublicationBatch
        /// The weight of their batch if they complete it.
        let completed: Int?
        let isOfCrowd: Bool
    }

    /// A topic stays in it while it is served: what its subscribers publish to it meanwhile comes behind.
    private var topics: [TopicName: Waiting] = [:]
    /// The topics, in turn, but for one that is served.
    private var turns = Deque<TopicName>()
    private var lastTicket: UInt64 = 0
    /// The tickets of batches that are not delivered.
    private var tickets: Set<UInt64> = []

    var isEmpty: Bool { topics.isEmpty }

    /// Whether publications of a topic wait.
    func isWaiting(_ topic: TopicName) -> Bool { !topics.isEmpty && topics[topic] != nil }

    /// Whether the batch with this ticket waits.
    func isWaiting(_ ticket: UInt64) -> Bool { tickets.contains(ticket) }

    /// Appends publications behind others of their topic, or else their topic behind the others.
    ///
    /// - Parameter isOfCrowd: comes back with the last part.
    /// - Returns: the ticket.
    mutating func append(_ batch: PublicationBatch, isOfCrowd: Bool) -> UInt64 {
        lastTicket &+= 1
        tickets.insert(lastTicket)
        if topics[batch.topic] == nil { turns.append(batch.topic) }
        topics[batch.topic, default: Waiting()].batches.append((batch, lastTicket, isOfCrowd))
        return lastTicket
    }

    /// Takes the next publications of the topic whose turn it is; ``finish(_:)`` must follow.
    ///
    /// - Parameter count: the largest number that is taken from a run; at least 1.
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

    /// The part of a topic is delivered: the topic comes behind the others, or is forgotten.
    mutating func finish(_ topic: TopicName) {
        if topics[topic]?.batches.isEmpty ?? true { topics[topic] = nil } else { turns.append(topic) }
    }
}
