// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// Pushes for which the sender, the device and the token are on different cores.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ClusterPushTests {
    private final class Sender: PushSender {
        private struct State {
            var texts: [String] = []
            var isHeld = false
            var held: [CheckedContinuation<Void, Never>] = []
        }

        private let state = Mutex(State())

        var sent: [String] { state.withLock { $0.texts } }

        /// Makes requests wait for their answers until ``answer()`` is called.
        func hold() { state.withLock { $0.isHeld = true } }

        func answer() {
            let held = state.withLock { state in
                state.isHeld = false
                defer { state.held = [] }
                return state.held
            }
            for one in held { one.resume() }
        }

        func send(_ delivery: PushDelivery) async -> PushSendOutcome {
            await withCheckedContinuation { continuation in
                let isHeld = state.withLock { state in
                    state.texts.append(delivery.notification.body)
                    if state.isHeld { state.held.append(continuation) }
                    return state.isHeld
                }
                if !isHeld { continuation.resume() }
            }
            return .delivered(id: "1")
        }
    }

    private struct World {
        let cluster: ClusterWorld
        let sender = Sender()
        let handOffs: [PushHandOff]

        init(seed: UInt64 = 1) async throws {
            cluster = try await ClusterWorld(seed: seed, people: 4)
            handOffs = cluster.cores.map { [sender, store = cluster.store] core in
                let handOff = PushHandOff(
                    core,
                    store: store,
                    accounts: store,
                    sender: sender,
                    text: { PushText(title: "", body: String(decoding: $0.content.bytes, as: UTF8.self)) }
                )
                handOff.observe(core.watch)
                return handOff
            }
        }

        func setToken(of number: Int32, by core: Int) async throws {
            let token = PushToken(stored: .apns, text: "token \(number)", appID: "")
            try await cluster.cores[core].pushTokens.set(token, of: principal(number))
        }

        /// Connects the second account's phone to core 1. The phone acknowledges a message that core 0 commits.
        func takeOnCore1(_ text: String) async throws {
            try await setToken(of: 2, by: 1)
            let attachment = try cluster.attach(2, to: 1)
            try await cluster.settle()
            try await cluster.send(text, from: principal(1), to: user(2), by: 0)
            try await cluster.settle()
            cluster.cores[1].inbox.acknowledge(attachment.principal, upTo: 1)
            try await cluster.settle()
        }

        /// Lets time pass, and lets the living cores send everything that is due.
        func wait(_ seconds: Int) async throws {
            for second in 0...seconds {
                if second > 0 { await cluster.pass() }
                for index in cluster.living { await look(index) }
            }
        }

        func look(_ index: Int) async {
            if handOffs[index].mustRecover { try? await handOffs[index].recover() }
            while true {
                let batch = handOffs[index].takeBatch()
                guard !batch.isEmpty else { return }
                await handOffs[index].look(at: batch)
            }
        }
    }

    @Test func `a sleeping phone gets one push, whichever core commits the message`() async throws {
        let world = try await World()
        try await world.setToken(of: 2, by: 1)
        try await world.cluster.settle()
        for core in 0..<3 {
            try await world.cluster.send("\(core)", from: principal(1), to: user(2), by: core)
            try await world.cluster.settle()
            try await world.wait(0)
            #expect(world.sender.sent == (0...core).map(String.init))
        }
        try await world.wait(30)
        #expect(world.sender.sent.count == 3)
        await world.cluster.shutdown()
    }

    @Test func `a phone that another core has is pushed to only if it does not acknowledge`() async throws {
        let world = try await World()
        try await world.takeOnCore1("taken")
        try await world.wait(15)
        #expect(world.sender.sent == [])
        try await world.cluster.send("not taken", from: principal(1), to: user(2), by: 0)
        try await world.cluster.settle()
        try await world.wait(5)
        #expect(world.sender.sent == [])
        try await world.wait(10)
        #expect(world.sender.sent == ["not taken"])
        await world.cluster.shutdown()
    }

    @Test func `each entry for a phone that another core has has its own deadline`() async throws {
        let world = try await World()
        try await world.takeOnCore1("1")
        try await world.wait(9)
        try await world.cluster.send("2", from: principal(1), to: user(2), by: 0)
        try await world.cluster.settle()
        try await world.wait(2)
        #expect(world.sender.sent == [])
        try await world.wait(8)
        #expect(world.sender.sent == ["2"])
        await world.cluster.shutdown()
    }

    @Test func `what a core commits before it hears of the token is pushed once messages pass again`() async throws {
        let world = try await World()
        world.cluster.network.set(.init(lost: 100, repeated: 0, unanswered: 100, maxDelayMilliseconds: 0))
        try await world.setToken(of: 2, by: 1)
        try await world.cluster.send("early", from: principal(1), to: user(2), by: 0)
        try await world.cluster.settle()
        world.cluster.network.set(.none)
        try await world.wait(15)
        #expect(world.sender.sent == ["early"])
        try await world.cluster.send("late", from: principal(1), to: user(2), by: 0)
        try await world.cluster.settle()
        try await world.wait(0)
        #expect(world.sender.sent == ["early", "late"])
        await world.cluster.shutdown()
    }

    @Test func `what a core had to push when it vanished is pushed by one of the others`() async throws {
        let world = try await World()
        for number: Int32 in 2...4 {
            try await world.setToken(of: number, by: 1)
            _ = try world.cluster.attach(number, to: 1)
        }
        try await world.cluster.settle()
        for number: Int32 in 2...4 {
            try await world.cluster.send("to \(number)", from: principal(1), to: user(number), by: 0)
        }
        try await world.cluster.settle()
        try world.cluster.vanish(0)
        try await world.wait(40)
        #expect(world.sender.sent.sorted() == ["to 2", "to 3", "to 4"])
        await world.cluster.shutdown()
    }

    @Test func `one core hands off for a phone, whoever commits`() async throws {
        let world = try await World()
        try await world.setToken(of: 2, by: 1)
        try await world.cluster.settle()
        try await world.cluster.send("one", from: principal(1), to: user(2), by: 0)
        try await world.cluster.send("two", from: principal(3), to: user(2), by: 1)
        try await world.cluster.send("three", from: principal(4), to: user(2), by: 2)
        try await world.cluster.settle()
        #expect(world.handOffs.map(\.waiting).sorted() == [0, 0, 1])
        try await world.wait(0)
        #expect(world.sender.sent.sorted() == ["one", "three", "two"])
        await world.cluster.shutdown()
    }

    @Test func `a core whose process is replaced at once leaves nothing unsent`() async throws {
        let world = try await World()
        for number: Int32 in 2...4 {
            try await world.setToken(of: number, by: 1)
            _ = try world.cluster.attach(number, to: 1)
        }
        try await world.cluster.settle()
        for number: Int32 in 2...4 {
            try await world.cluster.send("to \(number)", from: principal(1), to: user(number), by: 0)
        }
        try await world.cluster.settle()
        try world.cluster.vanish(2)
        // The next process of core 2 joins the record before the other cores notice that the old process is gone.
        _ = try await world.cluster.store.join(try #require(NodeID(rawValue: 2)))
        try await world.wait(40)
        #expect(world.sender.sent.sorted() == ["to 2", "to 3", "to 4"])
        await world.cluster.shutdown()
    }

    @Test func `a token whose core vanished before it told the others is found in the record`() async throws {
        let world = try await World()
        world.cluster.network.set(.init(lost: 100, repeated: 0, unanswered: 100, maxDelayMilliseconds: 0))
        try await world.setToken(of: 2, by: 0)
        try world.cluster.vanish(0)
        world.cluster.network.set(.none)
        try await world.wait(25)
        try await world.cluster.send("late", from: principal(1), to: user(2), by: 1)
        try await world.cluster.settle()
        try await world.wait(0)
        #expect(world.sender.sent == ["late"])
        await world.cluster.shutdown()
    }

    @Test func `what one core alone commits before it hears of the token is pushed once it does`() async throws {
        let world = try await World()
        // The token and the hand-off of user 4 are on different cores from the sender.
        let (sender, owner) = (NodeSet(try node(0)), try node(1))
        #expect(world.cluster.cores[2].cluster?.owner(of: try user(4)) == owner)
        world.cluster.network.interrupt(try node(2), to: sender)
        try await world.setToken(of: 4, by: 2)
        try await world.wait(12)
        try await world.cluster.send("early", from: principal(1), to: user(4), by: 0)
        try await world.cluster.settle()
        try await world.wait(12)
        #expect(world.sender.sent == [])
        world.cluster.network.interrupt(try node(2), to: NodeSet())
        try await world.wait(15)
        #expect(world.sender.sent == ["early"])
        await world.cluster.shutdown()
    }

    @Test func `what a core commits while it does not miss yet whom another one misses is pushed`() async throws {
        let world = try await World()
        for number: Int32 in 2...4 {
            try await world.setToken(of: number, by: 1)
            _ = try world.cluster.attach(number, to: 1)
        }
        try await world.cluster.settle()
        try world.cluster.vanish(0)
        try await world.wait(7)
        for _ in 0..<2 { await world.cluster.pass(.milliseconds(1_500), cores: [1]) }
        await world.look(1)
        let three = try user(3)
        #expect(try world.cluster.cores[2].cluster?.owner(of: three) == node(0))
        #expect(try world.cluster.cores[1].cluster?.owner(of: three) == node(2))
        for number: Int32 in 2...4 {
            try await world.cluster.send("to \(number)", from: principal(1), to: user(number), by: 2)
        }
        try await world.wait(45)
        #expect(world.sender.sent.sorted() == ["to 2", "to 3", "to 4"])
        await world.cluster.shutdown()
    }

    @Test func `a push that waits for its answer is not sent by the core that takes the user over`() async throws {
        let world = try await World()
        let sleeper = try user(2)
        try await world.setToken(of: 2, by: 1)
        try await world.cluster.settle()
        #expect(world.cluster.cores[2].cluster?.owns(sleeper) == true)
        try await world.cluster.send("once", from: principal(1), to: sleeper, by: 2)
        try await world.cluster.settle()
        world.sender.hold()
        async let first: Void = world.look(2)
        while world.sender.sent.isEmpty { try await Task.sleep(for: .milliseconds(1)) }
        // A core vanishes, so another core now owns the user. The new owner derives the push from the store.
        try world.cluster.vanish(0)
        for _ in 0..<30 {
            await world.cluster.pass()
            await world.look(1)
        }
        #expect(world.cluster.cores[1].cluster?.owns(sleeper) == true && world.handOffs[1].waiting == 1)
        #expect(world.sender.sent == ["once"])
        world.sender.answer()
        await first
        try await world.wait(15)
        #expect(world.sender.sent == ["once"] && world.handOffs[1].waiting == 0)
        // No push stays claimed.
        try await world.cluster.send("twice", from: principal(1), to: sleeper, by: 2)
        try await world.cluster.settle()
        try await world.wait(15)
        #expect(world.sender.sent == ["once", "twice"])
        await world.cluster.shutdown()
    }

    @Test func `a device whose results could not be recorded is left to its new core once they are`() async throws {
        let world = try await World()
        let sleeper = try user(2)
        try await world.setToken(of: 2, by: 1)
        try await world.cluster.settle()
        try await world.cluster.send("once", from: principal(1), to: sleeper, by: 2)
        try await world.cluster.settle()
        try world.cluster.store.setCapacity(bytes: 0)
        await world.look(2)
        #expect(world.sender.sent == ["once"])
        // Another core owns the user by the time that the store has room again.
        try world.cluster.vanish(0)
        for _ in 0..<12 { await world.cluster.pass() }
        #expect(world.cluster.cores[1].cluster?.owns(sleeper) == true)
        try world.cluster.store.setCapacity(bytes: nil)
        try await world.wait(40)
        #expect(world.sender.sent == ["once"])
        try await world.cluster.send("twice", from: principal(1), to: sleeper, by: 1)
        try await world.cluster.settle()
        try await world.wait(5)
        #expect(world.sender.sent == ["once", "twice"])
        await world.cluster.shutdown()
    }

    private func node(_ number: UInt8) throws -> NodeID { try #require(NodeID(rawValue: number)) }

    @Test(arguments: UInt64(1)...10)
    func `with faults, the last message to each sleeping phone is pushed, and none twice`(seed: UInt64) async throws {
        let world = try await World(seed: seed)
        var random = SplitMix(state: seed)
        world.cluster.network.set(.init(lost: 20, repeated: 20, unanswered: 20, maxDelayMilliseconds: 1_500))
        for number: Int32 in 2...4 { try await world.setToken(of: number, by: Int.random(in: 0..<3, using: &random)) }
        var last: [Int32: String] = [:]
        for number in 0..<30 {
            let core = Int.random(in: 0..<3, using: &random)
            let peer = Int32.random(in: 2...4, using: &random)
            last[peer] = "\(number)"
            try await world.cluster.send("\(number)", from: principal(1), to: user(peer), by: core)
            try await world.cluster.settle()
            try await world.wait(Bool.random(using: &random) ? 12 : 0)
        }
        world.cluster.network.set(.none)
        try await world.wait(40)
        // The notification of the newest message may replace those of earlier messages of the conversation.
        #expect(Set(last.values).isSubset(of: world.sender.sent))
        #expect(Set(world.sender.sent).count == world.sender.sent.count)
        await world.cluster.shutdown()
    }
}
