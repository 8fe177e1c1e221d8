// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// A store that cannot record the answers of push services.
extension PushHandOffTests {
    @Test
    func `what a service has accepted is sent once, however long the disk is full; so are its events`() async throws {
        let world = try await World()
        try await world.messenger.pushTokens.set(PushToken(stored: .apns, text: "cc", appID: ""), of: principal(3))
        try await world.send("one")
        try await world.send("another device", to: 3)
        try world.store.setCapacity(bytes: 0)
        for _ in 0..<100 { await world.wait(.seconds(60)) }
        #expect(world.sender.sent.map(\.notification.body).sorted() == ["another device", "one"])
        #expect(try await world.pushedUpTo() == [0])

        try world.store.setCapacity(bytes: nil)
        await world.wait(.seconds(60))
        #expect(try await world.pushedUpTo() == [1])
        let results = try await world.events().filter { $0["type"] as? String == "push.result" }
        #expect(results.count == 2)
        try await world.send("two")
        await world.wait(.zero)
        #expect(world.sender.sent.map(\.notification.body).sorted() == ["another device", "one", "two"])
        await world.wait(.seconds(3600))
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }

    @Test
    func `what could not be recorded is recorded when the server stops`() async throws {
        let world = try await World()
        try await world.send("one")
        try world.store.setCapacity(bytes: 0)
        await world.wait(.zero)
        try world.store.setCapacity(bytes: nil)
        let running = Task { await world.handOff.run() }
        running.cancel()
        await running.value
        #expect(world.sender.sent.map(\.notification.body) == ["one"])
        #expect(try await world.pushedUpTo() == [1])
        await world.messenger.shutdown()
    }

    @Test
    func `nothing is sent while very many results are not recorded`() async throws {
        let world = try await World()
        try await world.send("one")
        let owner = try user(2)
        world.handOff.state.withLock { state in
            for number in 1...UnrecordedPushes.limit {
                let key = HandOffKey(owner, DeviceID("d\(number)"))
                state.unrecorded.keep(PushResult(key: key, settlements: [], notices: []))
            }
        }
        try world.store.setCapacity(bytes: 0)
        for _ in 0..<10 { await world.wait(.seconds(60)) }
        #expect(world.sender.sent.isEmpty)
        try world.store.setCapacity(bytes: nil)
        await world.wait(.seconds(60))
        #expect(world.sender.sent.map(\.notification.body) == ["one"])
        #expect(world.handOff.state.withLock { $0.unrecorded.isEmpty })
        await world.messenger.shutdown()
    }

    @Test
    func `results are recorded by one task at a time, and what failed stays`() throws {
        var unrecorded = UnrecordedPushes()
        #expect(unrecorded.begin()?.count == nil)
        let keys = try (1...3).map { HandOffKey(try user(Int32($0)), nil) }
        for key in keys { unrecorded.keep(PushResult(key: key, settlements: [], notices: [])) }
        let taken = unrecorded.begin() ?? []
        #expect(Set(taken.map(\.key)) == Set(keys))
        #expect(unrecorded.begin()?.count == nil)
        #expect(keys.allSatisfy { unrecorded.contains($0) })
        unrecorded.end(taken, rest: taken.filter { $0.key == keys[1] })
        #expect(keys.map { unrecorded.contains($0) } == [false, true, false])
        #expect(unrecorded.begin()?.map(\.key) == [keys[1]])
    }
}
