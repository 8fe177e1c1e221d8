// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

/// Many pushes of a back end, and messages that no device fetches for a long time.
extension PushHandOffTests {
    @Test
    func `of many pushes without a collapse key, a device that is away gets the newest 20, and the badge counts all`()
        async throws
    {
        var world = try await World()
        for number in 1...25 {
            let push = try world.messenger.pushes.make(PushContent(title: "\(number)"))
            _ = try await world.messenger.pushes.send(push, to: .users([user(2)]))
        }
        // The observer is called after the completion. A second commit comes after the call of the observer.
        try await world.markRead(upTo: 1, by: 3, with: 3)
        await world.wait(.zero)
        #expect(world.sender.sent.map(\.notification.reference.inboxSeq) == Array(6...25 as ClosedRange<UInt64>))
        #expect(world.sender.sent.allSatisfy { $0.notification.badge == 25 })
        #expect(Set(world.sender.sent.map(\.notification.collapseKey)).count == 20)
        #expect(try await world.pushedUpTo() == [25])
        await world.messenger.shutdown()

        world = try await World(world.store)
        try await world.handOff.recover()
        await world.wait(.seconds(60))
        #expect(world.sender.sent.isEmpty)
        await world.messenger.shutdown()
    }

    @Test
    func `a message that is more than a day old is not told as undelivered, and is not looked at again`() async throws {
        var world = try await World()
        try await world.send("one")
        await world.messenger.shutdown()
        world = try await World(world.store, ahead: .seconds(25 * 3600))
        // From now on, the clock is confirmed.
        world.time.advance(by: .seconds(600))
        try await world.handOff.recover()
        for _ in 1...3 { await world.wait(.seconds(10)) }
        #expect(try await !world.events().contains { $0["type"] as? String == "message.undelivered" })
        #expect(try await world.store.undeliveredMark(of: user(2)) == 1)
        #expect(world.handOff.waiting == 0)
        await world.messenger.shutdown()
    }
}
