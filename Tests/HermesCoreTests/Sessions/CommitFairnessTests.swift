// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// A client's publications do not wait for the flood of another client.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct CommitFairnessTests {
    private let store = FakeSessionStore()
    private let flooder = CommitSource(host: "10.0.0.1")
    private let other = CommitSource.subject("ann")

    private func sessions(_ limits: CommitLimits) -> DurableSessions {
        DurableSessions(store: store, time: ManualTime(), settings: DurableSettings(commit: limits))
    }

    private func publication(_ topic: String, bytes: Int = 100) throws -> StoredPublication {
        StoredPublication(
            topic: try #require(TopicName(topic)),
            payload: ByteBuffer(repeating: 1, count: bytes),
            qos: .atLeastOnce,
            retain: true,
            publishedAt: Timestamp(rawValue: 1)
        )
    }

    @Test func `another one's publication is in the next batch`() async throws {
        let sessions = sessions(CommitLimits(maxBatch: 10))
        store.close()
        for number in 0..<1000 { sessions.retain(try publication("f/\(number)"), source: flooder) }
        let results = Collector<Result<Void, HermesError>>()
        sessions.publish(try publication("mine"), targets: [], retains: true, source: other) { results.add($0) }
        // These are the commit that is under way, and the next commit.
        store.letThrough(2)
        _ = try await results.next(1).first?.get()
        #expect(store.commits.count <= 3)
        #expect(store.commits[1].count == 10)
        store.letThrough(1000)
        await sessions.shutdown()
    }

    @Test
    func `what comes during a transaction waits for that one, not for all that waited before it`() async throws {
        let sessions = sessions(CommitLimits(maxBatch: 400))
        store.close()
        store.cut(to: 20)
        for number in 0..<1000 { sessions.retain(try publication("f/\(number)"), source: flooder) }
        // These are at most one commit of a single operation, twenty commits of the first batch, and some of the next
        // batch.
        store.letThrough(24)
        while store.commits.count < 24 { await Task.yield() }
        let results = Collector<Result<Void, HermesError>>()
        sessions.retain(try publication("mine"), source: other) { results.add($0) }
        store.letThrough(1000)
        _ = try await results.next(1).first?.get()
        let place = store.commits.firstIndex { commit in
            commit.contains {
                if case .retain(let publication) = $0 { publication.topic.rawValue == "mine" } else { false }
            }
        }
        #expect(try #require(place) <= 24 + 2)
        await sessions.shutdown()
        #expect(store.commits.joined().count == 1001)
    }

    @Test func `who has much waiting is refused and nobody else`() async throws {
        let sessions = sessions(CommitLimits(maxWaiting: 800, maxWaitingBytes: 1 << 20, maxBatch: 10))
        store.close()
        let results = Collector<Result<Void, HermesError>>()
        for number in 0..<200 {
            sessions.retain(try publication("f/\(number)"), source: flooder) { results.add($0) }
        }
        // They are refused at once. The share of the source is 100, in addition to the operations that are under way.
        let refused = await results.next(90)
        #expect(refused.allSatisfy { if case .failure(let error) = $0 { error.code == .overloaded } else { false } })
        #expect(sessions.statistics.commits.waiting <= 110)
        let others = Collector<Result<Void, HermesError>>()
        sessions.retain(try publication("mine"), source: other) { others.add($0) }
        store.letThrough(1000)
        _ = try await others.next(1).first?.get()
        await sessions.shutdown()
    }

    @Test func `who has much waiting cannot prevent an urgent end of its subscriptions`() async throws {
        let sessions = sessions(CommitLimits(maxWaiting: 800, maxWaitingBytes: 1 << 20, maxBatch: 10))
        let key = SessionKey(owner: .subject("eve"), clientID: "x")
        let opened = try store.base.commit([.open(key, clean: true, expiry: nil)], now: Timestamp(rawValue: 1))
        guard case .opened(let session)? = opened.first else { throw HermesError(.internalError, "no session") }
        store.close()
        defer { store.letThrough(1000) }
        for number in 0..<200 { sessions.retain(try publication("f/\(number)"), source: flooder) }
        let ordinary = Collector<FilterChange>()
        sessions.unsubscribe(session.id, ["room/a"], source: flooder) { ordinary.add($0) }
        #expect(await ordinary.next(1).first?.error?.code == .overloaded)
        let urgent = Collector<FilterChange>()
        sessions.unsubscribe(session.id, ["room/a"], source: flooder, isUrgent: true) { urgent.add($0) }
        store.letThrough(1000)
        let change = try #require(await urgent.next(1).first)
        #expect(change.error == nil && change.done == 1)
        await sessions.shutdown()
    }

    @Test func `a transaction that takes only a part leaves the rest to the next`() async throws {
        let sessions = sessions(CommitLimits(acknowledgementDelay: .seconds(3600)))
        var ids: [DurableSessionID] = []
        for name in ["a", "b", "c"] {
            let opened = try store.base.commit(
                [.open(SessionKey(owner: .subject(name), clientID: "x"), clean: true, expiry: nil)],
                now: Timestamp(rawValue: 1)
            )
            guard case .opened(let session)? = opened.first else { continue }
            ids.append(session.id)
        }
        store.close()
        store.cut(to: 2)
        let results = Collector<Result<Void, HermesError>>()
        for id in ids { sessions.committer.complete(id, [1]) }
        for number in 0..<4 {
            sessions.retain(try publication("f/\(number)"), source: other) { results.add($0) }
        }
        store.letThrough(1000)
        for result in await results.next(4) { try result.get() }
        await sessions.shutdown()
        #expect(store.commits.allSatisfy { $0.count <= 2 })
        // Each publication is stored once, in order.
        let retained = store.commits.joined().compactMap { operation -> String? in
            guard case .retain(let publication) = operation else { return nil }
            return publication.topic.rawValue
        }
        #expect(retained == (0..<4).map { "f/\($0)" })
        #expect(store.commits.joined().count == 7)
        #expect(sessions.statistics.commits.waiting == 0)
    }

    @Test func `a batch is bounded by its bytes`() async throws {
        let sessions = sessions(CommitLimits(maxBatchBytes: 10_000))
        store.close()
        for number in 0..<30 { sessions.retain(try publication("f/\(number)", bytes: 2_000), source: flooder) }
        #expect(sessions.statistics.commits.waitingBytes > 60_000)
        store.letThrough(1000)
        await sessions.shutdown()
        #expect(store.commits.allSatisfy { $0.count <= 5 })
        #expect(store.commits.joined().count == 30)
    }
}
