// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// More devices than the schedule has room for.
extension PushHandOffTests {
    /// The owners of devices whose service fails.
    private static let failing: ClosedRange<Int32> = 4...33
    /// The owner of a device whose service works.
    private static let other: Int32 = 34

    /// Returns a world whose schedule has room for half of the devices for which APNs fails.
    private func smallWorld(_ store: MemoryStore) async throws -> World {
        let world = try await World(store)
        world.handOff.state.withLock { $0.schedule = HandOffSchedule(capacity: 16) }
        world.sender.answer(.retry(after: nil, isService: true, reason: "403"), by: .apns)
        return world
    }

    private func populatedStore() async throws -> MemoryStore {
        let store = MemoryStore()
        try await addAccounts(Self.other, to: store)
        return store
    }

    private func setTokens(_ world: World) async throws {
        for number in Self.failing {
            let token = PushToken(stored: .apns, text: "aa\(number)", appID: "")
            try await world.messenger.pushTokens.set(token, of: principal(number))
        }
        let token = PushToken(stored: .fcm, text: "ff", appID: "")
        try await world.messenger.pushTokens.set(token, of: principal(Self.other))
    }

    private func unpushed(_ store: MemoryStore) async throws -> [Int32] {
        var numbers: [Int32] = []
        for number in Self.failing {
            let pushedUpTo = try await store.pushTargets(of: user(number)).map(\.pushedUpTo)
            if pushedUpTo != [1] { numbers.append(number) }
        }
        return numbers
    }

    @Test
    func `a service that fails for more devices than there is room holds up no other, and gets all in the end`()
        async throws
    {
        let store = try await populatedStore()
        let world = try await smallWorld(store)
        try await setTokens(world)
        for number in Self.failing { try await world.send("waits for APNs", to: number) }
        try await world.work(30)
        #expect(try await unpushed(store) == Array(Self.failing))
        #expect(world.handOff.waiting <= 8)
        try await world.send("through FCM", to: Self.other)
        await world.wait(.zero)
        #expect(world.sender.sent.last?.notification.body == "through FCM")

        world.sender.answer(nil, by: .apns)
        try await world.work(500)
        #expect(try await unpushed(store) == [])
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }

    @Test
    func `after a restart, a service that fails for the first users does not hold up the last one`() async throws {
        let store = try await populatedStore()
        var world = try await smallWorld(store)
        try await setTokens(world)
        for number in Self.failing { try await world.send("waits for APNs", to: number) }
        try await world.send("through FCM", to: Self.other)
        await world.messenger.shutdown()

        world = try await smallWorld(store)
        try await world.handOff.recover()
        try await world.work(20)
        #expect(world.sender.sent.contains { $0.notification.body == "through FCM" })
        #expect(try await unpushed(store) == Array(Self.failing))
        await world.messenger.shutdown()
    }

    @Test func `a node without push services gives the places at named services back`() async throws {
        let world = try await World()
        try await world.messenger.pushTokens.set(subscription("good.example.org"), of: principal(2))
        let handOff = PushHandOff(
            world.messenger,
            store: world.store,
            accounts: world.store,
            sender: nil,
            text: { _ in PushText(title: "", body: "") }
        )
        try await world.send("one")
        let key = HandOffKey(try user(2), try device("phone"))
        // There is one round more than the number of places that an account may have.
        for _ in 0...HostShares.Limits().perUser {
            let now = world.time.uptime()
            handOff.state.withLock { $0.schedule.committed(key, upTo: 1, due: now) }
            await handOff.look(at: handOff.takeBatch())
            #expect(handOff.waiting == 0)
        }
        #expect(handOff.state.withLock { $0.hosts.total } == 0)
        await world.messenger.shutdown()
    }
}
