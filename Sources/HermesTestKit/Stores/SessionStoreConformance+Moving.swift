// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import NIOCore

/// The cases for moving publications of shared subscriptions from one queue to another.
extension SessionStoreConformance {
    private static let share = "$share/g/t"

    private static func target(_ id: DurableSessionID, isShared: Bool = true) -> PublicationTarget {
        PublicationTarget(session: id, qos: .atLeastOnce, share: isShared ? share : nil)
    }

    private static func move(_ world: SessionWorld, _ move: QueueMove) throws -> ([QueueMove.Outcome], Bool) {
        guard case .moved(let outcomes, let hasEnded) = try world.commit(.move(move)) else {
            throw ConformanceFailure(description: "nothing was moved")
        }
        return (outcomes, hasEnded)
    }

    private static func shared(_ world: SessionWorld, _ id: DurableSessionID) async throws -> QueuePage {
        try await world.store.shared(of: id, after: 0, limit: 1000, maxBytes: .max)
    }

    static let moving = [
        ConformanceCase("What came by a shared subscription is found by itself, page by page") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let id = try world.open("a").id
            for number in 1...9 {
                try world.publish(world.publication("\(number)"), [target(id, isShared: number % 3 == 0)])
            }
            try expectEqual(try await shared(world, id).map(\.seq), [3, 6, 9])
            try expectEqual(try await shared(world, id).map(\.share), [share, share, share])
            let page = try await world.store.shared(of: id, after: 3, limit: 1, maxBytes: .max)
            try expectEqual(page.map(\.seq), [6])
            let all = try await world.store.queued(of: id, after: 0, limit: 100, maxBytes: .max)
            try expectEqual(all.filter { $0.share != nil }.map(\.seq), [3, 6, 9])
        },
        ConformanceCase("A moved publication is as it was, at the end of the other queue") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b", "c"].map { try world.open($0).id }
            var expected: [StoredPublication] = []
            for (index, size) in [0, 600, 5000, 100_000].enumerated() {
                let publication = StoredPublication(
                    topic: world.topic("a/ä"),
                    payload: ByteBuffer(repeating: UInt8(index), count: size),
                    qos: .exactlyOnce,
                    retain: index == 1,
                    details: PublicationDetails(expiresAt: StoreWorld.later(.seconds(9)), contentType: "text"),
                    publishedAt: StoreWorld.later(.seconds(index))
                )
                expected.append(publication)
                // Some publications are only in one queue; others share their content with another queue.
                let others = index % 2 == 0 ? [] : [target(ids[2], isShared: false)]
                try world.publish(publication, [target(ids[0])] + others)
            }
            try world.publish("own", to: [ids[1]])
            let items = try await shared(world, ids[0]).map { queued in
                QueueMove.Item(
                    queued,
                    to: PublicationTarget(
                        session: ids[1],
                        qos: .exactlyOnce,
                        identifiers: [7],
                        retain: true,
                        share: share
                    )
                )
            }
            let (outcomes, hasEnded) = try move(world, QueueMove(from: ids[0], items))
            try expectEqual(outcomes, (2...5).map { .queued($0) })
            try expect(!hasEnded)
            try expectEqual(try await world.queue(ids[0]), [])
            let found = try await shared(world, ids[1])
            try expectEqual(found.map(\.seq), [2, 3, 4, 5])
            for (queued, publication) in zip(found, expected) {
                try expectSame(queued.publication, publication)
                try expect(queued.qos == .exactlyOnce && queued.identifiers == [7] && queued.retain)
            }
            try expectEqual(try await world.queue(ids[2]).count, 2, "what others share stays")
            let stored = try await world.store.sessions().sorted { $0.id < $1.id }
            try expectEqual(stored.map(\.queuedCount), [0, 5, 2])
            try expectEqual(stored[0].queuedBytes, 0)
            let added = 4 + share.utf8.count
            let weight = expected.reduce(0) { $0 + $1.weight + added } + world.publication("own").weight
            try expectEqual(stored[1].queuedBytes, weight)
            try world.change(.completed(ids[1], [1, 2, 3, 4, 5]))
            try expectEqual(try world.publish("next", to: ids), [5, 6, 3])
        },
        ConformanceCase("What cannot be moved stays, what nobody queues is taken out") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings(maxQueuedMessages: 3)))
            let ids = try ["a", "b"].map { try world.open($0).id }
            for text in ["1", "2", "3"] { try world.publish(world.publication(text), [target(ids[0])]) }
            for text in ["x", "y"] { try world.publish(text, to: [ids[1]]) }
            let queued = try await shared(world, ids[0])
            try world.change(.completed(ids[0], [3]))
            let stranger = DurableSessionID(rawValue: 999)
            let items = [
                QueueMove.Item(queued[0], to: target(stranger)), QueueMove.Item(queued[0], to: target(ids[1])),
                QueueMove.Item(queued[1], to: target(ids[1])), QueueMove.Item(queued[1], to: nil),
                QueueMove.Item(queued[1], to: nil), QueueMove.Item(queued[2], to: target(ids[1])),
            ]
            let (outcomes, _) = try move(world, QueueMove(from: ids[0], items, endsBehind: 3))
            try expectEqual(outcomes, [.stays, .queued(3), .stays, .takenOut, .gone, .gone])
            try expectEqual(try await world.queue(ids[0]), [])
            try expectEqual(try await world.queue(ids[1]), ["1:x", "2:y", "3:1"])
            try expectEqual(try await world.store.sessions().count, 2, "something stayed")
            guard case .refused = try world.commit(.move(QueueMove(from: stranger, []))) else {
                throw ConformanceFailure(description: "a session that is not there")
            }
        },
        ConformanceCase("A session ends with the last of what others are to have, and not before") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b"].map { try world.open($0).id }
            try world.publish("own", to: [ids[0]])
            for text in ["1", "2"] { try world.publish(world.publication(text), [target(ids[0])]) }
            let queued = try await shared(world, ids[0])
            let first = QueueMove(from: ids[0], [QueueMove.Item(queued[0], to: target(ids[1]))], endsBehind: 2)
            try expect(try move(world, first).1 == false)
            try expectEqual(try await world.queue(ids[0]), ["1:own", "3:2"])
            let last = QueueMove(from: ids[0], [QueueMove.Item(queued[1], to: target(ids[1]))], endsBehind: 3)
            try expect(try move(world, last).1)
            try await world.purge(at: StoreWorld.now)
            try expectEqual(try await world.store.sessions().map(\.id), [ids[1]])
            try expectEqual(try await world.queue(ids[1]), ["1:1", "2:2"])
        },
        ConformanceCase("What was sent keeps its time, which counts again where it is moved to") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b"].map { try world.open($0).id }
            let soon = PublicationDetails(expiresAt: StoreWorld.later(.seconds(1)))
            for text in ["1", "2"] { try world.publish(world.publication(text, topic: "t", soon), [target(ids[0])]) }
            try world.change(.close(ids[0], sentUpTo: 2, expiresAt: nil))
            let late = StoreWorld.later(.seconds(2))
            try await world.purge(at: late)
            let queued = try await shared(world, ids[0])
            try expectEqual(queued.map(\.publication.details?.expiresAt), [soon.expiresAt, soon.expiresAt])
            let item = QueueMove.Item(queued[0], to: target(ids[1]))
            try expectEqual(try move(world, QueueMove(from: ids[0], [item])).0, [.queued(1)])
            let moved = try await shared(world, ids[1])
            try expectEqual(moved.map(\.publication.details?.expiresAt), [soon.expiresAt])
            try await world.purge(at: late)
            try expectEqual(try await world.queue(ids[0]), ["2:2"])
            try expectEqual(try await world.queue(ids[1]), [])
        },
        ConformanceCase("Nothing is taken from a session that is connected, if that is the condition") { makeStore in
            let world = SessionWorld(try await makeStore(StoreSettings()))
            let ids = try ["a", "b"].map { try world.open($0).id }
            try world.publish(world.publication("1"), [target(ids[0])])
            let items = try await shared(world, ids[0]).map { QueueMove.Item($0, to: target(ids[1])) }
            let condition = QueueMove(from: ids[0], items, condition: .isOffline)
            try expectEqual(try move(world, condition).0, [.stays])
            try world.change(.close(ids[0], sentUpTo: 0, expiresAt: nil))
            try expectEqual(try move(world, condition).0, [.queued(1)])
        },
    ]
}
