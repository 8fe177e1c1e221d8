// Hermes
// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// The users of whom watchers or observers are notified later. Each user is in the line at most once. Does no I/O.
///
/// Each user waits for a second, in which its presence may change again. After that second, observers are notified of
/// the user, and watchers are notified when it is the user's turn. There are two orders. In one order, the users with
/// the fewest watchers come first. In the other order, the sources of the changes take turns. A user has places in both
/// orders.
struct PresenceLine: Sendable {
    /// A place in one of the orders: a user, and the number of its entry. If the user waits again after its watchers
    /// were notified, it has an entry with another number.
    private struct Place: Sendable {
        let user: UserID
        let entry: UInt64
    }

    private struct Entry: Sendable {
        let number: UInt64
        /// The sources of the user's changes. The user has a place among the users of each source, so that a source
        /// with many changes does not delay the changes of other sources.
        var sources: [CommitSource]
        let watchers: Int
        var isAwake = false
    }

    /// The shortest time for which a user waits.
    static let rest = Duration.seconds(1)
    /// The largest number of sources with a place for the same user.
    private static let maxSources = 16

    private var entries: [UserID: Entry] = [:]
    private var lastEntry: UInt64 = 0
    private var resting = Deque<(place: Place, until: Duration)>()
    private var turns = TurnTable<CommitSource, Deque<Place>>()
    /// The places of the users that are awake (whose second is over), by the number of bits in the number of their
    /// watchers.
    private var classes = Array(repeating: Deque<Place>(), count: Int.bitWidth)
    /// The number of places that are not in use any more, because the user's watchers were notified when another place
    /// of the user had its turn.
    private(set) var stale = 0
    private var reports: Set<UserID> = []
    private var restingReports = Deque<(user: UserID, until: Duration)>()

    var isEmpty: Bool { entries.isEmpty && reports.isEmpty }

    /// Adds a user whose watchers are notified later. A user that already waits keeps its places. It gets another place
    /// if the source is new.
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

    /// Adds a user of whom observers are notified later.
    mutating func appendReport(_ user: UserID, now: Duration) {
        if reports.insert(user).inserted { restingReports.append((user, now + Self.rest)) }
    }

    /// Removes and returns the next user of whom observers are notified.
    ///
    /// - Parameter now: the present time, so that only a user whose second is over is returned; nil if any user may be
    ///   returned.
    mutating func nextReport(now: Duration?) -> UserID? {
        guard let first = restingReports.first, now.map({ first.until <= $0 }) ?? true else { return nil }
        restingReports.removeFirst()
        return reports.remove(first.user)
    }

    /// Adds the users whose second is over to both orders.
    mutating func wake(now: Duration) {
        while let first = resting.first, first.until <= now {
            resting.removeFirst()
            guard let entry = entries[first.place.user] else { continue }
            entries[first.place.user]?.isAwake = true
            classes[Self.classIndex(of: entry.watchers)].append(first.place)
            for source in entry.sources { turns.update(source, default: []) { $0.append(first.place) } }
        }
    }

    /// Removes and returns the awake user that has, roughly, the fewest watchers.
    ///
    /// - Parameter most: the largest number of watchers that the user may have, roughly.
    mutating func nextOfFewest(atMost most: Int) -> UserID? {
        for index in 0...Self.classIndex(of: most) {
            while let place = classes[index].popFirst() { if let user = take(place) { return user } }
        }
        return nil
    }

    /// Removes and returns the next awake user of the source whose turn it is.
    mutating func nextInTurn() -> UserID? {
        // The table is moved out of `self`, because the entries are read while the table is changed.
        var turns = TurnTable<CommitSource, Deque<Place>>()
        swap(&turns, &self.turns)
        var found: Place?
        // A source uses up its turn only when a user is found among its places.
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
        // The user had one place for each source, and one place in the order by watchers. One of these places was used;
        // the other places are stale.
        stale += entry.sources.count
        if stale > Self.maxStale + 2 * entries.count { dropStale() }
        return place.user
    }

    private func isWaiting(_ place: Place) -> Bool { entries[place.user]?.number == place.entry }

    /// The number of stale places that are kept in any case.
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
