// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// Kept sessions and their filters are limited in total, and no owner can use up the limit.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DurableQuotaTests {
    private let store = FakeSessionStore()
    private let time = ManualTime()
    private let once = SubscriptionOptions(qos: .atLeastOnce)

    private func attach(
        _ sessions: DurableSessions,
        _ clientID: String,
        from host: String,
        owner: SessionOwner = .anonymous
    ) async throws -> (DurableOpening, RecordingConnection) {
        let connection = RecordingConnection(source: CommitSource(host: host))
        let opening = try await asking { completion in
            sessions.attach(
                SessionKey(owner: owner, clientID: clientID),
                clean: false,
                expiry: .seconds(60),
                attachment: connection,
                completion: completion
            )
        }
        return (opening, connection)
    }

    private func refusal(_ body: () async throws -> Void) async -> HermesError.Code? {
        do {
            try await body()
            return nil
        } catch {
            return (error as? HermesError)?.code
        }
    }

    @Test func `there is always room for who comes last`() async throws {
        let sessions = DurableSessions(store: store, time: time, settings: DurableSettings(sessions: SharedLimit(24)))
        for number in 0..<20 {
            _ = await refusal { _ = try await attach(sessions, "one\(number)", from: "10.0.0.1") }
        }
        #expect(sessions.statistics.sessions == 6)
        for number in 0..<20 {
            _ = await refusal { _ = try await attach(sessions, "other\(number)", from: "10.0.0.2") }
        }
        #expect(sessions.statistics.sessions == 9)
        for number in 0..<20 {
            _ = await refusal {
                _ = try await attach(sessions, "ann\(number)", from: "10.0.0.1", owner: .subject("ann"))
            }
        }
        // All addresses together have at most half of the limit. An account has at most as much as it leaves free.
        #expect(sessions.statistics.sessions == 17)
        _ = try await attach(sessions, "phone", from: "10.0.0.1", owner: .subject("bob"))
        for number in 3..<20 {
            _ = await refusal { _ = try await attach(sessions, "x\(number)", from: "10.0.0.\(number)") }
        }
        #expect(sessions.statistics.sessions == 21)
        _ = try await attach(sessions, "phone", from: "10.0.0.1", owner: .subject("eve"))
        #expect(await refusal { _ = try await attach(sessions, "x", from: "10.0.0.1") } == .quotaExceeded)
    }

    @Test func `owners are counted over a restart, and by network`() async throws {
        let settings = DurableSettings(sessions: SharedLimit(100, perAddress: 2))
        let sessions = DurableSessions(store: store, time: time, settings: settings)
        for (name, host) in [("a", "2001:db8::1"), ("b", "2001:db8:0:0:ffff::2")] {
            _ = try await attach(sessions, name, from: host)
        }
        await sessions.shutdown()
        let later = DurableSessions(store: store, time: time, settings: settings)
        try await later.load()
        #expect(await refusal { _ = try await attach(later, "c", from: "2001:db8::3") } == .quotaExceeded)
        _ = try await attach(later, "c", from: "2001:db8:0:1::3")
        // A session that ends makes room.
        let (opening, connection) = try await attach(later, "a", from: "2001:db8::1")
        later.detach(opening.id, connection, sentUpTo: 0, expiry: .zero)
        while later.statistics.sessions > 2 { await Task.yield() }
        _ = try await attach(later, "d", from: "2001:db8::3")
    }

    @Test func `filters are counted once, and given back`() async throws {
        let sessions = DurableSessions(store: store, time: time, settings: DurableSettings(filters: SharedLimit(16)))
        let (one, connection) = try await attach(sessions, "one", from: "10.0.0.1")
        for number in 0..<4 { try await sessions.subscribed(one.id, "f\(number)", once) }
        try await sessions.subscribed(one.id, "f0", once)
        #expect(sessions.statistics.filters == 4)
        #expect(await refusal { try await sessions.subscribed(one.id, "f4", once) } == .quotaExceeded)
        let (other, _) = try await attach(sessions, "other", from: "10.0.0.2")
        try await sessions.subscribed(other.id, "f0", once)
        try await asking { done in
            sessions.unsubscribe(one.id, ["f0", "f1", "never"]) { done($0.result) }
        }
        #expect(sessions.statistics.filters == 3)
        store.fail(1)
        #expect(await refusal { try await sessions.subscribed(one.id, "f5", once) } == .storageUnavailable)
        #expect(sessions.statistics.filters == 3)
        sessions.detach(one.id, connection, sentUpTo: 0, expiry: .zero)
        #expect(sessions.statistics.filters == 1)
    }

    @Test func `long filters count for their bytes, also over a restart`() async throws {
        let settings = DurableSettings(filters: SharedLimit(1_000, perAddress: 10))
        let sessions = DurableSessions(store: store, time: time, settings: settings)
        let (one, _) = try await attach(sessions, "one", from: "10.0.0.1")
        let long = String(repeating: "f", count: 3_800)
        try await sessions.subscribed(one.id, long, once)
        #expect(sessions.statistics.filters == 8)
        // The same filter again needs no room.
        try await sessions.subscribed(one.id, long, once)
        #expect(sessions.statistics.filters == 8)
        let other = String(repeating: "g", count: 900)
        #expect(await refusal { try await sessions.subscribed(one.id, other, once) } == .quotaExceeded)
        #expect(sessions.statistics.refusedFilters == 3)
        try await sessions.subscribed(one.id, "short", once)
        await sessions.shutdown()
        let later = DurableSessions(store: store, time: time, settings: settings)
        try await later.load()
        #expect(later.statistics.filters == 9)
        let (two, _) = try await attach(later, "two", from: "10.0.0.1")
        #expect(await refusal { try await later.subscribed(two.id, other, once) } == .quotaExceeded)
        try await asking { done in later.unsubscribe(one.id, [long]) { done($0.result) } }
        #expect(later.statistics.filters == 1)
        try await later.subscribed(two.id, other, once)
        #expect(later.statistics.filters == 4)
    }

    @Test(arguments: [
        ("", 1), (String(repeating: "f", count: 288), 1), (String(repeating: "f", count: 289), 2),
        ("$share/team/f", 40), (String(repeating: "/", count: 8), 1), (String(repeating: "/", count: 15), 2),
        (String(repeating: "/", count: 65_535), 4_225),
    ]) func `a filter counts for its bytes and the levels of a deep one`(_ filter: String, _ units: Int) {
        #expect(DurableQuota.units(of: filter) == units)
    }

    @Test func `the filters of an ended session leave the index a few at a time, and nobody finds it meanwhile`()
        async throws
    {
        let sessions = DurableSessions(store: store, time: time)
        let (one, connection) = try await attach(sessions, "one", from: "10.0.0.1")
        let texts = ["$share/g/f/1/+"] + (0..<999).map { "f/\($0)/+" }
        let list = texts.map { DurableSubscription(filter: $0, options: once) }
        try await asking { done in sessions.subscribe(one.id, list) { done($0.result) } }
        let topic = try #require(TopicName("f/1/x"))
        // The filters of some of these topics leave the index at once, and the others leave later.
        let topics = try (0..<40).map { try #require(TopicName("f/\($0)/x")) }
        for (number, topic) in topics.enumerated() {
            #expect(sessions.targets(of: topic).count == (number == 1 ? 2 : 1))
        }
        let generation = sessions.generation
        // The removal of the session waits.
        store.close()
        sessions.detach(one.id, connection, sentUpTo: 0, expiry: .zero)
        for topic in topics { #expect(sessions.targets(of: topic).isEmpty) }
        #expect(sessions.generation != generation)
        #expect(sessions.statistics.filters == 0)
        let left = sessions.shared.state.withLock { $0.leaving.map(\.filters.count) }
        #expect(left == [1_000 - DurableState.filtersAtOnce])
        // The same filters of another session stay.
        store.letThrough(1_000)
        let (two, _) = try await attach(sessions, "two", from: "10.0.0.1")
        try await sessions.subscribed(two.id, "f/1/+", once)
        sessions.expire(now: time.now())
        #expect(sessions.shared.state.withLock { $0.leaving.isEmpty })
        #expect(sessions.targets(of: topic).count == 1)
        await sessions.shutdown()
    }
}
