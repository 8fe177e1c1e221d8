// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import NIOCore
import Testing

@testable import HermesSQLite

/// A server starts while the machine's clock is slow. When the clock is correct, the server loses nothing.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ClockJumpTests {
    private static let year = Duration.seconds(366 * 86_400)
    private static let retention = Duration.seconds(30 * 86_400)

    private static func messenger(_ store: any Store, _ clock: ManualClock) -> Messenger {
        Messenger(over: store, settings: MessageSettings { $0.retention = retention }, time: clock)
    }

    private static func house(
        _ messenger: Messenger,
        _ clock: ManualClock,
        rounds: Int,
        each step: Duration
    ) async throws {
        for _ in 0..<rounds {
            clock.advance(by: step)
            let isConfirmed = messenger.steadyTime.isConfirmed
            try await messenger.housekeeping(now: messenger.time.now(), isClockConfirmed: isConfirmed)
        }
    }

    private static func inbox(_ messenger: Messenger, _ user: UserID) async throws -> [String] {
        guard case .page(let page) = try await messenger.inbox.answer(.page(after: 0, limit: 9), for: user) else {
            throw ConformanceFailure(description: "not a page")
        }
        return page.entries.map { StoreWorld.summary($0) }
    }

    private static func send(_ text: String, in world: StoreWorld, _ messenger: Messenger) async throws {
        let draft = MessageDraft(
            conversation: world.conversation(0, 1),
            clientID: nil,
            content: MessageContent(bytes: Array(text.utf8))
        )
        _ = try await withCheckedContinuation { continuation in
            messenger.messages.send(draft, from: world[0]) { continuation.resume(returning: $0) }
        }.get()
    }

    @Test(arguments: [false, true])
    func `what is accepted while the clock is ahead lives no longer than it should`(_ isInMemory: Bool) async throws {
        let directory = try TemporaryDirectory()
        let clock = ManualClock(now: StoreWorld.now)
        let sqlite = isInMemory ? nil : try directory.openStore()
        let world = try await StoreWorld(store: sqlite ?? MemoryStore())
        let messenger = Self.messenger(world.store, clock)
        try await Self.send("early", in: world, messenger)
        clock.jump(by: Self.year)
        try await Self.house(messenger, clock, rounds: 610, each: .seconds(1))
        #expect(messenger.time.now() == clock.now(), "the jump is believed")
        try await Self.send("meanwhile", in: world, messenger)
        // The purge examines both messages.
        try await Self.house(messenger, clock, rounds: 20, each: .seconds(86_400))
        #expect(try await Self.inbox(messenger, world[1].user) == ["1:early", "2:meanwhile"])
        clock.jump(by: .zero - Self.year)
        try await Self.house(messenger, clock, rounds: 590, each: .seconds(1))
        // The clock is wrong again for a moment.
        clock.jump(by: Self.year)
        try await Self.house(messenger, clock, rounds: 2, each: .seconds(1))
        clock.jump(by: .zero - Self.year)
        try await Self.house(messenger, clock, rounds: 610, each: .seconds(1))
        try await Self.house(messenger, clock, rounds: 9, each: .seconds(86_400))
        #expect(try await Self.inbox(messenger, world[1].user) == ["1:early", "2:meanwhile"])
        try await Self.house(messenger, clock, rounds: 2, each: .seconds(86_400))
        #expect(try await Self.inbox(messenger, world[1].user) == ["1-2:hole"])
        await messenger.shutdown()
        try sqlite?.close()
    }

    @Test(arguments: [false, true])
    func `what is accepted while the clock is behind lives as long as it should`(_ isInMemory: Bool) async throws {
        let directory = try TemporaryDirectory()
        let clock = ManualClock(now: StoreWorld.now.advanced(by: .zero - Self.year))
        let sqlite = isInMemory ? nil : try directory.openStore()
        let store: any Store = sqlite ?? MemoryStore()
        let world = try await StoreWorld(store: store)
        let messenger = Self.messenger(store, clock)
        try await Self.send("text", in: world, messenger)
        try await Self.house(messenger, clock, rounds: 60, each: .seconds(60))
        clock.jump(by: Self.year)
        try await Self.house(messenger, clock, rounds: 610, each: .seconds(1))
        #expect(messenger.time.now() == clock.now(), "the jump is believed")
        #expect(try await Self.inbox(messenger, world[1].user) == ["1:text"])
        try await Self.house(messenger, clock, rounds: 20, each: .seconds(86_400))
        #expect(try await Self.inbox(messenger, world[1].user) == ["1:text"])
        var later = messenger
        var last: SQLiteStore?
        if let sqlite {
            // The jump is recorded in the store, not only in the process.
            await messenger.shutdown()
            try sqlite.close()
            let store = try directory.openStore()
            later = Self.messenger(store, clock)
            last = store
        }
        try await Self.house(later, clock, rounds: 700, each: .seconds(1))
        #expect(try await Self.inbox(later, world[1].user) == ["1:text"])
        try await Self.house(later, clock, rounds: 11, each: .seconds(86_400))
        #expect(try await Self.inbox(later, world[1].user) == ["1-1:hole"])
        await later.shutdown()
        try last?.close()
    }

    @Test(arguments: [false, true])
    func `a server that starts with its clock ahead keeps what an earlier run retained`(
        _ isInMemory: Bool
    ) async throws {
        let directory = try TemporaryDirectory()
        let clock = ManualClock(now: StoreWorld.now)
        let sqlite = isInMemory ? nil : try directory.openStore()
        let store: any Store = sqlite ?? MemoryStore()
        let messenger = Self.messenger(store, clock)
        let topic = try #require(TopicName("t"))
        let publication = StoredPublication(
            topic: topic,
            payload: ByteBuffer(string: "x"),
            qos: .atLeastOnce,
            retain: true,
            details: PublicationDetails(expiresAt: clock.now().advanced(by: .seconds(86_400))),
            publishedAt: clock.now()
        )
        let stored = await withCheckedContinuation { (waiter: CheckedContinuation<Result<Void, HermesError>, Never>) in
            messenger.durable.publish(publication, targets: [], retains: true) { waiter.resume(returning: $0) }
        }
        try stored.get()
        await messenger.shutdown()
        try sqlite?.close()
        clock.jump(by: .seconds(40 * 86_400))
        let reopened = isInMemory ? nil : try directory.openStore()
        let last: any Store = reopened ?? store
        let later = Self.messenger(last, clock)
        try await later.load()
        try await Self.house(later, clock, rounds: 599, each: .seconds(1))
        #expect(try await last.retained().map(\.topic) == [topic])
        #expect(later.durable.retained.publication(of: topic) != nil)
        try await Self.house(later, clock, rounds: 1, each: .seconds(1))
        #expect(try await last.retained().isEmpty)
        #expect(later.durable.retained.publication(of: topic) == nil)
        await later.shutdown()
        try reopened?.close()
    }
}
