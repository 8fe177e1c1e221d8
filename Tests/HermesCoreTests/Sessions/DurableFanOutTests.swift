// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// Publications to very many kept sessions. They are stored in parts, so that other clients do not wait for all parts.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DurableFanOutTests {
    private let store: FakeSessionStore
    private let flooder = CommitSource(host: "10.0.0.1")
    private let other = CommitSource.subject("bob")
    private static let many = 1_300
    private static let parts = (many + DurableFanOut.partRows - 1) / DurableFanOut.partRows

    /// Creates absent sessions. Each session has a separate owner, unless an owner is given.
    private func absent(_ count: Int, filter: String, owner: String? = nil) throws -> [DurableSessionID] {
        var ids: [DurableSessionID] = []
        let base = store.base
        let now = Timestamp(rawValue: 1)
        let opened = try base.commit(
            (0..<count).map { number in
                .open(
                    SessionKey(owner: .subject(owner ?? "\(filter) \(number)"), clientID: "\(number)"),
                    clean: false,
                    expiry: nil
                )
            },
            now: now
        )
        for case .opened(let session) in opened { ids.append(session.id) }
        let subscription = DurableSubscription(filter: filter, options: SubscriptionOptions(qos: .exactlyOnce))
        _ = try base.commit(ids.map { .subscribe($0, [subscription]) }, now: now)
        _ = try base.commit(ids.map { .close($0, sentUpTo: 0, expiresAt: nil) }, now: now)
        return ids
    }

    private func started() async throws -> DurableSessions {
        let sessions = DurableSessions(store: store, time: ManualTime())
        try await sessions.load()
        return sessions
    }

    private func publication(_ text: String, qos: QoS = .atLeastOnce) throws -> StoredPublication {
        StoredPublication(
            topic: try #require(TopicName("t")),
            payload: ByteBuffer(string: text),
            qos: qos,
            publishedAt: Timestamp(rawValue: 1)
        )
    }

    /// Returns the different contents of the queues, each with the number of queues that have this content.
    private func queues(_ ids: [DurableSessionID]) async throws -> [[String]: Int] {
        var found: [[String]: Int] = [:]
        for id in ids {
            let queue = try await store.queued(of: id, after: 0, limit: 100, maxBytes: .max)
            found[queue.map(\.summary), default: 0] += 1
        }
        return found
    }

    /// Returns the number of targets of each part, and the number of operations that were committed together with it.
    private func parts(since start: Int = 0) -> [(targets: Int, beside: Int)] {
        store.commits.dropFirst(start).compactMap { commit in
            let targets = commit.compactMap { operation -> Int? in
                guard case .publish(_, let targets, _, _) = operation, !targets.isEmpty else { return nil }
                return targets.count
            }
            return targets.isEmpty ? nil : (targets.reduce(0, +), commit.count - 1)
        }
    }

    private func code(_ body: () async throws -> Void) async -> HermesError.Code? {
        do {
            try await body()
            return nil
        } catch { return (error as? HermesError)?.code }
    }

    @Test func `others' commits come between the parts, and the publisher's own behind them`() async throws {
        let ids = try absent(Self.many, filter: "t")
        let sessions = try await started()
        let targets = sessions.targets(of: try #require(TopicName("t")))
        store.close()
        let results = Collector<String>()
        for text in ["a", "b"] {
            sessions.publish(try publication(text), targets: targets, source: flooder) { _ in results.add(text) }
        }
        sessions.publish(try publication("c"), targets: [], retains: true, source: flooder) { _ in results.add("c") }
        sessions.publish(try publication("mine"), targets: [], retains: true, source: other) { _ in
            results.add("mine")
        }
        // These are the part that is under way, and the batch with the next part.
        store.letThrough(2)
        #expect(await results.next(1) == ["mine"])
        #expect(store.commits.prefix(2).flatMap { $0 }.count <= 3)
        store.letThrough(1_000)
        #expect(await results.next(3) == ["a", "b", "c"])
        await sessions.shutdown()
        #expect(parts().count == 2 * Self.parts)
        #expect(parts().allSatisfy { $0.targets <= DurableFanOut.partRows })
        #expect(try await queues(ids) == [["1:a", "2:b"]: Self.many])
        #expect(sessions.statistics.commits.waiting == 0)
        #expect(sessions.statistics.commits.waitingBytes == 0)
    }

    @Test func `what failed between two parts is not retained, and comes again with QoS 1 to those who had it`()
        async throws
    {
        let ids = try absent(Self.many, filter: "t")
        let sessions = try await started()
        store.fail(1, after: 2)
        let failed = await code { try await sessions.published("x", to: "t", retain: true) }
        #expect(failed == .storageUnavailable)
        #expect(sessions.retained.statistics.count == 0)
        try await sessions.published("x", to: "t", retain: true)
        #expect(sessions.retained.statistics.count == 1)
        let twice = 2 * DurableFanOut.partRows
        #expect(try await queues(ids) == [["1:x", "2:x"]: twice, ["1:x"]: Self.many - twice])
        await sessions.shutdown()
    }

    @Test(arguments: [false, true], 1...2)
    func `a QoS 2 publication that failed between two parts is repeated for the others only, also after a restart`(
        _ restarts: Bool,
        _ stored: Int
    ) async throws {
        let ids = try absent(Self.many, filter: "t")
        let team = try absent(3, filter: "$share/team/t")
        var sessions = try await started()
        var publisher = try await sessions.attached("publisher").opening.id
        func publish(_ text: String) async throws {
            try await sessions.published(text, to: "t", qos: .exactlyOnce, from: publisher, receivedID: 7)
        }
        store.fail(1, after: stored)
        #expect(await code { try await publish("x") } == .storageUnavailable)
        #expect(sessions.isPartlyStored(publisher, 7))
        #expect(try await queues(ids)[["1:x"]] ?? 0 >= stored * DurableFanOut.partRows - 1)
        if restarts {
            await sessions.shutdown()
            sessions = try await started()
            let opening = try await sessions.attached("publisher").opening
            publisher = opening.id
            #expect(opening.received.isEmpty)
            #expect(sessions.isPartlyStored(publisher, 7))
        }
        // The repeated publication may also fail.
        store.fail(1, after: 1)
        if stored == 1 { #expect(await code { try await publish("x") } == .storageUnavailable) }
        store.fail(0)
        try await publish("x")
        #expect(!sessions.isPartlyStored(publisher, 7))
        #expect(try await queues(ids) == [["1:x"]: Self.many])
        #expect(try await queues(team) == [["1:x"]: 1, []: 2])
        await sessions.shutdown()
        let opened = try store.base.commit(
            [.open(SessionKey(owner: .subject("ann"), clientID: "publisher"), clean: false, expiry: nil)],
            now: Timestamp(rawValue: 1)
        )
        guard case .opened(let session)? = opened.first else {
            Issue.record("\(opened)")
            return
        }
        #expect(session.received == [7])
        #expect(session.partial.isEmpty)
    }

    @Test func `another publication under the identifier of a failed one goes to all`() async throws {
        let ids = try absent(Self.many, filter: "t")
        let sessions = try await started()
        let publisher = try await sessions.attached("publisher").opening.id
        func publish(_ text: String) async throws {
            try await sessions.published(text, to: "t", qos: .exactlyOnce, from: publisher, receivedID: 7)
        }
        store.fail(1, after: 1)
        #expect(await code { try await publish("x") } == .storageUnavailable)
        try await publish("y")
        let part = DurableFanOut.partRows
        #expect(try await queues(ids) == [["1:x", "2:y"]: part, ["1:y"]: Self.many - part])
        await sessions.shutdown()
    }

    @Test func `the many sessions of one owner get what it has room for, and one of a group gets it`() async throws {
        let store = FakeSessionStore(StoreSettings(queuedMessages: SharedLimit(100_000, perAccount: 1_000)))
        let fixture = Self(store: store)
        let crowd = try fixture.absent(Self.many, filter: "t", owner: "ann")
        let team = try fixture.absent(3, filter: "$share/team/t")
        let sessions = try await fixture.started()
        let targets = sessions.targets(of: try #require(TopicName("t")))
        #expect(sessions.reach(of: try publication("x"), to: targets) == 1_001)
        try await sessions.published("x", to: "t")
        #expect(try await fixture.queues(crowd) == [["1:x"]: 1_000, []: Self.many - 1_000])
        #expect(try await fixture.queues(team) == [["1:x"]: 1, []: 2])
        #expect(sessions.statistics.dropped == UInt64(Self.many - 1_000))
        // The queues of the crowd are full, so the crowd adds no cost to the next publication.
        #expect(sessions.reach(of: try publication("x"), to: targets) == 1)
        let start = store.commits.count
        try await sessions.published("y", to: "t")
        #expect(fixture.parts(since: start).map(\.targets) == [1])
        await sessions.shutdown()
    }

    private init(store: FakeSessionStore) { self.store = store }

    init() { self.init(store: FakeSessionStore()) }

    // MARK: Filters

    @Test func `many filters come and go in parts, and another one's commit comes between them`() async throws {
        let sessions = try await started()
        let id = try await sessions.attached("a").opening.id
        let filters = (0..<1_000).map { "f/\($0)" }
        let list = filters.map { DurableSubscription(filter: $0, options: SubscriptionOptions(qos: .atLeastOnce)) }
        for isGoing in [false, true] {
            let start = store.commits.count
            store.close()
            let results = Collector<String>()
            if isGoing {
                sessions.unsubscribe(id, filters, source: flooder) { results.add("\($0.done)") }
            } else {
                sessions.subscribe(id, list, source: flooder) { results.add("\($0.done)") }
            }
            sessions.publish(try publication("mine"), targets: [], retains: true, source: other) { _ in
                results.add("mine")
            }
            store.letThrough(2)
            #expect(await results.next(1) == ["mine"])
            store.letThrough(1_000)
            #expect(await results.next(1) == ["1000"])
            let counts = store.commits.dropFirst(start).joined().compactMap { operation -> Int? in
                switch operation {
                case .subscribe(_, let part): part.count
                case .unsubscribe(_, let part): part.count
                default: nil
                }
            }
            #expect(counts == [256, 256, 256, 232])
            #expect(sessions.statistics.filters == (isGoing ? 0 : 1_000))
        }
        await sessions.shutdown()
    }

    @Test func `filters before a failure are there, and those behind it count for nobody`() async throws {
        let sessions = try await started()
        let id = try await sessions.attached("a").opening.id
        // One filter occurs again and again.
        let filters = (0..<1_000).map { $0 % 3 == 0 ? "f/0" : "f/\($0)" }
        let list = filters.map { DurableSubscription(filter: $0, options: SubscriptionOptions(qos: .atLeastOnce)) }
        let expected = Set(filters.prefix(512)).count
        store.fail(1, after: 2)
        let change = await withCheckedContinuation { done in sessions.subscribe(id, list) { done.resume(returning: $0) }
        }
        #expect(change.done == 512)
        #expect(change.error?.code == .storageUnavailable)
        #expect(sessions.statistics.filters == expected)
        #expect(try await store.sessions().first?.subscriptions.count == expected)
        #expect(sessions.targets(of: try #require(TopicName("f/511"))).count == 1)
        #expect(sessions.targets(of: try #require(TopicName("f/512"))).isEmpty)
        store.fail(1, after: 1)
        let gone = await withCheckedContinuation { done in
            sessions.unsubscribe(id, filters) { done.resume(returning: $0) }
        }
        #expect(gone.done == 256)
        #expect(sessions.statistics.filters == expected - Set(filters.prefix(256)).count)
        #expect(sessions.targets(of: try #require(TopicName("f/1"))).isEmpty)
        #expect(sessions.targets(of: try #require(TopicName("f/511"))).count == 1)
        await sessions.shutdown()
    }

    // MARK: The lock

    @Test func `the lock is free after some hundred rows, whatever the commit holds`() throws {
        let targets = (1...2_000).map { PublicationTarget(session: DurableSessionID(rawValue: $0), qos: .atLeastOnce) }
        let operations: [SessionOperation] = [
            .completed(.none, [1]),
            .publish(try publication("x"), targets: targets, received: nil, retains: false),
            .publish(try publication("y"), targets: [], received: nil, retains: true),
            .publish(try publication("z"), targets: Array(targets.prefix(300)), received: nil, retains: false),
        ]
        let slices = CommittedRows.slices(of: operations)
        let sizes = slices.map { slice in slice.reduce(0) { $0 + max(1, $1.range.count) } }
        #expect(sizes.dropLast().allSatisfy { $0 == CommittedRows.most })
        let all = sizes.reduce(0, +)
        #expect(all == 2_302)
        // Each row occurs once, in order.
        var rows: [Int: [Int]] = [:]
        for part in slices.joined() { rows[part.operation, default: []] += Array(part.range) }
        #expect(rows == [0: [], 1: Array(0..<2_000), 2: [], 3: Array(0..<300)])
    }
}
