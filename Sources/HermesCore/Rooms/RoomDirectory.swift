// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rooms that have members.
///
/// To find the rooms, the event loops look at all topics that clients subscribe to. All requests that arrive during
/// such a search get the result of that search. If there are more than ``fewTopics`` topics, later requests also use
/// the result, for a time that grows with the number of topics. So searches take only a small part of the loops' time,
/// regardless of the number of requests.
package actor RoomDirectory {
    package struct Room: Sendable, Hashable {
        package let name: RoomName
        /// The number of connections in the room.
        package let members: Int
        /// The name in lower case.
        fileprivate let lowercasedName: String

        fileprivate init(name: RoomName, members: Int) {
            self.name = name
            self.members = members
            lowercasedName = name.rawValue.lowercased()
        }
    }

    /// One page of the list of rooms.
    package struct Page: Sendable, Hashable {
        package var rooms: [Room]
        /// The number of rooms on all pages.
        package var total: Int
    }

    /// If a search examines at most this many topics, its result is not kept for later requests.
    package static let fewTopics = 8_192
    /// For each topic that a search examined, its result is used for this time. Examining a topic takes up to 1 µs.
    static let agePerTopic = Duration.microseconds(10)
    /// The longest time for which a result is used.
    package static let maxAge = Duration.seconds(10)

    private let uptime: @Sendable () -> Duration
    private let counts: @Sendable () async -> (counts: [TopicName: Int], examined: Int)
    private var last: (rooms: [Room], end: Duration)?
    private var search: Task<[Room], Never>?

    /// - Parameters:
    ///   - uptime: returns the time of a clock that never goes back.
    ///   - counts: searches for the topics of rooms. The function returns these topics with the numbers of their
    ///     subscribers, and the number of topics that it has examined.
    package init(
        uptime: @escaping @Sendable () -> Duration,
        counts: @escaping @Sendable () async -> (counts: [TopicName: Int], examined: Int)
    ) {
        self.uptime = uptime
        self.counts = counts
    }

    /// Returns the rooms whose names contain a given text, sorted by name.
    ///
    /// - Parameters:
    ///   - text: the text, regardless of case; empty for all rooms.
    ///   - after: only rooms after this name are returned.
    ///   - limit: the maximum number of rooms in the page.
    ///   - mayRead: returns whether a room is shown and counted; nil if all rooms are shown and counted.
    package nonisolated func rooms(
        containing text: String = "",
        after name: String = "",
        limit: Int,
        where mayRead: (@Sendable (RoomName) -> Bool)? = nil
    ) async -> Page {
        var rooms = await all()
        if !text.isEmpty {
            let text = text.lowercased()
            rooms = rooms.filter { $0.lowercasedName.contains(text) }
        }
        if let mayRead { rooms = rooms.filter { mayRead($0.name) } }
        return Page(rooms: Array(rooms[Self.start(in: rooms, after: name)...].prefix(limit)), total: rooms.count)
    }

    /// Returns the index of the first room after a name.
    ///
    /// - Parameter rooms: the rooms, sorted by name.
    private static func start(in rooms: [Room], after name: String) -> Int {
        var (low, high) = (0, rooms.count)
        while low < high {
            let middle = (low + high) / 2
            if rooms[middle].name.rawValue > name { high = middle } else { low = middle + 1 }
        }
        return low
    }

    private func all() async -> [Room] {
        if let last, uptime() < last.end { return last.rooms }
        if let search { return await search.value }
        // The search has a task of its own, because it also serves other requests, even if the first caller no longer
        // waits.
        let search = Task { await find() }
        self.search = search
        return await search.value
    }

    private func find() async -> [Room] {
        let (found, examined) = await counts()
        let rooms = found.compactMap { topic, members in
            members > 0 ? topic.room.map { Room(name: $0, members: members) } : nil
        }
        .sorted { $0.name.rawValue < $1.name.rawValue }
        let age = examined > Self.fewTopics ? min(Self.agePerTopic * examined, Self.maxAge) : .zero
        last = (rooms, uptime() + age)
        search = nil
        return rooms
    }
}
