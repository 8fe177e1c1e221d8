// Hermes
// SPDX-License-Identifier: Apache-2.0

/// The rooms that have members.
///
/// To find them, the event loops look at all topics that clients subscribe to. One search serves everybody who asks
/// during it. Beyond ``fewTopics``, it serves those who ask afterwards, too, for a time that grows with the number of
/// topics. So whoever asks, however often, takes a small part of the loops.
package actor RoomDirectory {
    package struct Room: Sendable, Hashable {
        package let name: RoomName
        /// The number of connections in it.
        package let members: Int
    }

    /// A part of the rooms.
    package struct Page: Sendable, Hashable {
        package var rooms: [Room]
        /// The number of rooms on all pages.
        package var total: Int
    }

    /// Up to this number of topics, each question is a search of its own.
    package static let fewTopics = 8_192
    /// The time for which a list is used, for each topic that was examined. An examination takes up to 1 µs.
    static let agePerTopic = Duration.microseconds(10)
    /// The longest time for which a list is used.
    package static let maxAge = Duration.seconds(10)

    private let uptime: @Sendable () -> Duration
    private let counts: @Sendable () async -> (counts: [TopicName: Int], examined: Int)
    private var last: (rooms: [Room], end: Duration)?
    private var search: Task<[Room], Never>?

    /// - Parameters:
    ///   - uptime: of a clock that never goes back.
    ///   - counts: searches for the topics of rooms, with the numbers of their subscribers.
    package init(
        uptime: @escaping @Sendable () -> Duration,
        counts: @escaping @Sendable () async -> (counts: [TopicName: Int], examined: Int)
    ) {
        self.uptime = uptime
        self.counts = counts
    }

    /// The rooms whose names contain a text, by name.
    ///
    /// - Parameters:
    ///   - text: in any case; empty: all rooms.
    ///   - after: only rooms behind this name.
    ///   - limit: the most rooms in the page.
    ///   - mayRead: whether a room is shown and counted; nil: all are.
    package nonisolated func rooms(
        containing text: String = "",
        after name: String = "",
        limit: Int,
        where mayRead: (@Sendable (RoomName) -> Bool)? = nil
    ) async -> Page {
        var rooms = await all()
        if !text.isEmpty {
            let text = text.lowercased()
            rooms = rooms.filter { $0.name.rawValue.lowercased().contains(text) }
        }
        if let mayRead { rooms = rooms.filter { mayRead($0.name) } }
        let start = name.isEmpty ? 0 : rooms.firstIndex { $0.name.rawValue > name } ?? rooms.count
        return Page(rooms: Array(rooms[start...].prefix(limit)), total: rooms.count)
    }

    private func all() async -> [Room] {
        if let last, uptime() < last.end { return last.rooms }
        if let search { return await search.value }
        // A task of its own, because it serves others even if the first who asked is gone.
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
