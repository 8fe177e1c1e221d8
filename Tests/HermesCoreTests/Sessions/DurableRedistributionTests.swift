// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// Tests which absent members' messages go to other members, and which members are chosen again.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DurableRedistributionTests {
    private let store = FakeSessionStore()
    private let time = ManualTime()
    private let sessions: DurableSessions
    private let once = SubscriptionOptions(qos: .atLeastOnce)
    private static let share = "$share/team/t"

    init() { sessions = DurableSessions(store: store, time: time) }

    private func untilHandedOver(_ count: Int, by sessions: DurableSessions) async throws {
        while sessions.statistics.handedOver < UInt64(count) {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    @Test func `after the clock was set back, what waits goes to the member that is connected`() async throws {
        let (one, connection) = try await sessions.attached("one")
        try await sessions.subscribed(one.id, Self.share, once)
        for number in 1...3 { try await sessions.published("\(number)", to: "t") }
        sessions.detach(one.id, connection, sentUpTo: 0, expiry: .seconds(86_400))
        // This attachment is completed after the end of the connection is committed.
        _ = try await sessions.attached("somebody else")
        time.advance(by: .seconds(60))
        // The session is due for redistribution, but no other member is connected.
        sessions.expire(now: time.now())
        time.jump(by: .seconds(-3_600))
        let (other, _) = try await sessions.attached("another")
        try await sessions.subscribed(other.id, Self.share, once)
        sessions.expire(now: time.now())
        try await untilHandedOver(3, by: sessions)
        #expect(try await sessions.page(of: other.id).publications.count == 3)
    }

    /// Waits until the store counts only `count` sessions as online.
    private func untilOnline(_ count: Int) async throws {
        while try await store.sessions().count(where: \.isOnline) != count {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Ends a connection while the store cannot record the end.
    private func detachInVain(_ id: DurableSessionID, _ connection: RecordingConnection) async throws {
        store.fail(1)
        sessions.detach(id, connection, sentUpTo: 0, expiry: .seconds(86_400))
        while sessions.statistics.commits.failedBatches == 0 {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    @Test
    func `after the store could not record a member's end, what waits still goes to another member`() async throws {
        let (one, connection) = try await sessions.attached("one")
        try await sessions.subscribed(one.id, Self.share, once)
        for number in 1...3 { try await sessions.published("\(number)", to: "t") }
        try await detachInVain(one.id, connection)
        // This attachment is completed after the commit of the end has failed.
        let (other, _) = try await sessions.attached("other")
        try await sessions.subscribed(other.id, Self.share, once)
        #expect(try await store.sessions().count(where: \.isOnline) == 2)
        time.advance(by: .seconds(1))
        sessions.expire(now: time.now())
        try await untilOnline(1)
        time.advance(by: .seconds(60))
        sessions.expire(now: time.now())
        try await untilHandedOver(3, by: sessions)
        #expect(try await sessions.page(of: other.id).publications.count == 3)
    }

    @Test func `an end that the store could not record is not repeated once its session is open again`() async throws {
        let (one, connection) = try await sessions.attached("one")
        try await detachInVain(one.id, connection)
        let (again, second) = try await sessions.attached("one")
        #expect(again.id == one.id)
        sessions.expire(now: time.now())
        // This attachment is committed after everything that the call has submitted.
        _ = try await sessions.attached("somebody else")
        #expect(try await store.sessions().count(where: \.isOnline) == 2)
        #expect(store.commits.joined().count(where: { if case .close = $0 { true } else { false } }) == 1)
        // The end of the new connection is recorded as usual.
        sessions.detach(one.id, second, sentUpTo: 0, expiry: .seconds(86_400))
        try await untilOnline(1)
    }

    @Test func `a member whose connection ends while a pass begins keeps what waits for its time`() async throws {
        let (one, connection) = try await sessions.attached("one")
        try await sessions.subscribed(one.id, Self.share, once)
        for number in 1...3 { try await sessions.published("\(number)", to: "t") }
        let (other, _) = try await sessions.attached("other")
        try await sessions.subscribed(other.id, Self.share, once)
        let beginning = time.now()
        time.advance(by: .milliseconds(1))
        sessions.detach(one.id, connection, sentUpTo: 0, expiry: .seconds(86_400))
        sessions.redistribute(now: beginning)
        // These commits come after those of the pass.
        for number in 1...3 { _ = try await sessions.attached("somebody \(number)") }
        #expect(sessions.statistics.handedOver == 0)
        time.advance(by: .seconds(60))
        sessions.redistribute(now: time.now())
        try await untilHandedOver(3, by: sessions)
    }

    @Test func `each session that a pass has taken has its turn, though the pass ends with them`() async throws {
        let count = DurableState.filtersAtOnce + 44
        let opened = try store.base.commit(
            (0..<count).map {
                .open(SessionKey(owner: .subject("ann"), clientID: "\($0)"), clean: false, expiry: nil)
            },
            now: time.now()
        )
        var ids: [DurableSessionID] = []
        for case .opened(let session) in opened { ids.append(session.id) }
        let subscription = DurableSubscription(filter: Self.share, options: once)
        _ = try store.base.commit(ids.map { .subscribe($0, [subscription]) }, now: time.now())
        _ = try store.base.commit(ids.map { .close($0, sentUpTo: 0, expiresAt: nil) }, now: time.now())
        try await sessions.load()
        // Each session gets one publication.
        for number in 0..<count { try await sessions.published("\(number)", to: "t") }
        let (other, _) = try await sessions.attached("other")
        try await sessions.subscribed(other.id, Self.share, once)
        time.advance(by: .seconds(61))
        sessions.redistribute(now: time.now(), most: 1)
        try await untilHandedOver(DurableState.filtersAtOnce, by: sessions)
    }

    @Test(arguments: [true, false])
    func `a queue is not read while a pass over it lasts, and ever less often if nothing can leave it`(
        isAlone: Bool
    ) throws {
        let node = NodeIdentity(id: try #require(NodeID(rawValue: 0)), epoch: 1)
        var state = DurableState(DurableSettings(), node: isAlone ? nil : node)
        let id = DurableSessionID(rawValue: 1)
        var session = StoredSession(id: id, key: SessionKey(owner: .subject("ann"), clientID: "one"))
        session.subscriptions = [DurableSubscription(filter: Self.share, options: once)]
        session.head = 1
        session.queuedCount = 1
        let start = time.now()
        state.load(session, expiresAt: nil, redistributesAt: start)
        func at(_ seconds: Int) -> Timestamp { start.advanced(by: .seconds(seconds)) }
        func takesPass(_ seconds: Int) -> Bool {
            let latest = at(seconds).advanced(by: DurableState.maxRedistributionPause)
            let due = state.takeDueForRedistribution([id], now: at(seconds), latest: latest)
            state.beginRedistribution(of: due.map(\.id))
            return !due.isEmpty
        }
        let first = takesPass(0)
        #expect(first)
        let during = takesPass(600)
        #expect(!during)
        var seconds = 600
        for pause in [10, 20, 40, 60, 60] {
            state.redistributed(id, now: at(seconds), hasMoved: false)
            let early = takesPass(seconds + pause - 1)
            #expect(!early)
            seconds += pause
            let due = takesPass(seconds)
            #expect(due)
        }
        // With several nodes, the messages that have left the queue can come back.
        state.redistributed(id, now: at(seconds), hasMoved: true)
        let next = takesPass(seconds + 5)
        #expect(next == isAlone)
    }

    @Test func `a member that one group has tried is not excluded from a group with an equivalent name`() async throws {
        let (tried, other) = ("$share/\u{E9}/t", "$share/e\u{301}/t")
        let (one, _) = try await sessions.attached("one")
        for share in [tried, other] { try await sessions.subscribed(one.id, share, once) }
        let publication = StoredPublication(
            topic: try #require(TopicName("t")),
            payload: ByteBuffer(string: "x"),
            qos: .atLeastOnce,
            publishedAt: time.now()
        )
        func choose(_ share: String) -> Int {
            let target = PublicationTarget(session: one.id, qos: .atLeastOnce, share: share)
            let chosen = sessions.choose(insteadOf: [target], for: publication, tried: [TopicText(tried): [one.id]])
            chosen.giveBack()
            return chosen.targets.count
        }
        #expect(choose(other) == 1)
        #expect(choose(tried) == 0)
    }
}
