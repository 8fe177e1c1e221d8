// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// Kept sessions on three cores, with clients that roam.
@Suite(.inTurns, .timeLimit(.minutes(5))) struct ClusterSessionModelTests {
    @Test(arguments: UInt64(0)..<40)
    func `whatever gets lost, clients that roam have every message in the end`(seed: UInt64) async throws {
        var run = try await SessionRun(seed: seed)
        try await run.play(steps: 60)
        try await run.finish()
        await run.world.shutdown()
    }
}

/// Clients with kept sessions use one core after the other, while all cores publish, the bus is unreliable, and one
/// core vanishes.
private struct SessionRun {
    private struct Client {
        let name: String
        let filter: String
        var core: Int?
        var id: DurableSessionID?
        var connection: RecordingConnection?
        /// Earlier connections that are not closed yet.
        var ghosts: [(core: Int, id: DurableSessionID, connection: RecordingConnection)] = []
        /// The last seq that the client received over the present connection.
        var upTo: UInt64 = 0
        var texts: [String] = []
        /// The newest seq of the queue when the session was opened.
        var head: UInt64 = 0
        /// Whether the client has the second subscription.
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

    /// Whether cores answer questions. If so, each core knows every confirmed subscription.
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

    /// Lets cores close the old connections of a client.
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

    /// Receives the publications that the core has reported to the connection, and acknowledges a part of them.
    private mutating func pump(_ index: Int) async throws {
        for ghost in clients[index].ghosts where ghost.connection.replacedCount > 0 {
            closeGhosts(index, on: ghost.core)
        }
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

    /// Subscribes to a second filter, or ends that subscription.
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
        // From now on, each connection is told about all publications.
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

    /// Expects that each connection was told the newest seq of its queue.
    private func expectTold() async throws {
        for client in clients {
            let connection = try #require(client.connection)
            let record = try #require(try await world.store.sessions().first { $0.id == client.id })
            func told() -> UInt64 {
                max(client.head, connection.head, connection.batches.joined().map(\.seq).max() ?? 0)
            }
            // The work of other threads ends after a while.
            for _ in 0..<100 where told() < record.head {
                try await Task.sleep(for: .milliseconds(10))
                await world.pass()
            }
            #expect(told() >= record.head, "seed \(seed): \(client.name) was not told of everything")
        }
    }
}
