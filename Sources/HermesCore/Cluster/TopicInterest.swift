// Hermes
// SPDX-License-Identifier: Apache-2.0

/// How many subscribers of a filter a node has.
package struct TopicInterest: Sendable, Hashable {
    package struct Key: Sendable, Hashable {
        package let filter: TopicFilter
        /// The shared subscription to the filter (``SharedGroups/key(group:filter:)``); nil: ordinary subscriptions.
        package let share: TopicFilter?

        package init(filter: TopicFilter, share: TopicFilter? = nil) {
            self.filter = filter
            self.share = share
        }
    }

    package let key: Key
    /// Of ordinary subscriptions 0 or 1: only whether there are any counts.
    package let subscribers: Int

    package init(_ key: Key, subscribers: Int) {
        self.key = key
        self.subscribers = key.share == nil ? min(subscribers, 1) : subscribers
    }
}

/// What this node has told the others of its own subscribers. Pure.
struct OwnInterest: Sendable {
    private var subscribers: [TopicInterest.Key: Int] = [:]
    private var changed: Set<TopicInterest.Key> = []
    /// The number of the last message; they begin with 1.
    private(set) var last: UInt64 = 0

    mutating func change(_ key: TopicInterest.Key, by count: Int) {
        let before = subscribers[key] ?? 0
        let now = before + count
        subscribers[key] = now == 0 ? nil : now
        if key.share != nil || before == 0 || now == 0 { changed.insert(key) }
    }

    /// - Returns: what the others must hear, and the number of the message; nil: nothing.
    mutating func takeChanges() -> (interest: [TopicInterest], number: UInt64)? {
        guard !changed.isEmpty else { return nil }
        last += 1
        defer { changed = [] }
        return (changed.map { TopicInterest($0, subscribers: subscribers[$0] ?? 0) }, last)
    }

    var all: [TopicInterest] { subscribers.map { TopicInterest($0.key, subscribers: $0.value) } }
}

/// What another node has told of its subscribers. Pure.
struct PeerInterest: Sendable {
    /// The most messages that wait for one that is missing, or for an answer.
    private static let maxEarly = 1_024

    private var subscribers: [TopicInterest.Key: Int] = [:]
    /// The number of the last message that counts; nil: the node has not been asked.
    private var last: UInt64?
    /// Messages after a gap, by number.
    private var early: [UInt64: [TopicInterest]] = [:]

    var all: [TopicInterest] { subscribers.map { TopicInterest($0.key, subscribers: $0.value) } }

    /// What the shards learn once the node has gone.
    var none: [TopicInterest] { subscribers.keys.map { TopicInterest($0, subscribers: 0) } }

    /// The node has told of changes.
    ///
    /// - Returns: what is new, and whether the node must be asked.
    mutating func told(_ interest: [TopicInterest], number: UInt64) -> (new: [TopicInterest], mustAsk: Bool) {
        if let last, number <= last { return ([], false) }
        if early.count >= Self.maxEarly { early = [:] }
        early[number] = interest
        let new = takeEarly()
        return (new, !early.isEmpty)
    }

    /// The node has answered with all that it has.
    ///
    /// - Parameter number: of the last message before the answer.
    /// - Returns: what is new, and whether it must be asked again.
    mutating func answered(_ all: [TopicInterest], upTo number: UInt64) -> (new: [TopicInterest], mustAsk: Bool) {
        // It was overtaken by a later answer.
        if let last, number < last { return ([], !early.isEmpty) }
        let now = Dictionary(all.map { ($0.key, $0.subscribers) }) { _, later in later }
        var new = subscribers.keys.filter { now[$0] == nil }.map { TopicInterest($0, subscribers: 0) }
        new += all.filter { subscribers[$0.key] != $0.subscribers }
        subscribers = now
        last = number
        early = early.filter { $0.key > number }
        new += takeEarly()
        return (new, !early.isEmpty)
    }

    private mutating func takeEarly() -> [TopicInterest] {
        var new: [TopicInterest] = []
        while let number = last.map({ $0 + 1 }), let next = early.removeValue(forKey: number) {
            for interest in next {
                subscribers[interest.key] = interest.subscribers == 0 ? nil : interest.subscribers
            }
            new += next
            last = number
        }
        return new
    }
}
