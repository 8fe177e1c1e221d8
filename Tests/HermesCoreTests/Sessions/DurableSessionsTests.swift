// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Synchronization
import Testing

@testable import HermesCore

@Suite(.inTurns, .timeLimit(.minutes(1))) struct DurableSessionsTests {
    private let store = FakeSessionStore()
    private let time = ManualTime()
    private let sessions: DurableSessions
    private let once = SubscriptionOptions(qos: .atLeastOnce)
    private let exactly = SubscriptionOptions(qos: .exactlyOnce)

    init() { sessions = DurableSessions(store: store, time: time) }

    /// Returns the sessions of a new process with the same store, as if the old process had been killed.
    private func restarted() async throws -> DurableSessions {
        let sessions = DurableSessions(store: store, time: time)
        try await sessions.load()
        return sessions
    }

    @Test func `what is published while offline waits`() async throws {
        let (opening, connection) = try await sessions.attached("a")
        #expect(!opening.isPresent)
        #expect(opening.isDurable)
        try await sessions.subscribed(opening.id, "news/#", once)
        sessions.detach(opening.id, connection, sentUpTo: 0, expiry: .seconds(60))
        for text in ["one", "two"] { try await sessions.published(text, to: "news/sport") }
        try await sessions.published("other", to: "weather")
        let (again, second) = try await sessions.attached("a")
        #expect(again.isPresent)
        #expect(again.id == opening.id)
        #expect(again.head == 2)
        #expect(again.subscriptions == [DurableSubscription(filter: "news/#", options: once)])
        #expect(try await sessions.waiting(again.id) == ["1:one", "2:two"])
        try await sessions.published("three", to: "news/sport")
        #expect(await second.deliveries.next(1).first?.map(\.summary) == ["3:three"])
        #expect(connection.batches.isEmpty)
        sessions.acknowledged(again.id, [1, 2])
        try await sessions.published("four", to: "news/sport")
        #expect(try await sessions.waiting(again.id) == ["3:three", "4:four"])
    }

    @Test func `an end concerns logins that are under way`() throws {
        let key = SessionKey(owner: .subject("ann"), clientID: "a b")
        let phone = try #require(DeviceID("phone"))
        let early = sessions.loginBegins()
        #expect(sessions.reason(toEnd: key, since: early) == nil)
        sessions.end(.subject("ann"), .revoked, .only(phone))
        #expect(sessions.reason(toEnd: key, since: early) == nil)
        #expect(sessions.reason(toEnd: SessionKey(owner: .subject("ann"), clientID: "phone"), since: early) == .revoked)
        sessions.end(.subject("ann"), .accountRenamed, .all)
        #expect(sessions.reason(toEnd: key, since: early) == .accountRenamed)
        #expect(sessions.reason(toEnd: SessionKey(owner: .subject("bob"), clientID: "a b"), since: early) == nil)
        #expect(sessions.reason(toEnd: key, since: sessions.loginBegins()) == nil)
    }

    @Test func `what is of an owner is found by it`() async throws {
        let (opening, away) = try await sessions.attached("away")
        try await sessions.subscribed(opening.id, "room/lobby", once)
        sessions.detach(opening.id, away, sentUpTo: 0, expiry: .seconds(60))
        let (_, present) = try await sessions.attached("present")
        let topic = try #require(TopicName("room/lobby"))
        #expect(try await sessions.endSubscriptions(of: .subject("bob"), to: topic) == 0)
        #expect(try await sessions.endSubscriptions(of: .subject("ann"), to: topic) == 1)
        #expect(try await sessions.endSubscriptions(of: .subject("ann"), to: topic) == 0)
        sessions.end(.subject("ann"), .accountRenamed, .all)
        #expect(present.ends == [.accountRenamed])
        sessions.endAll(of: .subject("ann"))
        #expect(try await !sessions.attached("away").opening.isPresent)
    }

    @Test func `of the sessions without a connection, exactly the subscriptions to a topic end`() async throws {
        let ending = ["room/lobby", "$share/g/room/lobby", "$share/h/room/lobby"]
        let staying = ["room/lobby2", "room/+", "$share/g/room/+", "$share/room/lobby", "+/lobby"]
        for name in ["a", "b", "present"] {
            let (opening, connection) = try await sessions.attached(name)
            for filter in ending + staying { try await sessions.subscribed(opening.id, filter, once) }
            if name != "present" { sessions.detach(opening.id, connection, sentUpTo: 0, expiry: .seconds(60)) }
        }
        let topic = try #require(TopicName("room/lobby"))
        #expect(try await sessions.endSubscriptions(of: .subject("ann"), to: topic) == 2)
        #expect(try await sessions.endSubscriptions(of: .subject("ann"), to: topic) == 0)
        for stored in try await store.sessions() {
            let expected = stored.key.clientID == "present" ? ending + staying : staying
            #expect(stored.subscriptions.map(\.filter).sorted() == expected.sorted())
        }
    }

    @Test func `attach waits for the one before`() async throws {
        let (opening, first) = try await sessions.attached("a")
        let second = RecordingConnection()
        async let waiting = sessions.attached("a", second)
        _ = await first.replacements.next(1)
        sessions.detach(opening.id, first, sentUpTo: 0, expiry: .seconds(60))
        let (again, _) = try await waiting
        #expect(again.id == opening.id)
        #expect(again.isPresent)
        sessions.detach(opening.id, first, sentUpTo: 0, expiry: .zero)
        #expect(sessions.statistics.online == 1, "somebody else's session")
    }

    @Test func `the newest of those who wait wins`() async throws {
        let (opening, first) = try await sessions.attached("a")
        let second = RecordingConnection()
        let third = RecordingConnection()
        let results = Collector<Result<DurableOpening, HermesError>>()
        let key = SessionKey(owner: .subject("ann"), clientID: "a")
        for connection in [second, third] {
            sessions.attach(key, clean: false, expiry: nil, attachment: connection) { results.add($0) }
        }
        guard case .failure(let error) = await results.next(1).first else {
            Issue.record("two have one session")
            return
        }
        #expect(error.code == .replaced)
        #expect(second.replacedCount == 1)
        #expect(first.replacedCount == 1)
        sessions.detach(opening.id, first, sentUpTo: 0, expiry: .seconds(60))
        #expect(try await results.next(1).first?.get().id == opening.id)
        #expect(third.replacedCount == 0)
    }

    @Test(arguments: [Duration?.none, .zero])
    func `who asked earlier does not get the session from who asked later`(expiry: Duration?) async throws {
        let key = SessionKey(owner: .subject("ann"), clientID: "a")
        let results = Collector<Result<DurableOpening, HermesError>>()
        func attach(_ connection: RecordingConnection) {
            sessions.attach(key, clean: false, expiry: expiry, attachment: connection) { results.add($0) }
        }
        let earlier = RecordingConnection()
        let later = RecordingConnection()
        let last = RecordingConnection()
        attach(later)
        // The session is being opened, or is open.
        attach(earlier)
        let first = await results.next(2)
        let opened = first.compactMap { try? $0.get() }
        #expect(opened.count == 1)
        attach(last)
        // The last connection waits until the connection that has the session leaves.
        attach(earlier)
        let refused = await results.next(1)
        for case .failure(let error) in first + refused { #expect(error.code == .replaced) }
        #expect(refused.allSatisfy { (try? $0.get()) == nil })
        #expect(later.replacedCount == 1 && last.replacedCount == 0)
        let id = try #require(opened.first).id
        sessions.detach(id, later, sentUpTo: 0, expiry: expiry)
        let won = try #require(await results.next(1).first).get()
        sessions.detach(won.id, last, sentUpTo: 0, expiry: expiry)
        // No connection has the session now.
        attach(earlier)
        _ = try #require(await results.next(1).first).get()
    }

    @Test func `a clean start takes the session over`() async throws {
        let (opening, first) = try await sessions.attached("a")
        try await sessions.subscribed(opening.id, "t", once)
        sessions.detach(opening.id, first, sentUpTo: 0, expiry: nil)
        try await sessions.published("x", to: "t")
        let ended = Collector<SessionKey>()
        sessions.ended.observe { ended.add($0) }
        let (again, second) = try await sessions.attached("a", clean: true)
        #expect(!again.isPresent)
        #expect(again.id != opening.id)
        #expect(again.head == 0)
        #expect(await ended.next(1).first?.clientID == "a")
        #expect(sessions.targets(of: try #require(TopicName("t"))).isEmpty)
        #expect(!sessions.hasSubscriptions)
        sessions.detach(again.id, second, sentUpTo: 0, expiry: .seconds(1))
        // A session that ends with its connection also ends the durable session.
        let (transient, third) = try await sessions.attached("a", clean: true, expiry: .zero)
        #expect(!transient.isDurable)
        #expect(try await store.sessions().isEmpty)
        sessions.detach(transient.id, third, sentUpTo: 0, expiry: .zero)
        #expect(try await !sessions.attached("a").opening.isPresent)
    }

    @Test func `sessions that are not stored take over too`() async throws {
        let (opening, first) = try await sessions.attached("a", clean: true, expiry: .zero)
        async let waiting = sessions.attached("a", clean: true, expiry: .zero)
        _ = await first.replacements.next(1)
        sessions.detach(opening.id, first, sentUpTo: 0, expiry: .zero)
        let (again, second) = try await waiting
        #expect(again.id != opening.id)
        sessions.detach(again.id, second, sentUpTo: 0, expiry: .zero)
        #expect(store.commits.isEmpty)
    }

    @Test
    func `a session whose close is being stored ends with its owner's name, once`() async throws {
        let (opening, connection) = try await sessions.attached("a")
        let ended = Collector<SessionKey>()
        sessions.ended.observe { ended.add($0) }
        store.close()
        sessions.detach(opening.id, connection, sentUpTo: 0, expiry: .seconds(60))
        sessions.endAll(of: .subject("ann"))
        #expect(await ended.next(1).map(\.clientID) == ["a"])
        store.letThrough(1_000)
        while try await !store.sessions().isEmpty { await Task.yield() }
        // The next session that ends is reported next. The first session is not reported again.
        let (other, second) = try await sessions.attached("b")
        sessions.detach(other.id, second, sentUpTo: 0, expiry: .seconds(60))
        while sessions.statistics.online > 0 { await Task.yield() }
        _ = try await sessions.attached("b", clean: true)
        #expect(await ended.next(1).map(\.clientID) == ["b"])
    }

    @Test func `sessions end when their time is over`() async throws {
        let ended = Collector<SessionKey>()
        sessions.ended.observe { ended.add($0) }
        for (name, expiry) in [("short", Duration.seconds(10)), ("long", .seconds(60))] {
            let (opening, connection) = try await sessions.attached(name, expiry: expiry)
            try await sessions.subscribed(opening.id, "t", once)
            sessions.detach(opening.id, connection, sentUpTo: 0, expiry: expiry)
        }
        let (online, _) = try await sessions.attached("online", expiry: .seconds(1))
        try await sessions.subscribed(online.id, "t", once)
        let topic = try #require(TopicName("t"))
        #expect(sessions.targets(of: topic).count == 3)
        let generation = sessions.generation
        time.advance(by: .seconds(10))
        store.fail(1)
        sessions.expire(now: time.now())
        #expect(await ended.next(1).first?.clientID == "short")
        #expect(sessions.generation != generation)
        #expect(sessions.targets(of: topic).count == 2)
        // This operation is committed together with the removal that fails, or after it.
        _ = await code { try await asking { sessions.released(online.id, 1, completion: $0) } }
        // The next round removes the session. A client that connects before that gets a new session.
        sessions.expire(now: time.now())
        #expect(try await !sessions.attached("short").opening.isPresent)
        #expect(Set(try await store.sessions().map(\.key.clientID)) == ["short", "long", "online"])
    }

    @Test func `a detach without expiry ends it`() async throws {
        let (opening, connection) = try await sessions.attached("a")
        try await sessions.subscribed(opening.id, "t", once)
        sessions.detach(opening.id, connection, sentUpTo: 0, expiry: .zero)
        #expect(!sessions.hasSubscriptions)
        #expect(try await !sessions.attached("a").opening.isPresent)
    }

    @Test func `after a crash everything may have been sent`() async throws {
        let (online, _) = try await sessions.attached("online", expiry: .seconds(30))
        try await sessions.subscribed(online.id, "t", exactly)
        let (offline, connection) = try await sessions.attached("offline", expiry: .seconds(30))
        try await sessions.subscribed(offline.id, "t", once)
        for text in ["one", "two", "three"] {
            try await sessions.published(text, to: "t", qos: .exactlyOnce, from: online.id, receivedID: 7)
        }
        sessions.detach(offline.id, connection, sentUpTo: 1, expiry: .seconds(30))
        try await asking { sessions.released(online.id, 1, completion: $0) }
        let later = try await restarted()
        #expect(later.targets(of: try #require(TopicName("t"))).count == 2)
        let (again, _) = try await later.attached("online")
        #expect(again.isPresent)
        #expect(again.sentUpTo == 3)
        #expect(again.released == [1])
        #expect(again.received == [7])
        #expect(try await later.waiting(again.id) == ["2:two", "3:three"])
        #expect(try await later.attached("offline").opening.sentUpTo == 1)
        // The clients of the other sessions do not come back before the sessions expire.
        let last = try await restarted()
        time.advance(by: .seconds(61))
        last.expire(now: time.now())
        // Before the sessions are removed, their queues are read for messages that other members could get.
        while try await !store.sessions().isEmpty { await Task.yield() }
        await last.shutdown()
    }

    @Test func `the next connection knows what was sent, though the store could not record it`() async throws {
        let (opening, connection) = try await sessions.attached("a")
        try await sessions.subscribed(opening.id, "t", once)
        for number in 1...5 { try await sessions.published("\(number)", to: "t") }
        store.fail(1)
        sessions.detach(opening.id, connection, sentUpTo: 5, expiry: .seconds(60))
        let (again, second) = try await sessions.attached("a")
        #expect(again.isPresent)
        #expect(again.sentUpTo == 5)
        sessions.detach(again.id, second, sentUpTo: 5, expiry: .seconds(60))
        #expect(try await sessions.attached("a", clean: true).opening.sentUpTo == 0)
    }

    @Test
    func `a clock that is not confirmed ends no session of an earlier process`() async throws {
        let (old, connection) = try await sessions.attached("old", expiry: .seconds(30))
        sessions.detach(old.id, connection, sentUpTo: 0, expiry: .seconds(30))
        let later = try await restarted()
        let (new, other) = try await later.attached("new", expiry: .seconds(30))
        later.detach(new.id, other, sentUpTo: 0, expiry: .seconds(30))
        time.advance(by: .seconds(7_200))
        // A session can expire only after the store has recorded the end of its connection.
        while try await store.sessions().contains(where: { $0.id == new.id }) {
            try Task.checkCancellation()
            later.expire(now: time.now(), isClockConfirmed: false)
            await Task.yield()
        }
        #expect(try await store.sessions().map(\.id) == [old.id])
        while try await !store.sessions().isEmpty {
            try Task.checkCancellation()
            later.expire(now: time.now(), isClockConfirmed: true)
            await Task.yield()
        }
        await later.shutdown()
    }

    @Test func `a store that fails fails the publisher`() async throws {
        let (opening, connection) = try await sessions.attached("a")
        try await sessions.subscribed(opening.id, "t", once)
        store.fail(1)
        let failed = await code { try await sessions.published("lost", to: "t", retain: true) }
        #expect(failed == .storageUnavailable)
        #expect(sessions.retained.statistics.count == 0, "what was not stored is not retained")
        try await sessions.published("kept", to: "t", retain: true)
        #expect(try await sessions.waiting(opening.id) == ["1:kept"])
        #expect(await connection.deliveries.next(1).first?.map(\.summary) == ["1:kept"])
        #expect(sessions.retained.statistics.count == 1)
        store.fail(1)
        #expect(await code { _ = try await sessions.attached("b") } == .storageUnavailable)
        #expect(try await !sessions.attached("b").opening.isPresent)
        // Acknowledgements that arrive while the store fails are not forgotten.
        store.fail(1)
        sessions.acknowledged(opening.id, [1])
        #expect(await code { try await sessions.published("lost", to: "t") } == .storageUnavailable)
        await sessions.shutdown()
        #expect(try await store.queued(of: opening.id, after: 0, limit: 9, maxBytes: 999).isEmpty)
    }

    @Test func `a full queue drops the newest`() async throws {
        let store = FakeSessionStore(StoreSettings(maxQueuedMessages: 2))
        let sessions = DurableSessions(store: store, time: time)
        let (opening, _) = try await sessions.attached("a")
        try await sessions.subscribed(opening.id, "t", once)
        for number in 1...4 { try await sessions.published("\(number)", to: "t") }
        sessions.acknowledged(opening.id, [1])
        try await sessions.published("5", to: "t")
        // A dropped publication is certainly counted before the next publication is completed.
        #expect(sessions.statistics.dropped == 2)
        #expect(try await sessions.waiting(opening.id) == ["2:2", "3:5"])
    }

    @Test func `expired publications are left out`() async throws {
        let (opening, _) = try await sessions.attached("a")
        try await sessions.subscribed(opening.id, "t", once)
        let soon = PublicationDetails(expiresAt: time.now().advanced(by: .seconds(5)))
        for number in 1...5 { try await sessions.published("\(number)", to: "t", details: number == 3 ? nil : soon) }
        time.advance(by: .seconds(5))
        let page = try await sessions.page(of: opening.id, limit: 2)
        #expect(page.publications.map(\.summary) == ["3:3"])
        #expect(page.upTo == 4)
        #expect(!page.isAtEnd)
        let rest = try await sessions.page(of: opening.id, after: page.upTo, limit: 2)
        #expect(rest.publications.isEmpty)
        #expect(rest.upTo == 5)
        #expect(rest.isAtEnd)
    }

    @Test func `subscriptions of one session count once`() async throws {
        let (opening, _) = try await sessions.attached("a")
        let one = SubscriptionOptions(qos: .atLeastOnce, noLocal: true, identifiers: [1])
        let other = SubscriptionOptions(qos: .exactlyOnce, retainAsPublished: true, identifiers: [2])
        try await sessions.subscribed(opening.id, "a/b", one)
        try await sessions.subscribed(opening.id, "a/+", other)
        try await sessions.published("x", to: "a/b", qos: .exactlyOnce, retain: true)
        let queued = try #require(try await sessions.page(of: opening.id).publications.first)
        #expect(queued.qos == .exactlyOnce)
        #expect(queued.identifiers.sorted() == [1, 2])
        #expect(queued.retain)
        try await sessions.published("own", to: "a/b", qos: .exactlyOnce, from: opening.id)
        let own = try #require(try await sessions.page(of: opening.id, after: 1).publications.first)
        #expect(own.identifiers == [2], "the first subscription is \"no local\"")
        try await asking { done in sessions.unsubscribe(opening.id, ["a/+"]) { done($0.result) } }
        try await sessions.published("own", to: "a/b", from: opening.id)
        try await sessions.published("not wanted so much", to: "a/b", qos: .atMostOnce)
        #expect(try await sessions.waiting(opening.id, after: 2).isEmpty)
    }

    @Test func `only one of those who share gets it`() async throws {
        var ids: [DurableSessionID] = []
        for name in ["a", "b", "c"] {
            let (opening, connection) = try await sessions.attached(name)
            try await sessions.subscribed(opening.id, "$share/team/t", once)
            ids.append(opening.id)
            if name == "c" { sessions.detach(opening.id, connection, sentUpTo: 0, expiry: nil) }
        }
        for number in 0..<10 { try await sessions.published("\(number)", to: "t") }
        var counts: [Int] = []
        for id in ids { counts.append(try await sessions.waiting(id).count) }
        #expect(counts == [5, 5, 0], "those who are online, by turns")
    }

    @Test func `there is a limit of sessions`() async throws {
        let sessions = DurableSessions(store: store, time: time, settings: DurableSettings(sessions: SharedLimit(1)))
        let (opening, connection) = try await sessions.attached("a")
        #expect(await code { _ = try await sessions.attached("b") } == .quotaExceeded)
        #expect(try await !sessions.attached("b", clean: true, expiry: .zero).opening.isDurable)
        sessions.detach(opening.id, connection, sentUpTo: 0, expiry: nil)
        #expect(try await sessions.attached("a").opening.isPresent)
        #expect(sessions.statistics.refusedSessions == 1)
    }
}
