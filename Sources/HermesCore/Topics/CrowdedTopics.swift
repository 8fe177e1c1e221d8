// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Publications of other loops for topics with many subscribers on this loop, when there are more than one piece of
/// deliveries allows. Pure.
///
/// They wait here, topic by topic, and are delivered in pieces between which the loop serves others. What goes to few
/// subscribers passes them by.
struct CrowdedTopics {
    /// The number of subscribers from which a topic may have to wait.
    static let leastReceivers = 64

    private struct Waiting {
        var batches = Deque<PublicationBatch>()
        /// The delivered publications of the first.
        var delivered = 0
    }

    private var topics: [TopicName: Waiting] = [:]
    /// The topics, in turn.
    private var turns = Deque<TopicName>()

    var isEmpty: Bool { topics.isEmpty }

    /// Adds a publication behind others of its topic.
    ///
    /// - Returns: false if none of the topic wait.
    mutating func append(_ publication: PublicationBatch) -> Bool {
        guard let index = topics.index(forKey: publication.topic) else { return false }
        topics.values[index].batches.append(publication)
        return true
    }

    /// Adds the first publication of a topic.
    mutating func add(_ publication: PublicationBatch) {
        topics[publication.topic, default: Waiting()].batches.append(publication)
        turns.append(publication.topic)
    }

    /// The topic whose turn it is; its next turn comes after all others'.
    mutating func next() -> TopicName? {
        guard let topic = turns.popFirst() else { return nil }
        turns.append(topic)
        return topic
    }

    /// Takes the next publications of a topic.
    ///
    /// - Parameter count: how many, if they came together.
    /// - Returns: at least one, and the weight of the batch if that is its end; nil if none of the topic wait.
    mutating func take(of topic: TopicName, atMost count: Int) -> (part: PublicationBatch, completed: Int?)? {
        guard let index = topics.index(forKey: topic), let batch = topics.values[index].batches.first else {
            remove(topic)
            return nil
        }
        let start = topics.values[index].delivered
        let end = min(batch.count, start + count)
        let part: PublicationBatch
        if case .run(let run) = batch { part = .run(run.part(start..<end)) } else { part = batch }
        guard end == batch.count else {
            topics.values[index].delivered = end
            return (part, nil)
        }
        topics.values[index].delivered = 0
        topics.values[index].batches.removeFirst()
        if topics.values[index].batches.isEmpty { remove(topic) }
        return (part, batch.weight)
    }

    /// Removes what waits for a topic.
    ///
    /// - Returns: the weights of the batches.
    mutating func removeAll(of topic: TopicName) -> [Int] {
        let weights = topics[topic]?.batches.map(\.weight) ?? []
        remove(topic)
        return weights
    }

    private mutating func remove(_ topic: TopicName) {
        topics[topic] = nil
        turns.removeAll { $0 == topic }
    }
}
