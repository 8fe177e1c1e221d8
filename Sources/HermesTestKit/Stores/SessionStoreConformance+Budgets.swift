// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// The cases for the limits of all sessions' queues, in total and by owner.
extension SessionStoreConformance {
    /// Queues publications of one byte, and returns how many of them had room.
    private static func flood(_ world: SessionWorld, _ id: DurableSessionID, _ count: Int = 100) throws -> Int {
        var taken = 0
        for _ in 0..<count where try world.publish("x", to: [id]) != [0] { taken += 1 }
        return taken
    }

    private static func expectCounted(_ world: SessionWorld, _ comment: String = "") async throws {
        let sessions = try await world.store.sessions()
        let waiting = sessions.reduce(into: Holding()) { sum, session in
            sum += Holding(entries: session.queuedCount, bytes: session.queuedBytes)
        }
        try expectEqual(world.store.queues.statistics.used, waiting, comment)
    }

    static let budgets = [
        ConformanceCase("Accounts and addresses without one have each their share of the queues") { makeStore in
            let limit = SharedLimit(1_000, perAccount: 8, perAddress: 4)
            let world = SessionWorld(try await makeStore(StoreSettings(queuedMessages: limit)))
            let flooder = try world.open("flooder", owner: .anonymous, from: "2001:db8::1").id
            let neighbour = try world.open("neighbour", owner: .anonymous, from: "2001:db8::ffff:2").id
            let stranger = try world.open("stranger", owner: .anonymous, from: "2001:db8:0:1::1").id
            let phone = try world.open("phone").id
            let tablet = try world.open("tablet").id
            let bob = try world.open("phone", owner: .subject("bob")).id
            try expectEqual(try flood(world, flooder), 4)
            try expectEqual(try flood(world, neighbour), 0, "of the same network")
            try expectEqual(try flood(world, phone), 8)
            try expectEqual(try flood(world, tablet), 0, "of the same account")
            try expectEqual(try flood(world, stranger, 4), 4)
            try expectEqual(try flood(world, bob, 8), 8)
            try expectEqual(world.store.queues.statistics.refused, 96 + 100 + 92 + 100)
            // A publication that leaves a queue makes room, no matter how it leaves.
            try world.change(.completed(flooder, [1]))
            try expectEqual(try flood(world, neighbour), 1)
            try world.change(.remove(flooder))
            try expectEqual(try flood(world, neighbour), 3)
            try await expectCounted(world)
        },
        ConformanceCase("The queues of all have a bound, and nobody can use it up for others") { makeStore in
            let one = SessionWorld(try await makeStore(StoreSettings())).publication("x").weight
            let settings = StoreSettings(queuedBytes: SharedLimit(one * 64))
            let world = SessionWorld(try await makeStore(settings))
            let flooders = try (1...40).map { try world.open("\($0)", owner: .anonymous, from: "10.0.0.\($0)").id }
            let anonymous = try flooders.reduce(0) { $0 + (try flood(world, $1)) }
            try expect(anonymous <= 32, "those without account have half of it: \(anonymous)")
            let ann = try world.open("phone", owner: .subject("ann")).id
            try expectEqual(try flood(world, ann), 16, "as much as it leaves")
            try expectEqual(try flood(world, try world.open("phone", owner: .subject("bob")).id), 8, "the same")
            try expectEqual(try flood(world, try world.open("new", owner: .anonymous, from: "10.0.1.1").id), 0)
            try expectEqual(try flood(world, try world.open("phone", owner: .subject("eve")).id, 1), 1)
            try await expectCounted(world)
        },
        ConformanceCase("An owner whose share is full moves what waits to another queue of its own") {
            makeStore in
            let limit = SharedLimit(100, perAccount: 2)
            let world = SessionWorld(try await makeStore(StoreSettings(queuedMessages: limit)))
            let ids = try ["a", "b"].map { try world.open($0).id }
            let target = PublicationTarget(session: ids[0], qos: .atLeastOnce, share: "$share/g/t")
            for _ in 1...2 { try world.publish(world.publication("x"), [target]) }
            let items = try await world.store.shared(of: ids[0], after: 0, limit: 9, maxBytes: .max).map {
                QueueMove.Item($0, to: PublicationTarget(session: ids[1], qos: .atLeastOnce, share: "$share/g/t"))
            }
            guard case .moved(let outcomes, _) = try world.commit(.move(QueueMove(from: ids[0], items))) else {
                throw ConformanceFailure(description: "nothing was moved")
            }
            try expectEqual(outcomes, [.queued(1), .queued(2)])
            try await expectCounted(world)
        },
        ConformanceCase("What a session's subscriptions add to a publication counts, in a queue and in the next one") {
            makeStore in
            let one = SessionWorld(try await makeStore(StoreSettings())).publication("x").weight + 400
            let settings = StoreSettings(queuedBytes: SharedLimit(.max, perAccount: 10 * one))
            let world = SessionWorld(try await makeStore(settings))
            let identifiers = (1...100).map { UInt32($0) }
            let share = "$share/" + String(repeating: "g", count: 391) + "/t"
            for (owner, identifiers, share) in [(.subject("ann"), identifiers, nil), (.subject("bob"), [], share)]
                as [(SessionOwner, [UInt32], String?)]
            {
                let ids = try ["a", "b"].map { try world.open($0, owner: owner).id }
                let targets = ids.map {
                    PublicationTarget(session: $0, qos: .atLeastOnce, identifiers: identifiers, share: share)
                }
                var taken = 0
                for _ in 0..<20 where try world.publish(world.publication("x"), [targets[0]]) != [0] { taken += 1 }
                try expectEqual(taken, 10)
                try await expectCounted(world, owner.stored)
                // Without subscription identifiers, the publications take less room in the other session's queue.
                let queued = try await world.store.queued(of: ids[0], after: 0, limit: 2, maxBytes: .max)
                let other = PublicationTarget(session: ids[1], qos: .atLeastOnce, share: share)
                guard
                    case .moved(let outcomes, _) = try world.commit(
                        .move(QueueMove(from: ids[0], queued.map { QueueMove.Item($0, to: other) }))
                    )
                else { throw ConformanceFailure(description: "nothing was moved") }
                try expectEqual(outcomes, [.queued(1), .queued(2)])
                try await expectCounted(world, owner.stored)
                try world.change(.completed(ids[1], [1, 2]))
                for _ in 1...2 {
                    try expectEqual(try world.publish(world.publication("x"), [targets[0]]).contains(0), false)
                }
                try await expectCounted(world, owner.stored)
            }
        },
        ConformanceCase("Who retains is kept with what is retained") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            for (topic, source) in [("a", CommitSource.subject("ann")), ("b", CommitSource(host: "10.0.0.1"))] {
                var publication = world.publication("x", topic: topic)
                publication.source = source
                try world.change(.retain(publication))
            }
            let found = try await world.store.retained().sorted { $0.topic.rawValue < $1.topic.rawValue }
            try expectEqual(found.map(\.source), [.subject("ann"), CommitSource(host: "10.0.0.1")])
            _ = try world.open("s", owner: .anonymous, from: "10.0.0.1")
            try expectEqual(try await world.store.sessions().map(\.payer), [CommitSource(host: "10.0.0.1")])
        },
        ConformanceCase("Whatever is done, what waits is counted exactly") { makeStore in
            let settings = StoreSettings(
                maxQueuedMessages: 12,
                queuedMessages: SharedLimit(40, perAccount: 20, perAddress: 15)
            )
            let world = SessionWorld(try await makeStore(settings))
            var state: UInt64 = 16
            func random(_ bound: Int) -> Int {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return Int(state >> 33) % bound
            }
            var ids: [DurableSessionID] = []
            for step in 0..<600 {
                if ids.isEmpty || random(12) == 0 {
                    let isOwned = random(2) == 0
                    let id = try world.open(
                        "c\(random(6))",
                        owner: isOwned ? .subject("owner\(random(2))") : .anonymous,
                        clean: random(3) == 0,
                        from: isOwned ? nil : "10.0.0.\(random(2))"
                    ).id
                    if !ids.contains(id) { ids.append(id) }
                }
                let id = ids[random(ids.count)]
                switch random(9) {
                case 0: _ = try world.commit(.completed(id, (1...3).map { _ in UInt64(1 + random(30)) }))
                case 1: _ = try world.commit(.released(id, UInt64(1 + random(30))))
                case 2 where random(6) == 0: _ = try world.commit(.remove(id))
                case 3: try await world.purge(at: StoreWorld.later(.seconds(random(3))))
                case 4:
                    let items = try await world.store.queued(of: id, after: 0, limit: 3, maxBytes: .max).map {
                        let target = PublicationTarget(session: ids[random(ids.count)], qos: .atLeastOnce)
                        return QueueMove.Item($0, to: target.session == id ? nil : target)
                    }
                    _ = try world.commit(.move(QueueMove(from: id, items)))
                default:
                    let expiry = random(2) == 0 ? nil : PublicationDetails(expiresAt: StoreWorld.later(.seconds(1)))
                    let text = String(repeating: "x", count: random(1_500))
                    let targets = ids.filter { _ in random(2) == 0 }
                        .map { PublicationTarget(session: $0, qos: .exactlyOnce) }
                    try world.publish(world.publication(text, topic: "t", expiry), targets)
                }
                try await expectCounted(world, "step \(step)")
                try expect(world.store.queues.statistics.used.entries <= 40)
            }
        },
    ]
}
