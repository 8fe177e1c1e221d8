// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import NIOCore
import Testing

@testable import HermesSQLite

/// Rows of long queues are written to the permanent table at once. Rows of other queues are first written to the fresh
/// table. The difference must not be visible.
@Suite("Long queues", .inTurns)
struct LongQueueTests {
    private func rows(_ store: SQLiteStore, of id: DurableSessionID) async throws -> [String: Int] {
        try await store.pool.read { db in
            var counts: [String: Int] = [:]
            for (name, table) in [("fresh", "session_queue_fresh"), ("settled", "session_queue")] {
                let sql = "SELECT count(*) FROM \(table) WHERE session = ?"
                counts[name] = try Int.fetchOne(db, sql: sql, arguments: [id.rawValue])
            }
            return counts
        }
    }

    private func targets(_ ids: [DurableSessionID]) -> [PublicationTarget] {
        ids.map { PublicationTarget(session: $0, qos: .atLeastOnce) }
    }

    private func publish(_ world: SessionWorld, _ numbers: ClosedRange<Int>, _ ids: [DurableSessionID]) throws {
        // Publications of both kinds are queued: with a separate row, and within the queue's row.
        for number in numbers {
            try world.publish(world.publication("\(number)", topic: "t"), targets(ids))
        }
    }

    private func queue(_ store: SQLiteStore, _ id: DurableSessionID) async throws -> [String] {
        try await store.queued(of: id, after: 0, limit: 10_000, maxBytes: .max)
            .map { "\($0.seq) \(String(buffer: $0.publication.payload))" }
    }

    @Test
    func `a long queue is written once, and keeps its order as it grows and shrinks`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(sweepRows: 600)
        let world = SessionWorld(store)
        let ids = try ["long", "longer", "short"].map { try world.open($0, expiry: nil).id }
        try publish(world, 1...400, Array(ids[..<2]))
        try world.publish(world.publication("only", topic: "t"), targets([ids[2]]))
        try publish(world, 401...500, Array(ids[..<2]))
        // The sweep that begins after 600 rows has moved the rows.
        #expect(try await rows(store, of: ids[0]) == ["fresh": 0, "settled": 500])
        #expect(try await rows(store, of: ids[1]) == ["fresh": 0, "settled": 500])
        try publish(world, 501...505, [ids[0]])
        #expect(try await rows(store, of: ids[0]) == ["fresh": 0, "settled": 505])
        let wanted = (1...505).map { "\($0) \($0)" }
        #expect(try await queue(store, ids[0]) == wanted)
        #expect(try await queue(store, ids[1]) == Array(wanted[..<500]))

        try world.change(.completed(ids[0], Array(1...450)))
        try publish(world, 506...507, [ids[0]])
        #expect(try await rows(store, of: ids[0]) == ["fresh": 2, "settled": 55])
        #expect(try await queue(store, ids[0]) == (451...507).map { "\($0) \($0)" })
        try world.change(.completed(ids[0], Array(451...507)))
        try world.change(.completed(ids[1], Array(1...500)))
        #expect(try await store.sessions().map(\.queuedCount) == [0, 0, 1])
        let left = try await store.pool.read { db in
            try ["publication", "publication_refs"].map { try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)") }
        }
        #expect(left == [0, 0])
        try store.close()
    }

    @Test
    func `what is moved to a long queue stays behind what is there, and before what comes later`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(sweepRows: 300)
        let world = SessionWorld(store)
        let ids = try ["long", "other"].map { try world.open($0, expiry: nil).id }
        try publish(world, 1...400, [ids[0]])
        #expect(try await rows(store, of: ids[0])["fresh"] == 0)
        let share = PublicationTarget(session: ids[1], qos: .atLeastOnce, share: "$share/g/t")
        try world.publish(world.publication("moved", topic: "t"), [share])
        let moved = try #require(try await store.queued(of: ids[1], after: 0, limit: 1, maxBytes: .max).first)
        let heir = PublicationTarget(session: ids[0], qos: .atLeastOnce, share: "$share/g/t")
        _ = try world.commit(.move(QueueMove(from: ids[1], [QueueMove.Item(moved, to: heir)])))
        try publish(world, 402...410, [ids[0]])
        let wanted = (1...410).map { $0 == 401 ? "401 moved" : "\($0) \($0)" }
        #expect(try await queue(store, ids[0]) == wanted)
        try store.close()
    }

    @Test
    func `so few sessions have this, and those that ended make room`() {
        var long = LongQueues()
        for number in 1...100 { long.grew(DurableSessionID(rawValue: Int64(number)), to: LongQueues.startRows) }
        long.swept(from: .min, upTo: 10)
        long.swept(from: 10, upTo: .max)
        func count() -> Int { (1...200).count { long.takes(DurableSessionID(rawValue: Int64($0))) } }
        #expect(count() == LongQueues.maxSessions)
        long.forget(DurableSessionID(rawValue: 1))
        long.lessened(DurableSessionID(rawValue: 2), to: LongQueues.endRows - 1)
        long.lessened(DurableSessionID(rawValue: 3), to: LongQueues.endRows)
        #expect(count() == LongQueues.maxSessions - 2)
        for number in 101...200 { long.grew(DurableSessionID(rawValue: Int64(number)), to: LongQueues.startRows) }
        #expect(count() == LongQueues.maxSessions - 2)
        long.swept(from: .min, upTo: .max)
        #expect(count() == LongQueues.maxSessions)
        // Queues that have received nothing for a long time are dropped.
        long.swept(from: .min, upTo: .max)
        #expect(count() == 2)
    }

    @Test
    func `a commit that fails, and all that removes rows, leave long queues in order`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(sweepRows: 300)
        let world = SessionWorld(store)
        let ids = try ["failing", "expiring", "ending"].map { try world.open($0, expiry: nil).id }
        let soon = PublicationDetails(expiresAt: StoreWorld.later(.seconds(1)))
        let identified = ids.map { PublicationTarget(session: $0, qos: .atLeastOnce, identifiers: [7]) }
        for number in 1...400 {
            let details = number % 10 == 0 ? soon : nil
            try world.publish(world.publication("\(number)", topic: "t", details), identified)
        }
        for id in ids { #expect(try await rows(store, of: id)["settled"] ?? 0 > 300) }

        try store.limitSize(pages: 1)
        var failures = 0
        for number in 0..<200 where failures < 3 {
            let long = world.publication("failed \(number)" + String(repeating: "x", count: 5_000), topic: "t")
            do {
                try world.publish(long, Array(identified[..<1]))
                try world.change(.completed(ids[0], Array(1...2_000)))
            } catch { failures += 1 }
        }
        #expect(failures == 3)
        try store.limitSize(pages: 1_000_000)
        try world.change(.completed(ids[0], Array(1...2_000)))
        let head = try await store.sessions()[0].head
        try publish(world, 1...700, [ids[0]])
        #expect(try await queue(store, ids[0]) == (1...700).map { "\(head + UInt64($0)) \($0)" })

        try await world.purge(at: StoreWorld.later(.seconds(2)), limit: 50)
        try publish(world, 401...402, [ids[1]])
        let alive = (1...402).filter { $0 % 10 > 0 || $0 > 400 }
        #expect(try await queue(store, ids[1]) == alive.map { "\($0) \($0)" })
        let identifiers = try await store.queued(of: ids[1], after: 0, limit: 1, maxBytes: .max).map(\.identifiers)
        #expect(identifiers == [[7]])

        let again = try world.open("ending", clean: true, expiry: nil).id
        try publish(world, 1...2, [again])
        try await world.purge(at: StoreWorld.later(.seconds(2)))
        #expect(try await queue(store, again) == ["1 1", "2 2"])
        #expect(try await rows(store, of: ids[2]) == ["fresh": 0, "settled": 0])
        try store.close()
    }

    /// Compares long queues, in batches that end at any point, with the store in memory.
    @Test(arguments: [1, 2, 3, 4, 5, 6])
    func `the stores keep the same, whatever happens to long queues`(_ seed: UInt64) async throws {
        var random = SplitMix(state: seed)
        let directory = try TemporaryDirectory()
        var sqlite = try directory.openStore(sweepRows: 400)
        let memory = MemoryStore()
        let now = StoreWorld.now
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        var heads: [UInt64] = Array(repeating: 0, count: 6)
        func apply(_ batch: [SessionOperation]) throws {
            let expected = try memory.commit(batch, now: now).map { "\($0)" }
            #expect(try sqlite.commit(batch, now: now).map { "\($0)" } == expected)
        }
        for client in 1...6 {
            try apply([.open(SessionKey(owner: .anonymous, clientID: "c\(client)"), clean: false, expiry: nil)])
        }
        func id(_ index: Int) -> DurableSessionID { DurableSessionID(rawValue: Int64(index + 1)) }
        for round in 0..<150 {
            var batch: [SessionOperation] = []
            switch number(0...9) {
            case 0...6:
                let first = number(0...5)
                let sessions = Array(Set([first, number(0...5), number(0...5)])).sorted()
                for _ in 0..<number(1...60) {
                    let chosen = number(0...3) == 0 ? [first] : sessions
                    let targets = chosen.map { session in
                        heads[session] += 1
                        let share = number(0...30) == 0 ? "$share/g/t" : nil
                        return PublicationTarget(session: id(session), qos: .atLeastOnce, share: share)
                    }
                    let text = "\(heads)" + (number(0...20) == 0 ? String(repeating: "x", count: 800) : "")
                    let publication = SessionWorld.publication(text, topic: "t")
                    batch.append(.publish(publication, targets: targets, received: nil, retains: false))
                }
            case 7, 8:
                let session = number(0...5)
                let newest = Int(heads[session])
                guard newest > 0 else { continue }
                let most = number(0...3) == 0 ? newest : min(newest, number(1...600))
                batch.append(.completed(id(session), (1...most).map { UInt64($0) }))
            default:
                let (from, to) = (number(0...5), number(0...5))
                guard from != to, heads[from] > 0 else { continue }
                let queued = QueuedPublication(
                    seq: UInt64(number(1...Int(heads[from]))),
                    qos: .atLeastOnce,
                    identifiers: [],
                    retain: false,
                    publication: SessionWorld.publication("", topic: "t")
                )
                let heir = PublicationTarget(session: id(to), qos: .atLeastOnce, share: "$share/g/t")
                let move = QueueMove(from: id(from), [QueueMove.Item(queued, to: heir)])
                guard case .moved(let outcomes, _) = try memory.commit([.move(move)], now: now).first,
                    case .moved(let found, _) = try sqlite.commit([.move(move)], now: now).first
                else { throw ConformanceFailure(description: "not moved") }
                #expect("\(outcomes)" == "\(found)")
                if case .queued = outcomes.first { heads[to] += 1 }
            }
            try apply(batch)
            if round % 50 == 49 {
                try sqlite.close()
                sqlite = try directory.openStore(sweepRows: 400)
            }
            guard round % 10 == 9 else { continue }
            for session in 0..<6 {
                let wanted = try await memory.queued(of: id(session), after: 0, limit: 100_000, maxBytes: .max)
                let found = try await sqlite.queued(of: id(session), after: 0, limit: 100_000, maxBytes: .max)
                #expect(found.map(describe) == wanted.map(describe))
            }
        }
        try sqlite.close()
    }

    private func describe(_ queued: QueuedPublication) -> String {
        "\(queued.seq) \(queued.share ?? "") \(String(buffer: queued.publication.payload))"
    }
}
