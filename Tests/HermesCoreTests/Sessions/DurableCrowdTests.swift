// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Testing

@testable import HermesCore

/// The cost that an owner with many kept sessions causes for others when its queues are full.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DurableCrowdTests {
    private let store: FakeSessionStore
    private let sessions: DurableSessions
    private let once = SubscriptionOptions(qos: .atLeastOnce)
    private static let crowd = 300

    init() {
        store = FakeSessionStore(StoreSettings(queuedMessages: SharedLimit(100_000, perAccount: 450)))
        sessions = DurableSessions(store: store, time: ManualTime())
    }

    /// Creates absent sessions of an account.
    private func join(_ owner: String, _ count: Int, filter: String) async throws -> [DurableSessionID] {
        var joined: [DurableSessionID] = []
        for number in 0..<count {
            let connection = RecordingConnection()
            let key = SessionKey(owner: .subject(owner), clientID: "\(number)")
            let opening = try await asking { completion in
                sessions.attach(key, clean: false, expiry: nil, attachment: connection, completion: completion)
            }
            try await sessions.subscribed(opening.id, filter, once)
            sessions.detach(opening.id, connection, sentUpTo: 0, expiry: nil)
            joined.append(opening.id)
        }
        return joined
    }

    /// Returns the number of queues that each publication of these commits was for.
    private func queuesTried(since start: Int) -> [Int] {
        store.commits.dropFirst(start).joined().compactMap { operation in
            guard case .publish(_, let targets, _, _) = operation else { return nil }
            return targets.count
        }
    }

    @Test func `who has filled its queues makes nobody's publications dear`() async throws {
        let crowd = try await join("ann", Self.crowd, filter: "t")
        let bob = try #require(try await join("bob", 1, filter: "t").first)
        var start = store.commits.count
        for number in 0..<6 { try await sessions.published("\(number)", to: "t") }
        #expect(queuesTried(since: start) == [Self.crowd + 1, 151, 1, 1, 1, 1])
        #expect(try await sessions.waiting(bob).count == 6)
        #expect(sessions.statistics.dropped == 150 + 4 * 300)
        #expect(sessions.queueStatistics.refused == 150 + 4 * 300)
        // Each acknowledged publication makes room for another one.
        sessions.acknowledged(crowd[0], [1])
        sessions.acknowledged(crowd[1], [1])
        start = store.commits.count
        for _ in 0..<3 { try await sessions.published("more", to: "t") }
        #expect(queuesTried(since: start).sorted() == [1, 1, 3])
    }

    @Test func `a shared subscription of full members costs no commit`() async throws {
        _ = try await join("ann", Self.crowd, filter: "$share/team/t")
        for number in 0..<450 { try await sessions.published("\(number)", to: "t") }
        var start = store.commits.count
        try await sessions.published("dropped", to: "t")
        #expect(queuesTried(since: start).isEmpty)
        #expect(sessions.statistics.dropped == 1)
        let bob = try #require(try await join("bob", 1, filter: "$share/team/t").first)
        start = store.commits.count
        try await sessions.published("bob's", to: "t")
        #expect(queuesTried(since: start) == [1])
        #expect(try await sessions.waiting(bob) == ["1:bob's"])
    }

    @Test func `publishers to a topic share its route, and the next generation frees it`() async throws {
        _ = try await join("ann", 40, filter: "t/+")
        let topic = try #require(TopicName("t/1"))
        let (route, work) = sessions.search(topic)
        #expect(work > 0)
        #expect(sessions.search(topic).route === route)
        #expect(sessions.search(topic).work == 0)
        _ = try await join("bob", 1, filter: "t/1")
        #expect(sessions.search(topic).route !== route)
        #expect(sessions.search(topic).route.targets.count == 2)
    }

    @Test func `routes of many and of long topics stay within their bound`() throws {
        var routes = DurableRoutes()
        var kept = 0
        for number in 0..<600 {
            let topic = try #require(TopicName("\(number)/" + String(repeating: "x", count: 60_000)))
            routes.keep(DurableRoute([], generation: 1), to: topic, [UInt64(number)])
        }
        for number in 0..<600 {
            let topic = try #require(TopicName("\(number)/" + String(repeating: "x", count: 60_000)))
            if routes.route(to: topic, generation: 0) != nil { kept += 1 }
        }
        #expect(kept * 60_000 <= DurableRoutes.maxBytes)
    }
}
