// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import Synchronization
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1))) struct RoomDirectoryTests {
    /// Topics with counts that change, and a clock.
    private final class World: Sendable {
        struct State {
            var now = Duration.zero
            var counts: [TopicName: Int] = [:]
            var examined = 0
            var searches = 0
        }

        let state = Mutex(State())

        var directory: RoomDirectory {
            RoomDirectory(
                uptime: { [self] in state.withLock { $0.now } },
                counts: { [self] in
                    // Other callers ask meanwhile.
                    for _ in 0..<10 { await Task.yield() }
                    return state.withLock { state in
                        state.searches += 1
                        return (state.counts, state.examined)
                    }
                }
            )
        }

        func set(_ names: [String], examined: Int) throws {
            let rooms = try names.map { try #require(RoomName($0)) }
            state.withLock { state in
                state.counts = Dictionary(uniqueKeysWithValues: rooms.map { ($0.topic, 2) })
                state.examined = examined
            }
        }
    }

    private func names(_ page: RoomDirectory.Page) -> [String] { page.rooms.map(\.name.rawValue) }

    @Test func `with few topics every list is new`() async throws {
        let world = World()
        let directory = world.directory
        try world.set(["b", "a"], examined: RoomDirectory.fewTopics)
        #expect(await names(directory.rooms(limit: 9)) == ["a", "b"])
        try world.set([], examined: RoomDirectory.fewTopics)
        #expect(await directory.rooms(limit: 9).total == 0)
    }

    @Test func `with very many topics one search serves all, for a bounded time`() async throws {
        let world = World()
        let directory = world.directory
        try world.set(["a"], examined: 10_000_000)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 { group.addTask { _ = await directory.rooms(limit: 9) } }
        }
        #expect(world.state.withLock { $0.searches } == 1)
        try world.set(["b"], examined: 10_000_000)
        world.state.withLock { $0.now = RoomDirectory.maxAge - .milliseconds(1) }
        #expect(await names(directory.rooms(limit: 9)) == ["a"])
        world.state.withLock { $0.now = RoomDirectory.maxAge }
        #expect(await names(directory.rooms(limit: 9)) == ["b"])
        #expect(world.state.withLock { $0.searches } == 2)
    }

    @Test func `pages and searches`() async throws {
        let world = World()
        let directory = world.directory
        try world.set(["one", "two", "three", "four", "Twenty"], examined: 5)
        let first = await directory.rooms(limit: 2)
        #expect(names(first) == ["Twenty", "four"] && first.total == 5)
        #expect(await names(directory.rooms(after: "four", limit: 2)) == ["one", "three"])
        #expect(await names(directory.rooms(after: "three", limit: 2)) == ["two"])
        #expect(await names(directory.rooms(after: "m", limit: 2)) == ["one", "three"])
        #expect(await names(directory.rooms(after: "two", limit: 2)) == [])
        let found = await directory.rooms(containing: "TW", limit: 1)
        #expect(names(found) == ["Twenty"] && found.total == 2)
    }
}
