// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// Kept sessions of several cores over one store.
@Suite(.timeLimit(.minutes(5))) struct ClusterSessionTests {
    private static let lossy = MemoryNetwork.Faults(lost: 100, repeated: 0, unanswered: 0, maxDelayMilliseconds: 0)
    private static let options = SubscriptionOptions(qos: .atLeastOnce)

    /// Until all cores have told, heard and read everything.
    private func work(_ world: ClusterWorld) async {
        for _ in 0..<4 {
            world.network.settle()
            for index in world.living { await world.cores[index].cluster?.work() }
        }
        world.network.settle()
    }

    /// Work of other threads ends in a while.
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
        await work(world)
    }

    /// A session with this subscription, known to all cores.
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
        // Its own core's publication comes by itself, although it knows only now of the one before.
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
        // Until it has left, others know of both.
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

    @Test func `an expired session ends once, on all cores, and its shared messages go to another member`() async throws {
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
        let texts = try await sessions(world, 0).page(of: two).publications.map { String(buffer: $0.publication.payload) }
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
        // Nobody knows yet whether it has ended.
        try await sessions(world, 0).published("one", to: "home/a")
        // It was refused, and learns why.
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
        // It is not known what the client has.
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
        let node = try await world.store.join(try #require(NodeID(rawValue: 3)), now: world.time.now())
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

    @Test(arguments: UInt64(0)..<40)
    func `whatever gets lost, clients that roam have every message in the end`(seed: UInt64) async throws {
        var run = try await SessionRun(seed: seed)
        try await run.play(steps: 60)
        try await run.finish()
        await run.world.shutdown()
    }
}

/// Clients with kept sessions use one core after the other, while all cores publish, the bus is bad, and one vanishes.
private struct SessionRun {
    private struct Client {
        let name: String
        let filter: String
        var core: Int?
        var id: DurableSessionID?
        var connection: RecordingConnection?
        /// Earlier connections that nobody has closed.
        var ghosts: [(core: Int, id: DurableSessionID, connection: RecordingConnection)] = []
        /// The last seq that was taken over the present connection.
        var upTo: UInt64 = 0
        var texts: [String] = []
        /// The head of the queue at the opening.
        var head: UInt64 = 0
        /// Whether it has the second subscription.
        var hasExtra = false
    }

    let world: ClusterWorld
    private let seed: UInt64
    private var random: SplitMix
    private var clients: [Client]
    private var published: [String: [String]] = [:]
    private var count = 0

    private static let faults = MemoryNetwork.Faults(
        lost: 20,
        repeated: 15,
        unanswered: 20,
        maxDelayMilliseconds: 1_500
    )

    /// Whether cores answer questions, so that each knows every subscription that is confirmed.
    private var answers: Bool { seed % 2 == 0 }

    init(seed: UInt64) async throws {
        self.seed = seed
        random = SplitMix(state: seed)
        world = try await ClusterWorld(seed: seed, people: 1)
        clients = ["a", "b", "c", "d"].map { Client(name: $0, filter: "\($0)/#") }
        for index in clients.indices {
            try await connect(index, to: index % 3)
            let id = try #require(clients[index].id)
            let options = SubscriptionOptions(qos: .atLeastOnce)
            try await world.cores[index % 3].durable.subscribed(id, clients[index].filter, options)
        }
        for _ in 0..<3 { try await world.settle() }
        var faults = Self.faults
        if answers { faults.unanswered = 0 }
        world.network.set(faults)
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func core() throws -> Int { try #require(world.living.randomElement(using: &random)) }

    private mutating func connect(_ index: Int, to core: Int) async throws {
        if let old = clients[index].connection, let place = clients[index].core, let id = clients[index].id {
            if place == core || chance(50) {
                disconnect(index)
            } else {
                clients[index].ghosts.append((place, id, old))
            }
        }
        closeGhosts(index, on: core)
        let (opening, connection) = try await world.cores[core].durable.attached(clients[index].name, expiry: nil)
        if let known = clients[index].id {
            #expect(opening.isPresent && opening.id == known, "seed \(seed): the session of \(index) is another one")
        }
        clients[index].id = opening.id
        clients[index].core = core
        clients[index].connection = connection
        clients[index].upTo = 0
        clients[index].head = opening.head
    }

    /// A core closes the old connection of its client by itself.
    private mutating func closeGhosts(_ index: Int, on core: Int? = nil) {
        for ghost in clients[index].ghosts where core == nil || ghost.core == core {
            world.cores[ghost.core].durable.detach(ghost.id, ghost.connection, sentUpTo: 0, expiry: nil)
        }
        clients[index].ghosts.removeAll { core == nil || $0.core == core }
    }

    private mutating func disconnect(_ index: Int) {
        guard let core = clients[index].core, let id = clients[index].id, let connection = clients[index].connection
        else { return }
        let upTo = clients[index].upTo
        world.cores[core].durable.detach(id, connection, sentUpTo: upTo, expiry: nil)
        (clients[index].core, clients[index].connection) = (nil, nil)
    }

    /// Takes what its core has told the connection of, and acknowledges a part.
    private mutating func pump(_ index: Int) async throws {
        for ghost in clients[index].ghosts where ghost.connection.replacedCount > 0 { closeGhosts(index, on: ghost.core) }
        guard let core = clients[index].core, let id = clients[index].id, let connection = clients[index].connection
        else { return }
        guard connection.replacedCount == 0, connection.ends.isEmpty else { return disconnect(index) }
        let page = try await world.cores[core].durable.page(of: id, after: clients[index].upTo, limit: 8)
        for queued in page.publications {
            clients[index].texts.append(String(buffer: queued.publication.payload))
            clients[index].upTo = queued.seq
        }
        let seqs = page.publications.map(\.seq).filter { _ in chance(70) }
        world.cores[core].durable.acknowledged(id, seqs)
    }

    private mutating func publish() async throws {
        let index = Int.random(in: 0..<clients.count, using: &random)
        let topic = clients[index].hasExtra && chance(50) ? "extra/\(clients[index].name)" : "\(clients[index].name)/x"
        try await publish(to: topic, of: index, on: try core())
    }

    private mutating func publish(to topic: String, of index: Int, on core: Int) async throws {
        count += 1
        let text = "\(clients[index].name)\(count)"
        try await world.cores[core].durable.published(text, to: topic)
        published[clients[index].name, default: []].append(text)
    }

    /// Subscribes to a second filter, or ends that.
    private mutating func toggle(_ index: Int) async throws {
        guard answers, let core = clients[index].core, let id = clients[index].id,
            clients[index].connection?.replacedCount == 0
        else { return }
        let durable = world.cores[core].durable
        let filter = "extra/\(clients[index].name)"
        clients[index].hasExtra.toggle()
        guard clients[index].hasExtra else {
            return try await asking { completion in
                durable.unsubscribe(id, [filter]) { completion($0.result) }
            }
        }
        try await durable.subscribed(id, filter, SubscriptionOptions(qos: .atLeastOnce))
    }

    mutating func play(steps: Int) async throws {
        let vanishing = chance(60) ? Int.random(in: 10..<steps, using: &random) : nil
        for step in 0..<steps {
            let index = Int.random(in: 0..<clients.count, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4: try await publish()
            case 4, 5: try await connect(index, to: try core())
            case 6: disconnect(index)
            case 7: try await pump(index)
            case 8: try await toggle(index)
            default: await world.pass(.milliseconds(Int.random(in: 1...2_000, using: &random)))
            }
            if step == vanishing { try vanish(try core()) }
        }
    }

    private mutating func vanish(_ core: Int) throws {
        try world.vanish(core)
        for index in clients.indices {
            clients[index].ghosts.removeAll { $0.core == core }
            if clients[index].core == core { (clients[index].core, clients[index].connection) = (nil, nil) }
        }
    }

    mutating func finish() async throws {
        world.network.set(.none)
        for _ in 0..<12 { await world.pass() }
        for index in clients.indices where clients[index].connection == nil {
            try await connect(index, to: try core())
        }
        // From now on each connection hears of everything.
        for _ in 0..<3 { await world.pass() }
        for index in clients.indices { try await pump(index) }
        for _ in 0..<3 { await world.pass() }
        for index in clients.indices where clients[index].connection == nil {
            try await connect(index, to: try core())
        }
        for index in clients.indices { closeGhosts(index) }
        for _ in 0..<3 { await world.pass() }
        try await expectTold()
        for core in world.living {
            for index in clients.indices { try await publish(to: "\(clients[index].name)/x", of: index, on: core) }
            for index in clients.indices where clients[index].hasExtra {
                try await publish(to: "extra/\(clients[index].name)", of: index, on: core)
            }
        }
        for _ in 0..<3 { await world.pass() }
        try await expectTold()
        for index in clients.indices {
            let client = clients[index]
            let connection = try #require(client.connection)
            #expect(connection.replacedCount == 0, "seed \(seed): the last connection of \(client.name) was replaced")
            while true {
                let before = clients[index].texts.count
                try await pump(index)
                if clients[index].texts.count == before { break }
            }
            let missing = Set(published[client.name] ?? []).subtracting(clients[index].texts)
            #expect(missing.isEmpty, "seed \(seed): \(client.name) lacks \(missing)")
        }
        let expected = Set(clients.map { $0.id })
        for core in world.living {
            let ids = world.cores[core].durable.ids
            #expect(Set(ids.map { Optional($0) }) == expected, "seed \(seed): core \(core) has other sessions")
            let filters = world.cores[core].durable.statistics.filters
            let wanted = clients.count + clients.count(where: \.hasExtra)
            #expect(filters == wanted, "seed \(seed): core \(core) has other subscriptions")
        }
    }

    /// Each connection was told how far its queue goes.
    private func expectTold() async throws {
        for client in clients {
            let connection = try #require(client.connection)
            let record = try #require(try await world.store.sessions().first { $0.id == client.id })
            func told() -> UInt64 {
                max(client.head, connection.head, connection.batches.joined().map(\.seq).max() ?? 0)
            }
            // Work of other threads ends in a while.
            for _ in 0..<100 where told() < record.head {
                try await Task.sleep(for: .milliseconds(10))
                await world.pass()
            }
            #expect(told() >= record.head, "seed \(seed): \(client.name) was not told of everything")
        }
    }
}

extension DurableSessions {
    fileprivate func isOpenElsewhere(_ id: DurableSessionID) -> Bool {
        shared.state.withLock { state in state.records[id].map { state.isOpenElsewhere($0) } ?? false }
    }
}
