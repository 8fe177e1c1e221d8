// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The users of whom watchers or observers are told later, each once. Pure.
///
/// Each waits for a second, in which it may change again. Then observers are told, and watchers as their turn comes.
/// There are two orders: the users with the fewest watchers come first, or the sources of the changes take turns. A user
/// has a place in both.
struct PresenceLine: Sendable {
    /// A user, and the number of its entry: one that has been told and waits again has another.
    private struct Place: Sendable {
        let user: UserID
        let entry: UInt64
    }

    private struct Entry: Sendable {
        let number: UInt64
        /// Each has a place for the user, so that no source makes another's change wait in its own line.
        var sources: [CommitSource]
        let watchers: Int
        var isAwake = false
    }

    /// The time for which a user waits at least.
    static let rest = Duration.seconds(1)
    /// The most sources with a place for the same user.
    private static let maxSources = 16

    private var entries: [UserID: Entry] = [:]
    private var lastEntry: UInt64 = 0
    private var resting = Deque<(place: Place, until: Duration)>()
    private var turns = TurnTable<CommitSource, Deque<Place>>()
    /// By the number of bits of the number of watchers.
    private var classes = Array(repeating: Deque<Place>(), count: Int.bitWidth)
    /// The number of places whose users have been told from another place.
    private(set) var stale = 0
    private var reports: Set<UserID> = []
    private var restingReports = Deque<(user: UserID, until: Duration)>()

    var isEmpty: Bool { entries.isEmpty && reports.isEmpty }

    /// Watchers are told later. A user that waits already keeps its place, and has another one in the turns of another
    /// source.
    mutating func append(_ user: UserID, watchers: Int, by source: CommitSource, now: Duration) {
        guard var entry = entries[user] else {
            lastEntry += 1
            entries[user] = Entry(number: lastEntry, sources: [source], watchers: watchers)
            resting.append((Place(user: user, entry: lastEntry), now + Self.rest))
            return
        }
        guard !entry.sources.contains(source), entry.sources.count < Self.maxSources else { return }
        entry.sources.append(source)
        entries[user] = entry
        if entry.isAwake {
            let place = Place(user: user, entry: entry.number)
            turns.update(source, default: []) { $0.append(place) }
        }
    }

    /// Observers are told later.
    mutating func appendReport(_ user: UserID, now: Duration) {
        if reports.insert(user).inserted { restingReports.append((user, now + Self.rest)) }
    }

    /// The next user of whom observers are told.
    mutating func nextReport(now: Duration) -> UserID? {
        guard let first = restingReports.first, first.until <= now else { return nil }
        restingReports.removeFirst()
        return reports.remove(first.user)
    }

    /// Lets those take turns whose second is over.
    mutating func wake(now: Duration) {
        while let first = resting.first, first.until <= now {
            resting.removeFirst()
            guard let entry = entries[first.place.user] else { continue }
            entries[first.place.user]?.isAwake = true
            classes[Self.classIndex(of: entry.watchers)].append(first.place)
            for source in entry.sources { turns.update(source, default: []) { $0.append(first.place) } }
        }
    }

    /// Removes the user with the fewest watchers, roughly, that is awake.
    ///
    /// - Parameter most: the most watchers that it may have, roughly.
    mutating func nextOfFewest(atMost most: Int) -> UserID? {
        for index in 0...Self.classIndex(of: most) {
            while let place = classes[index].popFirst() { if let user = take(place) { return user } }
        }
        return nil
    }

    /// Removes the user that is awake and whose source has its turn.
    mutating func nextInTurn() -> UserID? {
        // By itself, because the entries are read meanwhile.
        var turns = TurnTable<CommitSource, Deque<Place>>()
        swap(&turns, &self.turns)
        var found: Place?
        // A source has used its turn once it has found somebody.
        while found == nil {
            let hasSource: Void? = turns.next { places in
                while found == nil, let place = places.popFirst() {
                    if isWaiting(place) { found = place } else { stale -= 1 }
                }
                return ((), isEmpty: places.isEmpty)
            }
            if hasSource == nil { break }
        }
        swap(&turns, &self.turns)
        return found.flatMap { take($0) }
    }

    private static func classIndex(of watchers: Int) -> Int {
        Int.bitWidth - max(1, watchers).leadingZeroBitCount - 1
    }

    private mutating func take(_ place: Place) -> UserID? {
        guard isWaiting(place), let entry = entries.removeValue(forKey: place.user) else {
            stale -= 1
            return nil
        }
        // One of its places was used: there is one for each source, and one among the users with as many watchers.
        stale += entry.sources.count
        if stale > Self.maxStale + 2 * entries.count { dropStale() }
        return place.user
    }

    private func isWaiting(_ place: Place) -> Bool { entries[place.user]?.number == place.entry }

    /// The places without a user that are kept in any case.
    static let maxStale = 1_024

    private mutating func dropStale() {
        classes = classes.map { places in Deque(places.filter { isWaiting($0) }) }
        turns = TurnTable()
        for place in classes.joined().sorted(by: { $0.entry < $1.entry }) {
            guard let entry = entries[place.user] else { continue }
            for source in entry.sources { turns.update(source, default: []) { $0.append(place) } }
        }
        stale = 0
    }
}
