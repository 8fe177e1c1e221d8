// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Publications that one turn of the loop cannot all deliver, mainly to topics with many subscribers on this loop. Pure.
///
/// They wait here and are delivered in parts, to each topic in turn. Between the turns the loop serves its connections.
/// Publications to few subscribers do not wait here, unless there are very many of them and the turn has no time left.
struct CrowdedTopics {
    /// From this number of deliveries on, the deliveries of one hand-over wait behind those that wait already. Fewer
    /// take only some microseconds.
    static let leastDeliveries = 64

    /// The bytes that are copied for crowds before the loop writes output: thousands of peers hold a copy each.
    static let bytesAtOnce = 64 << 20

    /// The publications that wait for one topic.
    struct Waiting {
        let topic: TopicName
        private var batches: Deque<PublicationBatch>
        /// The number of delivered publications of the first batch.
        private var delivered = 0

        fileprivate init(_ first: PublicationBatch) {
            topic = first.topic
            batches = [first]
        }

        var isEmpty: Bool { batches.isEmpty }

        fileprivate mutating func append(_ batch: PublicationBatch) { batches.append(batch) }

        /// Takes the next publications.
        ///
        /// - Parameter count: the largest number that is taken from a run; at least 1.
        /// - Returns: the publications, and the weight of their batch if they complete it; nil if nothing waits.
        mutating func take(atMost count: Int) -> (part: PublicationBatch, completed: Int?)? {
            guard let batch = batches.first else { return nil }
            let end = delivered + min(batch.count - delivered, count)
            let part: PublicationBatch
            if case .run(let run) = batch { part = .run(run.part(delivered..<end)) } else { part = batch }
            guard end == batch.count else {
                delivered = end
                return (part, nil)
            }
            delivered = 0
            batches.removeFirst()
            return (part, batch.weight)
        }
    }

    private var topics: [TopicName: Waiting] = [:]
    /// The topics, in turn.
    private var turns = Deque<TopicName>()

    var isEmpty: Bool { turns.isEmpty }

    /// Whether publications of a topic wait.
    func isWaiting(_ topic: TopicName) -> Bool { !turns.isEmpty && topics[topic] != nil }

    /// Appends a publication if others of its topic wait.
    ///
    /// - Returns: whether it was appended.
    mutating func appendBehindOthers(_ batch: PublicationBatch) -> Bool {
        guard !turns.isEmpty, let index = topics.index(forKey: batch.topic) else { return false }
        topics.values[index].append(batch)
        return true
    }

    /// Appends a publication whose topic has none here.
    mutating func append(_ batch: PublicationBatch) { append(Waiting(batch)) }

    /// Appends a topic after all others.
    mutating func append(_ waiting: Waiting) {
        topics[waiting.topic] = waiting
        turns.append(waiting.topic)
    }

    /// Removes the topic whose turn it is.
    mutating func popFirst() -> Waiting? { turns.popFirst().flatMap { topics.removeValue(forKey: $0) } }
}
