// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// Kept sessions of several cores over one store.
@Suite(.inTurns, .timeLimit(.minutes(5))) struct ClusterSessionTests {
    private static let lossy = MemoryNetwork.Faults(lost: 100, repeated: 0, unanswered: 0, maxDelayMilliseconds: 0)
    private static let options = SubscriptionOptions(qos: .atLeastOnce)

    /// Lets the cores work until they have sent, received and read everything.
    private func work(_ world: ClusterWorld) async {
        for _ in 0..<4 {
            world.network.settle()
            for index in world.living { await world.cores[index].cluster?.work() }
        }
        world.network.settle()
    }

    /// Waits until the condition is true, because the work of other threads takes a while. Returns false if the
    /// condition stays false.
    private func eventually(_ world: ClusterWorld, _ isTrue: () async throws -> Bool) async throws -> Bool {
        for _ in 0..<500 {
            if try await isTrue() { return true }
            try await Task.sleep(for: .milliseconds(10))
            await work(world)
        }
        return false
    }

    private func sessions(_ world: ClusterWorld, _ core: Int) -> DurableSessions { world.cores[core].durable }

    @discardableResult
    private func attach(
        _ clientID: String,
        clean: Bool = false,
        expiry: Duration? = .seconds(60),
        to core: Int,
        of world: ClusterWorld
    ) async throws -> (opening: DurableOpening, connection: RecordingConnection) {
        try await sessions(world, core).attached(clientID, clean: clean, expiry: expiry)
    }

    private func detach(
        _ id: DurableSessionID,
        _ connection: RecordingConnection,
        expiry: Duration? = .seconds(60),
        from core: Int,
        of world: ClusterWorld
    ) async {
        sessions(world, core).detach(id, connection, sentUpTo: 0, expiry: expiry)
        // Another thread commits the end of the connection.
        let node = sessions(world, core).shared.state.withLock { $0.node }
        for _ in 0..<1_000 {
            let session = try? await world.store.sessions().first { $0.id == id }
            guard let open = session?.place?.node, open == node else { break }
            try? await Task.sleep(for: .milliseconds(1))
        }
        await work(world)
    }

    /// Creates a session with this subscription. All cores then know the session.
    private func subscribed(
        _ clientID: String,
        to filter: String,
        on core: Int,
        of world: ClusterWorld
    ) async throws -> (id: DurableSessionID, connection: RecordingConnection) {
        let (opening, connection) = try await attach(clientID, to: core, of: world)
        try await sessions(world, core).subscribed(opening.id, filter, Self.options)
        await work(world)
        return (opening.id, connection)
    }

    private func housekeeping(_ world: ClusterWorld) async throws {
        for index in world.living { try await world.cores[index].housekeeping(now: world.time.now()) }
        await world.pass(.milliseconds(1))
        await work(world)
    }

    @Test func `what one core takes waits for a client that comes back to another`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, connection) = try await subscribed("sensor", to: "home/#", on: 0, of: world)
        await detach(id, connection, from: 0, of: world)
        try await sessions(world, 1).published("one", to: "home/a")
        try await sessions(world, 2).published("two", to: "home/b")
        let (opening, _) = try await attach("sensor", to: 2, of: world)
        #expect(opening.id == id && opening.isPresent && opening.head == 2)
        #expect(try await sessions(world, 2).waiting(id) == ["1:one", "2:two"])
        await world.shutdown()
    }

    @Test func `once a subscription is confirmed, no core misses a publication to it`() async throws {
        let world = try await ClusterWorld(people: 1)
        world.network.set(Self.lossy)
        let (opening, _) = try await attach("sensor", to: 0, of: world)
        try await sessions(world, 0).subscribed(opening.id, "home/#", Self.options)
        try await sessions(world, 1).published("one", to: "home/a")
        try await asking { completion in
            sessions(world, 0).unsubscribe(opening.id, ["home/#"]) { completion($0.result) }
        }
        try await sessions(world, 2).published("two", to: "home/a")
        #expect(try await sessions(world, 0).waiting(opening.id) == ["1:one"])
        await world.shutdown()
    }

    @Test func `subscriptions are confirmed in their order, whether a core answers or not`() async throws {
        let world = try await ClusterWorld(people: 1)
        world.network.set(.init(lost: 100, repeated: 0, unanswered: 100, maxDelayMilliseconds: 0))
        let (opening, _) = try await attach("sensor", to: 0, of: world)
        let order = Collector<Int>()
        for number in 0..<50 {
            let subscription = DurableSubscription(filter: "home/\(number)", options: Self.options)
            sessions(world, 0).subscribe(opening.id, [subscription]) { _ in order.add(number) }
        }
        #expect(await order.next(50) == Array(0..<50))
        await world.shutdown()
    }

    @Test func `a connection hears of what other cores have queued, also if the message is lost`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, connection) = try await subscribed("sensor", to: "home/#", on: 0, of: world)
        try await sessions(world, 1).published("one", to: "home/a")
        #expect(try await eventually(world) { connection.head == 1 })
        // A publication on the connection's own core is delivered at once, although the connection does not have the
        // one before it.
        try await sessions(world, 0).published("two", to: "home/a")
        #expect(await connection.deliveries.next(1).joined().map(\.summary) == ["2:two"])
        world.network.set(Self.lossy)
        try await sessions(world, 2).published("three", to: "home/a")
        await work(world)
        #expect(connection.head == 1)
        world.network.set(.none)
        await world.pass()
        #expect(try await eventually(world) { connection.head == 3 })
        #expect(try await sessions(world, 0).waiting(id) == ["1:one", "2:two", "3:three"])
        await world.shutdown()
    }

    @Test func `whoever comes to another core takes the session over, and the old end changes nothing`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, old) = try await subscribed("sensor", to: "home/#", on: 0, of: world)
        let (opening, new) = try await attach("sensor", to: 1, of: world)
        #expect(opening.id == id)
        await work(world)
        #expect(old.replacedCount == 1 && new.replacedCount == 0)
        // The session gets one publication before the old connection detaches, and one after that.
        try await sessions(world, 0).published("one", to: "home/a")
        sessions(world, 0).detach(id, old, sentUpTo: 0, expiry: .zero)
        try await sessions(world, 0).published("two", to: "home/a")
        await work(world)
        for _ in 0..<2 { await world.pass() }
        try await housekeeping(world)
        try await sessions(world, 2).published("three", to: "home/a")
        try await sessions(world, 0).published("four", to: "home/a")
        #expect(try await eventually(world) { new.head == 4 })
        #expect(new.replacedCount == 0 && old.replacedCount == 1)
        #expect(try await sessions(world, 1).waiting(id) == ["1:one", "2:two", "3:three", "4:four"])
        #expect(try await world.store.sessions().map(\.isOnline) == [true])
        await world.shutdown()
    }

    @Test func `a clean start on another core ends the session and its connection`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, old) = try await subscribed("sensor", to: "home/#", on: 0, of: world)
        let (opening, _) = try await attach("sensor", clean: true, expiry: .zero, to: 1, of: world)
        #expect(!opening.isPresent && !opening.isDurable)
        await work(world)
        #expect(old.replacedCount == 1)
        await detach(id, old, from: 0, of: world)
        for _ in 0..<2 { await world.pass() }
        #expect(try await world.store.sessions().isEmpty)
        let isGone = try await eventually(world) {
            world.cores.allSatisfy { $0.durable.statistics.sessions == 0 && !$0.durable.hasSubscriptions }
        }
        #expect(isGone)
        await world.shutdown()
    }

    @Test func `of two connections without a kept session, the later one stays`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (_, first) = try await attach("sensor", expiry: .zero, to: 0, of: world)
        world.time.advance(by: .milliseconds(1))
        let (_, second) = try await attach("sensor", expiry: .zero, to: 1, of: world)
        await work(world)
        #expect(first.replacedCount == 1 && second.replacedCount == 0)
        await world.shutdown()
    }

    @Test func `a client that starts clean is not replaced by the session that it had elsewhere`() async throws {
        let world = try await ClusterWorld(people: 1)
        world.network.set(Self.lossy)
        let (old, connection) = try await attach("sensor", to: 0, of: world)
        await detach(old.id, connection, from: 0, of: world)
        let (opening, new) = try await attach("sensor", clean: true, expiry: .zero, to: 1, of: world)
        #expect(!opening.isPresent)
        world.network.set(.none)
        for _ in 0..<3 { await world.pass() }
        #expect(try await eventually(world) { try await world.store.sessions().isEmpty })
        #expect(new.replacedCount == 0)
        #expect(try await eventually(world) { world.cores.allSatisfy { $0.durable.ids.isEmpty } })
        await world.shutdown()
    }

    @Test func `a client that comes back has all its subscriptions, although its core has missed some`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, ghost) = try await subscribed("sensor", to: "home/#", on: 0, of: world)
        world.network.set(.init(lost: 100, repeated: 0, unanswered: 100, maxDelayMilliseconds: 0))
        let (_, second) = try await attach("sensor", to: 1, of: world)
        try await sessions(world, 1).subscribed(id, "garden", Self.options)
        try await asking { completion in
            sessions(world, 1).unsubscribe(id, ["home/#"]) { completion($0.result) }
        }
        sessions(world, 1).detach(id, second, sentUpTo: 0, expiry: .seconds(60))
        sessions(world, 0).detach(id, ghost, sentUpTo: 0, expiry: .seconds(60))
        let (opening, _) = try await attach("sensor", to: 0, of: world)
        #expect(opening.subscriptions.map(\.filter) == ["garden"])
        try await sessions(world, 0).published("no", to: "home/a")
        try await sessions(world, 0).published("yes", to: "garden")
        #expect(try await sessions(world, 0).waiting(id) == ["1:yes"])
        await world.shutdown()
    }

    @Test func `while an old connection is there, its core does not miss new subscriptions`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, _) = try await subscribed("sensor", to: "home/#", on: 0, of: world)
        let (_, new) = try await attach("sensor", to: 1, of: world)
        try await sessions(world, 1).subscribed(id, "garden", Self.options)
        try await sessions(world, 0).published("one", to: "garden")
        #expect(try await eventually(world) { new.head == 1 })
        #expect(try await sessions(world, 1).waiting(id) == ["1:one"])
        await world.shutdown()
    }

    @Test func `a subscription is confirmed once the core of an old connection has left it`() async throws {
        let world = try await ClusterWorld(people: 1)
        for ghost in [Duration.seconds(60), .zero] {
            let (old, connection) = try await attach("sensor", expiry: ghost, to: 0, of: world)
            await work(world)
            world.time.advance(by: .milliseconds(1))
            let (new, second) = try await attach("sensor", clean: true, to: 1, of: world)
            #expect(new.id != old.id)
            let durable = sessions(world, 1)
            async let subscribed: Void = durable.subscribed(new.id, "garden", Self.options)
            // The gateway closes the old connection.
            _ = await connection.replacements.next(1)
            sessions(world, 0).detach(old.id, connection, sentUpTo: 0, expiry: ghost)
            try await subscribed
            try await sessions(world, 0).published("one", to: "garden")
            #expect(try await sessions(world, 1).waiting(new.id) == ["1:one"])
            let (end, last) = try await attach("sensor", clean: true, expiry: .zero, to: 2, of: world)
            sessions(world, 2).detach(end.id, last, sentUpTo: 0, expiry: .zero)
            await detach(new.id, second, from: 1, of: world)
            #expect(try await eventually(world) { try await world.store.sessions().isEmpty })
        }
        await world.shutdown()
    }

    @Test func `what a client has unsubscribed does not come back by what was read before`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, first) = try await subscribed("sensor", to: "home/#", on: 1, of: world)
        await detach(id, first, from: 1, of: world)
        // Core 0 reads the record.
        let durable = sessions(world, 0)
        durable.beginReading()
        let before = try await world.store.sessions(of: [id])
        let (_, connection) = try await attach("sensor", to: 0, of: world)
        try await asking { completion in durable.unsubscribe(id, ["home/#"]) { completion($0.result) } }
        #expect(durable.learn(before, of: [id]) == [id])
        durable.endReading()
        await detach(id, connection, from: 0, of: world)
        for core in world.cores { #expect(core.durable.statistics.filters == 0) }
        await world.shutdown()
    }

    @Test func `a clean start that failed does not end what is open elsewhere for its core`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, connection) = try await subscribed("sensor", to: "home/#", on: 1, of: world)
        try world.store.setCapacity(bytes: 0)
        await #expect(throws: HermesError.self) { try await attach("sensor", clean: true, to: 0, of: world) }
        try world.store.setCapacity(bytes: nil)
        for _ in 0..<3 {
            world.cores[0].durable.expire(now: world.time.now())
            await world.pass()
        }
        // By now, either the session was removed, or all cores know it.
        let isThere = try await eventually(world) {
            let isStored = try await !world.store.sessions().isEmpty
            return isStored ? sessions(world, 0).knows(id) : connection.replacedCount == 1
        }
        #expect(isThere)
        await world.shutdown()
    }

    @Test func `a full queue that another core knew of does not count once the client has read it`() async throws {
        let count = 5
        let store = MemoryStore(settings: StoreSettings(maxQueuedMessages: count))
        let world = try await ClusterWorld(people: 1, store: store)
        let (id, connection) = try await subscribed("sensor", to: "$share/workers/jobs", on: 0, of: world)
        await detach(id, connection, from: 0, of: world)
        for number in 0..<count { try await sessions(world, 1).published("\(number)", to: "jobs") }
        _ = try await attach("sensor", to: 2, of: world)
        await work(world)
        for _ in 0..<2 { await world.pass() }
        let waiting = try await sessions(world, 2).page(of: id, limit: count).publications.map(\.seq)
        sessions(world, 2).acknowledged(id, waiting)
        #expect(try await eventually(world) { try await world.store.sessions().map(\.queuedCount) == [0] })
        try await sessions(world, 2).published("next", to: "jobs")
        try await sessions(world, 1).published("last", to: "jobs")
        #expect(try await sessions(world, 1).waiting(id, after: UInt64(count) + 1) == ["\(count + 2):last"])
        await world.shutdown()
    }

    @Test func `what waits for a confirmation is completed once, whoever asks meanwhile`() async throws {
        let node = NodeIdentity(id: try #require(NodeID(rawValue: 0)), epoch: 1)
        let roster = ClusterRoster(node, bus: LoneNode(), time: ManualTime())
        roster.setPeers(NodeSet(try #require(NodeID(rawValue: 1))))
        let confirmations = Confirmations(roster)
        let completed = Collector<Int>()
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    for number in 0..<500 {
                        await withCheckedContinuation { done in
                            confirmations.wait(for: DurableSessionID(rawValue: 1)) { done.resume() }
                        }
                        completed.add(worker * 500 + number)
                    }
                }
            }
        }
        #expect(Set(await completed.next(4_000)).count == 4_000)
    }

    @Test func `subscriptions that end on one core end on all`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, connection) = try await subscribed("sensor", to: "home/#", on: 0, of: world)
        try await sessions(world, 0).subscribed(id, "garden", Self.options)
        try await asking { completion in
            sessions(world, 0).unsubscribe(id, ["home/#"]) { completion($0.result) }
        }
        await work(world)
        await detach(id, connection, from: 0, of: world)
        try await sessions(world, 1).published("no", to: "home/a")
        try await sessions(world, 1).published("yes", to: "garden")
        #expect(try await sessions(world, 1).waiting(id) == ["1:yes"])
        for core in world.cores { #expect(core.durable.statistics.filters == 1) }
        await world.shutdown()
    }

    @Test func `an expired session ends once, on all cores, and its shared messages go to another member`() async throws
    {
        let world = try await ClusterWorld(people: 1)
        let (one, first) = try await subscribed("one", to: "$share/workers/jobs", on: 1, of: world)
        let (two, second) = try await subscribed("two", to: "$share/workers/jobs", on: 2, of: world)
        await detach(one, first, expiry: .seconds(10), from: 1, of: world)
        await detach(two, second, expiry: .seconds(1_000), from: 2, of: world)
        for number in 0..<6 { try await sessions(world, number % 3).published("\(number)", to: "jobs") }
        let before = try await sessions(world, 0).waiting(one).count
        #expect(before > 0 && before < 6)
        for _ in 0..<15 { await world.pass() }
        for _ in 0..<3 { try await housekeeping(world) }
        #expect(try await eventually(world) { try await world.store.sessions().map(\.id) == [two] })
        let texts = try await sessions(world, 0).page(of: two).publications.map {
            String(buffer: $0.publication.payload)
        }
        #expect(texts.sorted() == ["0", "1", "2", "3", "4", "5"])
        #expect(try await eventually(world) { world.cores.allSatisfy { $0.durable.statistics.sessions == 1 } })
        await world.shutdown()
    }

    @Test func `a session that was opened again does not expire, although nobody heard of it`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, connection) = try await subscribed("sensor", to: "home/#", on: 1, of: world)
        await detach(id, connection, expiry: .seconds(5), from: 1, of: world)
        world.network.set(Self.lossy)
        let (opening, again) = try await attach("sensor", to: 2, of: world)
        #expect(opening.id == id)
        world.time.advance(by: .seconds(6))
        world.cores[0].durable.expire(now: world.time.now())
        // Core 0 does not know yet whether the session has ended.
        try await sessions(world, 0).published("one", to: "home/a")
        // The removal was refused, and core 0 learns the reason.
        #expect(try await eventually(world) { sessions(world, 0).isOpenElsewhere(id) })
        world.network.set(.none)
        for _ in 0..<3 { await world.pass() }
        #expect(again.replacedCount == 0)
        try await sessions(world, 0).published("two", to: "home/a")
        #expect(try await eventually(world) { again.head == 2 })
        #expect(try await sessions(world, 2).waiting(id) == ["1:one", "2:two"])
        await world.shutdown()
    }

    @Test func `a core that vanishes leaves its sessions to the others`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, _) = try await subscribed("sensor", to: "home/#", on: 0, of: world)
        let (other, _) = try await subscribed("brief", to: "home/#", on: 0, of: world)
        try await sessions(world, 0).published("sent", to: "home/a")
        try world.vanish(0)
        try await sessions(world, 1).published("later", to: "home/a")
        for _ in 0..<12 { await world.pass() }
        #expect(world.cores[1].cluster?.isOnDuty == true)
        let (opening, connection) = try await attach("sensor", to: 2, of: world)
        // It is not known which publications the client has received.
        #expect(opening.id == id && opening.sentUpTo == 2)
        #expect(try await sessions(world, 2).waiting(id) == ["1:sent", "2:later"])
        for _ in 0..<70 { await world.pass() }
        for _ in 0..<2 { try await housekeeping(world) }
        let isOther = try await eventually(world) { try await world.store.sessions().map(\.id) == [id] }
        #expect(isOther, "\(other) has expired")
        #expect(connection.replacedCount == 0)
        await world.shutdown()
    }

    @Test func `a core that starts leaves the sessions of others open, and has all subscriptions`() async throws {
        let world = try await ClusterWorld(people: 1)
        let (id, connection) = try await subscribed("sensor", to: "home/#", on: 0, of: world)
        let node = try await world.store.join(try #require(NodeID(rawValue: 3)))
        let late = Messenger(
            accountStore: world.store,
            messageStore: world.store,
            socialStore: world.store,
            sessionStore: world.store,
            pushTokenStore: world.store,
            time: world.time,
            bus: world.network.bus(of: node),
            placeStore: world.store
        )
        try await late.load()
        #expect(try await world.store.sessions().map(\.isOnline) == [true])
        try await late.durable.published("one", to: "home/a")
        #expect(try await eventually(world) { connection.head == 1 })
        #expect(try await sessions(world, 0).waiting(id) == ["1:one"])
        await late.shutdown()
        await world.shutdown()
    }

    @Test func `a core that was removed ends the connections of nameless clients, too`() async throws {
        let world = try await ClusterWorld(people: 1)
        let connection = RecordingConnection()
        let key = SessionKey(owner: .anonymous, clientID: "sensor")
        _ = try await asking { completion in
            sessions(world, 0).attach(
                key,
                clean: false,
                expiry: nil,
                attachment: connection,
                completion: completion
            )
        }
        for _ in 0..<10 { await world.pass(cores: [1, 2]) }
        await world.pass()
        #expect(connection.ends == [.shuttingDown])
        await world.shutdown()
    }
}

extension DurableSessions {
    fileprivate func isOpenElsewhere(_ id: DurableSessionID) -> Bool {
        shared.state.withLock { state in state.records[id].map { state.isOpenElsewhere($0) } ?? false }
    }
}
