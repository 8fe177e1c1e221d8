// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Synchronization
import Testing

@testable import HermesCore

/// Wills in the record of three cores.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct ClusterWillTests {
    /// Does the work of the gateways of all cores for wills whose delay is over.
    private final class Publisher: Sendable {
        private let published = Mutex<[String: Int]>([:])

        func counts() -> [String: Int] { published.withLock { $0 } }

        /// - Parameter isCrash: whether the core vanishes before it has reported the publication to the record.
        func publish(_ will: PendingWill, of ledger: WillLedger, isCrash: Bool = false) {
            ledger.take(will, isLate: false) { [self] verdict in
                guard verdict == .publish else { return }
                published.withLock { $0[String(buffer: will.publication.payload), default: 0] += 1 }
                if let id = will.id, !isCrash { ledger.remove(id) }
            }
        }

        /// Publishes the wills that cores take over from cores that have gone.
        func inherit(_ world: ClusterWorld) throws {
            for core in world.cores {
                let ledger = try #require(core.wills)
                ledger.inherited.observe { [self] wills in for will in wills { publish(will.will, of: ledger) } }
            }
        }
    }

    private func will(_ text: String) throws -> PendingWill {
        PendingWill(
            publication: Publication(
                topic: try #require(TopicName("will")),
                payload: ByteBuffer(string: text),
                kind: Publication.plainKind
            ),
            givenAt: Timestamp(rawValue: 0),
            delay: .zero,
            source: .server,
            identity: ClientIdentity(clientID: text)
        )
    }

    private func give(_ text: String, to core: Int, of world: ClusterWorld) throws -> PendingWill {
        let key = SessionKey(owner: .anonymous, clientID: text)
        return try #require(world.cores[core].wills).give(try will(text), of: key, delay: .zero)
    }

    @Test(arguments: UInt64(0)..<30)
    func `each client that is gone has its will published, once unless a core vanishes meanwhile`(
        seed: UInt64
    ) async throws {
        var random = SplitMix(state: seed)
        let world = try await ClusterWorld(seed: seed, people: 1)
        let publisher = Publisher()
        try publisher.inherit(world)
        var connected: [(will: PendingWill, name: String, core: Int)] = []
        var gone: Set<String> = []
        var atVanishing: Set<String> = []
        let vanishing = Int.random(in: 0..<40, using: &random)
        for step in 0..<40 {
            let core = try #require(world.living.randomElement(using: &random))
            let ledger = try #require(world.cores[core].wills)
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                let will = try give("\(step)", to: core, of: world)
                connected.append((will, "\(step)", core))
            case 2:
                guard let index = connected.firstIndex(where: { $0.core == core }) else { continue }
                let client = connected.remove(at: index)
                if let id = client.will.id { ledger.remove(id) }
            default:
                guard let index = connected.firstIndex(where: { $0.core == core }) else { continue }
                let client = connected.remove(at: index)
                gone.insert(client.name)
                publisher.publish(client.will, of: ledger)
            }
            if Int.random(in: 0..<2, using: &random) == 0 { await world.cores[core].cluster?.work() }
            guard step == vanishing else { continue }
            await world.cores[core].cluster?.work()
            // One will is being published when the core vanishes.
            if let index = connected.firstIndex(where: { $0.core == core }) {
                let client = connected.remove(at: index)
                (_, _) = (gone.insert(client.name), atVanishing.insert(client.name))
                publisher.publish(client.will, of: ledger, isCrash: true)
                await world.cores[core].cluster?.work()
            }
            gone.formUnion(connected.filter { $0.core == core }.map(\.name))
            connected.removeAll { $0.core == core }
            try world.vanish(core)
        }
        for _ in 0..<14 { await world.pass() }
        let counts = publisher.counts()
        #expect(Set(counts.keys) == gone, "seed \(seed)")
        for (name, count) in counts {
            #expect(count == (atVanishing.contains(name) ? 2 : 1), "seed \(seed): \(name)")
        }
        let store = world.store
        #expect(try store.run { (state) throws(HermesError) in state.wills.count } == connected.count)
        await world.shutdown()
    }

    @Test
    func `a core that leaves hands on the wills that wait`() async throws {
        let world = try await ClusterWorld(people: 1)
        let publisher = Publisher()
        try publisher.inherit(world)
        let will = try give("late", to: 0, of: world)
        world.cores[0].wills?.wait(try #require(will.id), delay: .seconds(100))
        await world.cores[0].shutdown()
        for _ in 0..<3 { await world.pass(cores: [1, 2]) }
        #expect(publisher.counts() == ["late": 1])
        // The will belongs to another core now, so core 0 does not publish it.
        let ledger = try #require(world.cores[0].wills)
        publisher.publish(will, of: ledger)
        #expect(publisher.counts() == ["late": 1])
        await world.shutdown()
    }

    @Test
    func `what comes and goes between two writes is not written`() async throws {
        let world = try await ClusterWorld(people: 1)
        let ledger = try #require(world.cores[0].wills)
        for number in 0..<100 {
            let given = try give("\(number)", to: 0, of: world)
            ledger.remove(try #require(given.id))
        }
        #expect(ledger.takeChanges(.max).isEmpty)
        await world.shutdown()
    }

    @Test
    func `wills beyond the limit are known to their core alone, and are published there`() async throws {
        let world = try await ClusterWorld(people: 1)
        let publisher = Publisher()
        let payload = String(repeating: "x", count: 1 << 20)
        let wills = try (0..<32).map { try give("\($0)" + payload, to: 0, of: world) }
        #expect((15...16).contains(wills.count { $0.id != nil }))
        let ledger = try #require(world.cores[0].wills)
        for will in wills { publisher.publish(will, of: ledger) }
        await world.cores[0].cluster?.work()
        #expect(publisher.counts().count == wills.count)
        // There is room again.
        #expect(try give("x", to: 0, of: world).id != nil)
        await world.shutdown()
    }

    @Test
    func `a core that is removed publishes those of its wills that the record never had`() async throws {
        let world = try await ClusterWorld(people: 1)
        let publisher = Publisher()
        try publisher.inherit(world)
        let recorded = try give("recorded", to: 0, of: world)
        await world.cores[0].cluster?.work()
        // Core 0 is frozen until the other cores have removed it.
        for _ in 0..<10 { await world.pass(cores: [1, 2]) }
        #expect(publisher.counts() == ["recorded": 1])
        let ledger = try #require(world.cores[0].wills)
        publisher.publish(recorded, of: ledger)
        publisher.publish(try give("late", to: 0, of: world), of: ledger)
        await world.cores[0].cluster?.work()
        #expect(publisher.counts() == ["recorded": 1, "late": 1])
        await world.shutdown()
    }

    @Test
    func `a core that starts anew has its wills published by one that can`() async throws {
        let world = try await ClusterWorld(people: 1)
        let publisher = Publisher()
        try publisher.inherit(world)
        _ = try give("gone", to: 0, of: world)
        await world.cores[0].cluster?.work()
        try world.vanish(0)
        let node = try await world.store.join(try #require(NodeID(rawValue: 0)))
        let store = world.store
        let again = Messenger(
            accountStore: store,
            messageStore: store,
            socialStore: store,
            sessionStore: store,
            pushTokenStore: store,
            time: world.time,
            bus: world.network.bus(of: node),
            placeStore: store
        )
        // The hook for inherited wills has no observer yet.
        try await again.load()
        let ledger = try #require(again.wills)
        ledger.inherited.observe { wills in for will in wills { publisher.publish(will.will, of: ledger) } }
        for _ in 0..<3 {
            world.time.advance(by: .seconds(1))
            await again.cluster?.work()
        }
        #expect(publisher.counts() == ["gone": 1])
        await again.shutdown()
        await world.shutdown()
    }

    @Test
    func `a will of a disabled account is dropped, and one below a name that was lost leaves nothing`() async throws {
        let world = try await ClusterWorld(people: 2)
        let ledger = try #require(world.cores[0].wills)
        let verdicts = Mutex<[WillLedger.Verdict]>([])
        for number in [Int32(1), 2] {
            let account = try #require(try await world.store.find(.id(try user(number)))).account
            var identity = ClientIdentity(clientID: "client")
            identity.account = account.id
            identity.userName = account.nickName.key
            let given = ledger.give(
                try will("x").by(identity),
                of: SessionKey(owner: .account(account.id), clientID: "client"),
                delay: .zero
            )
            if number == 1 {
                try await world.cores[1].accounts.setDisabled(account.id, true)
            } else {
                var change = AccountChange()
                change.nickName = try NickName("another")
                _ = try await world.store.update(account.id, change)
            }
            ledger.take(given, isLate: true) { verdict in verdicts.withLock { $0.append(verdict) } }
            await world.cores[0].cluster?.work()
            ledger.remove(try #require(given.id))
        }
        #expect(verdicts.withLock { $0 } == [.drop, .publishLeavingNothing])
        await world.shutdown()
    }
}
