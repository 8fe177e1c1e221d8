// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import Testing

@Suite("Pushes")
struct PushServiceTests {
    private struct World {
        let store = FakeStore()
        let time = ManualTime()
        let messenger: Messenger

        init(accounts: Int32) async throws {
            messenger = Messenger(store.base, messages: store, time: time)
            try await addAccounts(accounts, to: store.base)
        }

        /// Returns the messenger of the next process, which starts with its clock ahead.
        func restart(ahead: Duration) async -> Messenger {
            await messenger.shutdown()
            time.jump(by: ahead)
            return Messenger(store.base, messages: store, time: time)
        }

        /// Waits until a push is in the inbox of an account.
        func waitForPush(to number: Int32) async throws {
            while try await messenger.messageStore.position(of: user(number)).head == 0 { await Task.yield() }
        }
    }

    @Test
    func `a push for a few is delivered to who is connected, and seqs go on`() async throws {
        let world = try await World(accounts: 2)
        let attachment = RecordingAttachment(try principal(1))
        world.messenger.devices.attach(attachment)
        for title in ["a", "b"] {
            let push = try world.messenger.pushes.make(PushContent(title: title))
            #expect(try await world.messenger.pushes.send(push, to: .users([user(1), user(2)])) == nil)
        }
        await world.messenger.shutdown()
        #expect(attachment.calls.flatMap { $0 }.map(\.seq) == [1, 2])
        #expect(try await world.store.position(of: user(2)).head == 2)
    }

    @Test
    func `a message in a push has the full name of its type, and a bound`() async throws {
        let world = try await World(accounts: 1)
        for type in ["a", "shop.Order", "_x.Y_1", String(repeating: "t", count: 128)] {
            let message = TypedMessage(type: type, bytes: Array(repeating: 0, count: TypedMessage.maxBytes))
            #expect(try world.messenger.pushes.make(PushContent(message: message)).content.message == message)
        }
        for type in ["", ".", "a.", ".a", "a..b", "1a", "a.1b", "a b", "a/b", "ä", String(repeating: "t", count: 129)] {
            let error = #expect(throws: HermesError.self) {
                try world.messenger.pushes.make(PushContent(message: TypedMessage(type: type, bytes: [])))
            }
            let expected: HermesError.Code = type.utf8.count > 128 ? .tooLarge : .invalidArgument
            #expect(error?.code == expected, "\(type)")
        }
        let long = TypedMessage(type: "a", bytes: Array(repeating: 0, count: TypedMessage.maxBytes + 1))
        let error = #expect(throws: HermesError.self) {
            try world.messenger.pushes.make(PushContent(title: "a", message: long))
        }
        #expect(error?.code == .tooLarge)
        await world.messenger.shutdown()
    }

    @Test
    func `a push ends after its own time, and without one, or with a longer one, after the retention`() async throws {
        let world = try await World(accounts: 1)
        let retention = MessageSettings().retention
        let cases: [(own: Duration?, life: Duration)] = [
            (nil, retention), (.seconds(60), .seconds(60)), (retention, retention), (retention * 2, retention),
            (.seconds(315_360_000), retention),
        ]
        for (own, life) in cases {
            let push = try world.messenger.pushes.make(PushContent(title: "a"), expiresAfter: own)
            #expect(push.expiresAt == world.time.now().advanced(by: life))
        }
        await world.messenger.shutdown()
    }

    @Test
    func `a push for everyone reaches each account once, also where the store fails meanwhile`() async throws {
        let world = try await World(accounts: 1_203)
        let push = try world.messenger.pushes.make(PushContent(title: "a"))
        #expect(try await world.messenger.pushes.send(push, to: .everyone) == nil)
        // The last step reaches the last account.
        try await world.waitForPush(to: 1_203)
        world.store.fail(1)
        let second = try world.messenger.pushes.make(PushContent(title: "b"))
        await #expect(throws: HermesError.self) { try await world.messenger.pushes.send(second, to: .everyone) }
        let heads = try await (1...1_203).asyncMap { try await world.store.position(of: user(Int32($0))).head }
        #expect(heads.allSatisfy { $0 == 1 })
        await world.messenger.shutdown()
    }

    @Test
    func `what an earlier process left behind is finished`() async throws {
        let world = try await World(accounts: 700)
        let push = try world.messenger.pushes.make(PushContent(title: "a"))
        let now = world.time.now()
        _ = try world.store.base.commit(
            [.push(.accept(PushJob(push: push, target: .everyone), claim: nil)), .push(.fanOut(push.id, limit: 500))],
            now: now
        )
        try await world.messenger.load()
        try await world.waitForPush(to: 700)
        let heads = try await (1...700).asyncMap { try await world.store.position(of: user(Int32($0))).head }
        #expect(heads.allSatisfy { $0 == 1 })
        await world.messenger.shutdown()
    }

    @Test(arguments: [true, false])
    func `a push for everyone is held back by a server that starts with its clock ahead`(
        _ isSetRight: Bool
    ) async throws {
        let world = try await World(accounts: 700)
        let push = try world.messenger.pushes.make(PushContent(title: "a"), expiresAfter: .seconds(600))
        _ = try world.store.base.commit(
            [.push(.accept(PushJob(push: push, target: .everyone), claim: nil)), .push(.fanOut(push.id, limit: 500))],
            now: world.time.now()
        )
        let later = await world.restart(ahead: .seconds(3_600))
        // The operations of pushes are committed in order, so the steps before this one have ended.
        func waitForSteps() async throws {
            let claim = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [9])
            _ = try await later.pushes.answer(to: claim)
        }
        func housekeeping() async throws {
            let isConfirmed = later.steadyTime.isConfirmed
            try await later.housekeeping(now: later.time.now(), isClockConfirmed: isConfirmed)
            try await waitForSteps()
        }
        try await later.load()
        try await waitForSteps()
        try await housekeeping()
        #expect(try await world.store.pushJobs() == [push.id])
        if isSetRight { world.time.jump(by: .seconds(-3_600)) } else { world.time.advance(by: .seconds(600)) }
        try await housekeeping()
        #expect(try await world.store.pushJobs() == [])
        let heads = try await (1...700).asyncMap { try await world.store.position(of: user(Int32($0))).head }
        #expect(heads.reduce(0, +) == (isSetRight ? 700 : 500) && heads.allSatisfy { $0 <= 1 })
        await later.shutdown()
    }

    @Test
    func `a server that starts with its clock ahead forgets no idempotency key of an earlier run`() async throws {
        let world = try await World(accounts: 1)
        let claim = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [9])
        let push = try world.messenger.pushes.make(PushContent(title: "a"))
        #expect(try await world.messenger.pushes.send(push, to: .users([user(1)]), claim: claim) == nil)
        let later = await world.restart(ahead: .seconds(25 * 3_600))
        #expect(try await later.pushes.send(push, to: .users([user(1)]), claim: claim) == [9])
        #expect(try await later.pushes.send(push, to: .everyone, claim: claim) == [9])
        #expect(try await later.pushes.begin(claim) == .before([9]))
        #expect(try await later.pushes.answer(to: claim) == [9])
        #expect(try await world.store.position(of: user(1)).head == 1)
        // From now on, the clock is confirmed.
        world.time.advance(by: .seconds(600))
        #expect(try await later.pushes.answer(to: claim) == nil)
        await later.shutdown()
    }

    @Test
    func `a push that is done is not repeated although the store could not record that it is`() async throws {
        let world = try await World(accounts: 1)
        let pushes = world.messenger.pushes
        let claim = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [9])
        let again = PushClaim(owner: "a", key: "k", contentHash: [1], answer: [8])
        let other = PushClaim(owner: "a", key: "k", contentHash: [2], answer: [7])
        #expect(try await pushes.begin(claim) == .now([9]))
        await pushes.end(claim, isDone: false)
        #expect(try await pushes.begin(again) == .now([9]), "an attempt whose end nobody knows")
        world.store.fail(1)
        await pushes.end(again, isDone: true)
        #expect(try await pushes.begin(again) == .before([9]))
        #expect(try await pushes.answer(to: again) == [9])
        #expect(await code { _ = try await pushes.begin(other) } == .clientIDConflict)
        #expect(await code { _ = try await pushes.answer(to: other) } == .clientIDConflict)

        try await world.messenger.housekeeping(now: world.time.now())
        // The operations of pushes are committed in order, so the record was stored before this is answered.
        let next = PushClaim(owner: "b", key: "k", contentHash: [1], answer: [])
        #expect(try await pushes.answer(to: next) == nil)
        let outcomes = try world.store.base.commit([.push(.find(again))], now: world.time.now())
        guard case .pushed(let found)? = outcomes.first else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(found.firstAnswer == [9])
        #expect(try await pushes.begin(again) == .before([9]))
        await world.messenger.shutdown()
    }

    @Test
    func `a step that fails is done again by housekeeping`() async throws {
        let world = try await World(accounts: 3)
        let push = try world.messenger.pushes.make(PushContent(title: "a"))
        _ = try world.store.base.commit(
            [.push(.accept(PushJob(push: push, target: .everyone), claim: nil))],
            now: world.time.now()
        )
        world.store.fail(1)
        try await world.messenger.load()
        while world.store.batches.isEmpty { await Task.yield() }
        while try await world.store.position(of: user(3)).head == 0 {
            try await world.messenger.housekeeping(now: world.time.now())
            await Task.yield()
        }
        #expect(try await world.store.position(of: user(1)).head == 1)
        await world.messenger.shutdown()
    }

    @Test
    func `a push that says nothing, too much or expires before it is sent is refused`() async throws {
        let world = try await World(accounts: 1)
        let pushes = world.messenger.pushes
        let cases: [(PushContent, Duration?, HermesError.Code)] = [
            (PushContent(), nil, .invalidArgument),
            (PushContent(title: String(repeating: "ä", count: 257)), nil, .tooLarge),
            (PushContent(body: String(repeating: "ä", count: 4_097)), nil, .tooLarge),
            (PushContent(dataJSON: String(repeating: " ", count: 16_385)), nil, .tooLarge),
            (PushContent(title: "a", collapseKey: "a b"), nil, .invalidArgument),
            (PushContent(title: "a", collapseKey: String(repeating: "k", count: 65)), nil, .tooLarge),
            (PushContent(title: "a"), .zero, .invalidArgument),
        ]
        for (content, lifetime, code) in cases {
            let error = #expect(throws: HermesError.self) { try pushes.make(content, expiresAfter: lifetime) }
            #expect(error?.code == code)
        }
        let push = try pushes.make(PushContent(title: String(repeating: "ä", count: 256)))
        await #expect(throws: HermesError.self) { try await pushes.send(push, to: .users([])) }
        await world.messenger.shutdown()
    }
}

extension Sequence {
    fileprivate func asyncMap<Value>(_ transform: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}
