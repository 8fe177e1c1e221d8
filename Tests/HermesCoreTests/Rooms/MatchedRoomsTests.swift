// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite struct MatchedRoomsTests {
    private static func matches(_ filter: String, _ room: RoomName) -> Bool {
        MatchedRooms(of: filter[...])?.includes(room) ?? false
    }

    @Test func `the rooms of a filter are those whose topics it matches`() throws {
        let levels = ["room", "lobby", "lobby2", "other", "", "+", "#"]
        var filters = levels
        for _ in 0..<3 { filters = levels + filters.flatMap { filter in levels.map { "\(filter)/\($0)" } } }
        let rooms = try ["lobby", "lobby2", "room", "stage"].map { try #require(RoomName($0)) }
        var count = 0
        for text in filters {
            guard let filter = TopicFilter(text) else { continue }
            for room in rooms {
                #expect(Self.matches(text, room) == filter.matches(room.topic), "\(text) \(room)")
                count += Self.matches(text, room) ? 1 : 0
            }
        }
        #expect(count > 20)
    }

    @Test(arguments: ["", "rooms/lobby", "room\u{301}/lobby", "room/lobby\u{301}", "room/Lobby", "$share/g/room/lobby"])
    func `bytes are compared`(filter: String) {
        #expect(!Self.matches(filter, .lobby))
    }
}
