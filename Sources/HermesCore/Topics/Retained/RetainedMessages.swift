// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The newest retained publication of each topic. Thread-safe.
///
/// A publication is visible at once, before it is stored. If it cannot be stored, the publication that is still stored
/// becomes visible again. So the visible and the stored publication are the same as soon as no write is pending. If
/// there are several nodes, the store holds the retained publications of all nodes (``ReplicaLinks``). State: a
/// ``Locked``; no other code is called while it is locked.
package final class RetainedMessages: Sendable {
    private struct Entry {
        let topic: TopicName
        var seen: StoredPublication?
        /// The stored publication.
        var stored: StoredPublication?
        /// The number of pending writes.
        var pending = 0
        /// Whether the store must be read when no write is pending any more.
        var isOutdated = false
    }

    private struct State {
        var tree = RetainedTree()
        var entries: [Entry?] = []
        var free: [UInt32] = []
        /// The owners' shares of the visible publications.
        var shares: OwnerShares
        var refused: UInt64 = 0
        /// The number of changes.
        var changes: UInt64 = 0
        /// The topics whose visible publications expire.
        var expiries = DueKeys<TopicName, Timestamp>()
        /// The topics of writes that have ended since ``beginReading()``; nil if the store is not being read.
        var finishedWhileReading: Set<TopicName>?
    }

    package struct Statistics: Sendable, Hashable {
        /// The number of topics with a retained publication.
        package let count: Int
        /// The bytes of all retained publications.
        package let bytes: Int
        package let limit: Holding
        /// The number of publications that were not retained because of the limits.
        package let refused: UInt64
    }

    private let state: Locked<State>

    /// The hook for topics whose retained publication this process has stored or removed.
    let stored = Hook<TopicName>()
    /// The hook for topics that must be read from the store again, because this process may have an outdated
    /// publication.
    let outdated = Hook<TopicName>()

    /// Whether the server retains publications and sends retained publications to subscribers. If this is false, the
    /// server refuses requests to retain a publication.
    package let isAvailable: Bool

    package init(messages: SharedLimit, bytes: SharedLimit, isAvailable: Bool = true) {
        self.isAvailable = isAvailable
        state = Locked(State(shares: OwnerShares(entries: messages, bytes: bytes)))
    }

    package var statistics: Statistics {
        state.withLock { state in
            let total = state.shares.tally.total
            return Statistics(
                count: total.entries,
                bytes: total.bytes,
                limit: Holding(entries: state.shares.entries.total, bytes: state.shares.bytes.total),
                refused: state.refused
            )
        }
    }

    /// Returns the retained publication of one topic.
    package func publication(of topic: TopicName) -> StoredPublication? {
        state.withLock { state in state.tree.value(of: topic).flatMap { state.entries[Int($0)]?.seen } }
    }

    /// Returns the unexpired publications that a filter matches, in any order.
    package func matching(_ filter: TopicFilter, now: Timestamp, limit: Int = .max) -> [StoredPublication] {
        state.withLock { state in
            var found: [StoredPublication] = []
            guard limit > 0, state.shares.tally.total.entries > 0 else { return found }
            func take(_ value: RetainedTree.Value) -> Bool {
                guard let seen = state.entries[Int(value)]?.seen, !seen.hasExpired(at: now) else { return true }
                found.append(seen)
                return found.count < limit
            }
            if filter.hasWildcard {
                state.tree.forEachMatch(of: filter, take)
            } else if let topic = TopicName(filter.rawValue), let value = state.tree.value(of: topic) {
                _ = take(value)
            }
            return found
        }
    }

    /// A search for the retained publications that match a filter. It proceeds in parts of bounded size. For each
    /// topic, it finds the publication that is retained when the search reaches the topic. It also finds a publication
    /// that was retained after the search began, because the subscriber may have lost its live copy when a queue was
    /// full. The search does not always find topics that had no retained publication when it began.
    package struct Search: Sendable {
        fileprivate var walk: RetainedTree.Walk
        fileprivate let before: UInt64

        package var isAtEnd: Bool { walk.isAtEnd }
        /// The approximate memory of the search, in bytes. The search has up to two places for each level of the tree.
        package var bytes: Int { walk.bytes }
    }

    /// Begins a search.
    package func search(_ filter: TopicFilter) -> Search {
        Search(walk: RetainedTree.Walk(filter), before: state.withLock { $0.changes })
    }

    /// Continues a search.
    ///
    /// - Parameters:
    ///   - limit: the largest number of publications to return.
    ///   - maxBytes: when the found publications have this number of bytes, this call returns no further publications.
    ///   - steps: the largest number of records to examine; the number of examined records is subtracted.
    package func next(
        _ search: inout Search,
        now: Timestamp,
        limit: Int,
        maxBytes: Int = .max,
        steps: inout Int
    ) -> [StoredPublication] {
        state.withLock { state in
            var found: [StoredPublication] = []
            var bytes = 0
            let filter = search.walk.filter
            let before = search.before
            state.tree.forEachMatch(in: &search.walk, steps: &steps) { value in
                guard let entry = state.entries[Int(value)], let seen = entry.seen, !seen.hasExpired(at: now),
                    state.changes == before || filter.matches(entry.topic)
                else { return true }
                found.append(seen)
                bytes += seen.weight
                return found.count < limit && bytes < maxBytes
            }
            return found
        }
    }

    /// Returns the publications at the places that follow a given place, in the order of the places. A topic with a
    /// retained publication keeps its place.
    ///
    /// - Parameters:
    ///   - place: the place after which to begin; 0 to begin with the first place.
    ///   - count: the number of places.
    /// - Returns: the publications, each with its place, and whether these are the last places.
    func publications(behind place: Int, count: Int) -> (found: [(place: Int, StoredPublication)], isLast: Bool) {
        state.withLock { state in
            let first = min(max(0, place), state.entries.count)
            let slice = state.entries[first...].prefix(max(0, count))
            let found = zip(slice.indices, slice).compactMap { index, entry in entry?.seen.map { (index + 1, $0) } }
            return (found, slice.endIndex == state.entries.count)
        }
    }

    // MARK: Changes by other nodes

    /// Records that the store is going to be read. Only one task at a time may do this. A call to ``endReading()`` must
    /// follow.
    func beginReading() { state.withLock { $0.finishedWhileReading = [] } }

    func endReading() { state.withLock { $0.finishedWhileReading = nil } }

    /// Takes over the publications that the store has for some topics. If this process has changed a topic since
    /// ``beginReading()``, this process reports the topic as ``outdated`` instead, as soon as no write of the topic is
    /// pending.
    ///
    /// - Parameters:
    ///   - found: the publications in the store, at most one for each topic.
    ///   - topics: the topics that were looked for.
    func learn(_ found: [StoredPublication], of topics: [TopicName]) {
        let found = Dictionary(found.lazy.map { ($0.topic, $0) }) { first, _ in first }
        let again = state.withLock { state in
            state.changes += 1
            var again: [TopicName] = []
            for topic in topics {
                let known = state.tree.value(of: topic)
                if let known, state.entries[Int(known)]?.pending ?? 0 > 0 {
                    state.entries[Int(known)]?.isOutdated = true
                } else if state.finishedWhileReading?.contains(topic) == true {
                    again.append(topic)
                } else {
                    Self.change(topic, &state) { entry in
                        entry.seen = found[topic]
                        entry.stored = found[topic]
                    }
                }
            }
            return again
        }
        for topic in again { outdated(topic) }
    }

    /// The topics that have a retained publication, or whose removed publication may come back because the removal is
    /// not stored yet.
    var topics: Set<TopicName> {
        var topics: Set<TopicName> = []
        var place = 0
        while let slice = entries(behind: place) {
            topics.formUnion(slice)
            place += Self.slice
        }
        return topics
    }

    /// - Returns: the topics at up to ``slice`` places, beginning with `place`; nil if `place` does not exist.
    private func entries(behind place: Int) -> [TopicName]? {
        state.withLock { state in
            guard place < state.entries.count else { return nil }
            return state.entries[place...].prefix(Self.slice).compactMap { $0?.topic }
        }
    }

    /// Adds the stored publications when the server starts.
    func load(_ publications: [StoredPublication]) {
        state.withLock { state in
            for publication in publications where !publication.isEmpty {
                Self.change(publication.topic, &state) { entry in
                    entry.seen = publication
                    entry.stored = publication
                }
            }
        }
    }

    /// Makes a publication visible before it is stored; an empty publication removes the topic's retained publication.
    ///
    /// - Returns: false if there is no room; the publication must then not be stored. Otherwise ``finish(_:isStored:)``
    ///   must follow.
    func begin(_ publication: StoredPublication) -> Bool {
        state.withLock { state in
            let seen = publication.isEmpty ? nil : publication
            let old = state.tree.value(of: publication.topic).flatMap { state.entries[Int($0)]?.seen }
            if let seen {
                // The replaced publication makes room, whichever source it counted for.
                let hasRoom = state.shares.hasRoom(
                    for: Self.holding(seen),
                    of: seen.source,
                    replacing: old.map(Self.holding) ?? Holding(),
                    of: old?.source ?? .server
                )
                // A publication may always replace an equally large or larger publication of the same source. The
                // limits may be lower now than they were when the old publication was retained.
                let isSmaller = old.map { $0.source == seen.source && Self.weight($0) >= Self.weight(seen) } ?? false
                guard hasRoom || isSmaller else {
                    state.refused += 1
                    return false
                }
            }
            state.changes += 1
            Self.change(publication.topic, &state) { entry in
                entry.seen = seen
                entry.pending += 1
            }
            return true
        }
    }

    /// Records whether the publication of ``begin(_:)`` was stored; called in the order of the commits.
    func finish(_ publication: StoredPublication, isStored: Bool) {
        let isOutdated = state.withLock { state in
            if !isStored { state.changes += 1 }
            state.finishedWhileReading?.insert(publication.topic)
            var isOutdated = false
            Self.change(publication.topic, &state) { entry in
                if isStored { entry.stored = publication.isEmpty ? nil : publication }
                entry.pending -= 1
                guard entry.pending <= 0 else { return }
                entry.seen = entry.stored
                swap(&entry.isOutdated, &isOutdated)
            }
            return isOutdated
        }
        if isStored { stored(publication.topic) }
        if isOutdated { outdated(publication.topic) }
    }

    /// The number of publications that a long operation examines or changes at once. Other work has its turn before the
    /// next publications.
    static let slice = 500

    /// Forgets expired publications. The store deletes its expired publications itself.
    ///
    /// - Returns: the number of publications that were examined.
    @discardableResult
    func expire(now: Timestamp) -> Int {
        var examined = 0
        while true {
            let count = state.withLock { state in Self.expireSome(&state, now: now) }
            examined += count
            if count < Self.slice { return examined }
        }
    }

    /// Forgets expired publications, after examining at most ``slice`` of them.
    ///
    /// - Returns: the number of publications that were examined.
    private static func expireSome(_ state: inout State, now: Timestamp) -> Int {
        for examined in 0..<slice {
            guard let topic = state.expiries.popDue(now: now) else { return examined }
            // If a write of the topic is pending, the publication is examined again after the write.
            guard let index = state.tree.value(of: topic), let entry = state.entries[Int(index)], entry.pending == 0,
                entry.seen?.hasExpired(at: now) ?? false
            else { continue }
            change(topic, &state) { entry in
                entry.seen = nil
                entry.stored = nil
            }
        }
        return slice
    }

    /// Returns the memory that a publication uses, in bytes: its own bytes, its entry, the record of its expiry, and
    /// the records of its topic's levels. The records of the levels count as if no other topic shared them.
    static func weight(_ publication: StoredPublication) -> Int {
        let levels = publication.topic.rawValue.utf8.reduce(1) { $1 == UInt8(ascii: "/") ? $0 &+ 1 : $0 }
        let expiry = publication.details?.expiresAt == nil ? 0 : expiryBytes
        return publication.weight &+ entryBytes &+ levels &* bytesPerLevel &+ expiry
    }

    private static func holding(_ publication: StoredPublication) -> Holding {
        Holding(entries: 1, bytes: weight(publication))
    }

    private static let entryBytes = 320
    private static let bytesPerLevel = 64
    /// The memory of a key of ``DueKeys``, in bytes: a place in its table, and at most two tickets in its heap.
    private static let expiryBytes = 160

    private static func change(_ topic: TopicName, _ state: inout State, _ body: (inout Entry) -> Void) {
        let known = state.tree.value(of: topic)
        var entry = known.flatMap { state.entries[Int($0)] } ?? Entry(topic: topic)
        let old = entry.seen
        body(&entry)
        if let old, let seen = entry.seen, old.source == seen.source {
            state.shares.add(Holding(bytes: weight(seen) - weight(old)), of: seen.source)
        } else {
            if let old { state.shares.add(-holding(old), of: old.source) }
            if let seen = entry.seen { state.shares.add(holding(seen), of: seen.source) }
        }
        if let expiresAt = entry.seen?.details?.expiresAt {
            state.expiries.set(topic, dueAt: expiresAt)
        } else {
            state.expiries.remove(topic)
        }
        let isNeeded = entry.seen != nil || entry.stored != nil || entry.pending > 0
        switch (known, isNeeded) {
        case (let known?, true):
            state.entries[Int(known)] = entry
        case (let known?, false):
            state.tree.remove(topic)
            state.entries[Int(known)] = nil
            state.free.append(known)
        case (nil, true):
            if let free = state.free.popLast() {
                state.entries[Int(free)] = entry
                state.tree.insert(topic, value: free)
            } else {
                state.entries.append(entry)
                state.tree.insert(topic, value: UInt32(state.entries.count - 1))
            }
        case (nil, false):
            break
        }
    }
}
