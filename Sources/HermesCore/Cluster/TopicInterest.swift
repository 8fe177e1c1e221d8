// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The number of subscribers that a node has for a filter.
package struct TopicInterest: Sendable, Hashable {
    package struct Key: Sendable, Hashable {
        package let filter: TopicFilter
        /// The shared subscription to the filter (``SharedGroups/key(group:filter:)``); nil for ordinary subscriptions.
        package let share: TopicFilter?

        package init(filter: TopicFilter, share: TopicFilter? = nil) {
            self.filter = filter
            self.share = share
        }
    }

    package let key: Key
    /// The number of subscribers. For ordinary subscriptions, the number is 0 or 1, because it matters only whether
    /// there are any subscribers.
    package let subscribers: Int

    package init(_ key: Key, subscribers: Int) {
        self.key = key
        self.subscribers = key.share == nil ? min(subscribers, 1) : subscribers
    }
}

/// The subscribers of this node, and the changes to send to the other nodes. Does no I/O.
struct OwnInterest: Sendable {
    private var subscribers: [TopicInterest.Key: Int] = [:]
    private var changed: Set<TopicInterest.Key> = []
    /// The number of the last message. Numbers begin with 1.
    private(set) var last: UInt64 = 0

    mutating func change(_ key: TopicInterest.Key, by count: Int) {
        let before = subscribers[key] ?? 0
        let now = before + count
        subscribers[key] = now == 0 ? nil : now
        if key.share != nil || before == 0 || now == 0 { changed.insert(key) }
    }

    /// - Returns: the changes to send to the other nodes, and the number of the message; nil if there are none.
    mutating func takeChanges() -> (interest: [TopicInterest], number: UInt64)? {
        guard !changed.isEmpty else { return nil }
        last += 1
        defer { changed = [] }
        return (changed.map { TopicInterest($0, subscribers: subscribers[$0] ?? 0) }, last)
    }

    var all: [TopicInterest] { subscribers.map { TopicInterest($0.key, subscribers: $0.value) } }
}

/// The subscribers of another node, as that node has reported them. Does no I/O.
struct PeerInterest: Sendable {
    /// The largest number of messages that wait for a missing message or for an answer.
    private static let maxEarly = 1_024

    private var subscribers: [TopicInterest.Key: Int] = [:]
    /// The number of the last message that is taken into account; nil if the node has not answered yet.
    private var last: UInt64?
    /// The messages that arrived after a gap, by number.
    private var early: [UInt64: [TopicInterest]] = [:]

    var all: [TopicInterest] { subscribers.map { TopicInterest($0.key, subscribers: $0.value) } }

    /// The changes that the shards get after the node has gone: no filter has subscribers on that node any more.
    var none: [TopicInterest] { subscribers.keys.map { TopicInterest($0, subscribers: 0) } }

    /// Handles a message in which the node reports changes.
    ///
    /// - Returns: the changes that now take effect, and whether the node must be asked for everything.
    mutating func told(_ interest: [TopicInterest], number: UInt64) -> (new: [TopicInterest], mustAsk: Bool) {
        if let last, number <= last { return ([], false) }
        if early.count >= Self.maxEarly { early = [:] }
        early[number] = interest
        let new = takeEarly()
        return (new, !early.isEmpty)
    }

    /// Handles the node's answer, which contains all its subscribers.
    ///
    /// - Parameter number: the number of the last message before the answer.
    /// - Returns: the changes that now take effect, and whether the node must be asked again.
    mutating func answered(_ all: [TopicInterest], upTo number: UInt64) -> (new: [TopicInterest], mustAsk: Bool) {
        // A later answer has overtaken this answer.
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
