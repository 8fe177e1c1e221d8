// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Synchronization
import Testing

@testable import HermesCore

/// A shared publication is never lost, and goes to one member at a time.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DurableSharingTests {
    private let store = FakeSessionStore()
    private let time = ManualTime()
    private let sessions: DurableSessions
    private let once = SubscriptionOptions(qos: .atLeastOnce)
    private let exactly = SubscriptionOptions(qos: .exactlyOnce)
    private static let share = "$share/team/t"

    init() { sessions = DurableSessions(store: store, time: time) }

    /// Creates a connected member.
    private func member(
        _ name: String,
        _ options: SubscriptionOptions,
        of sessions: DurableSessions? = nil,
        reader: (any TopicReader)? = nil
    ) async throws -> (id: DurableSessionID, connection: RecordingConnection) {
        let sessions = sessions ?? self.sessions
        let (opening, connection) = try await sessions.attached(name, RecordingConnection(reader: reader))
        try await sessions.subscribed(opening.id, Self.share, options)
        return (opening.id, connection)
    }

    private func texts(_ id: DurableSessionID, of sessions: DurableSessions? = nil) async throws -> [String] {
        try await (sessions ?? self.sessions).page(of: id).publications.map { String(buffer: $0.publication.payload) }
    }

    @Test
    func `what comes for members that are absent since before a restart goes to others in time, too`() async throws {
        let (one, connection) = try await member("one", once)
        sessions.detach(one, connection, sentUpTo: 0, expiry: .seconds(3_600))
        await sessions.shutdown()
        let later = DurableSessions(store: store, time: time)
        try await later.load()
        try await later.published("1", to: "t")
        let (two, _) = try await member("two", once, of: later)
        #expect(try await texts(two, of: later).isEmpty)
        time.advance(by: .seconds(61))
        later.expire(now: time.now())
        while try await texts(two, of: later) != ["1"] { try Task.checkCancellation() }
        await later.shutdown()
    }

    enum Ending: CaseIterable, Sendable { case detached, cleanStart, cleanSession, expired, removed }

    /// Ends a connected session in one of several ways. Returns when the store has recorded the end.
    private func end(
        _ name: String,
        _ id: DurableSessionID,
        _ connection: RecordingConnection,
        _ ending: Ending
    ) async throws {
        switch ending {
        case .detached:
            sessions.detach(id, connection, sentUpTo: 1, expiry: .zero)
            _ = try await sessions.attached(name, clean: true, expiry: .zero)
        case .cleanStart, .cleanSession:
            sessions.detach(id, connection, sentUpTo: 1, expiry: .seconds(60))
            _ = try await sessions.attached(name, clean: true, expiry: ending == .cleanStart ? .seconds(60) : .zero)
        case .expired:
            sessions.detach(id, connection, sentUpTo: 1, expiry: .seconds(60))
            // This attachment is completed after the end of the connection is committed.
            _ = try await sessions.attached("somebody else")
            time.advance(by: .seconds(60))
            sessions.expire(now: time.now())
            _ = try await sessions.attached(name)
        case .removed:
            sessions.detach(id, connection, sentUpTo: 1, expiry: .seconds(60))
            // An administrator ends the session, perhaps while the end of the connection is on its way into the store.
            sessions.endAll(of: .subject("ann"))
            _ = try await sessions.attached(name)
        }
    }

    @Test
    func `an account is deleted once others have what its members of shared subscriptions leave behind`() async throws {
        var settings = AccountSettings()
        settings.passwordParameters = PasswordHasher.Parameters(ln: 4, r: 8, p: 1)
        let messenger = Messenger(
            accountStore: store.base,
            messageStore: store.base,
            socialStore: store.base,
            sessionStore: store,
            pushTokenStore: store.base,
            accountSettings: settings,
            time: time
        )
        let sessions = messenger.durable
        let ann = try await messenger.accounts.createAccount(nickName: "ann", password: "secret1").id
        let connection = RecordingConnection()
        let one = try await asking { completion in
            let key = SessionKey(owner: .account(ann), clientID: "one")
            sessions.attach(key, clean: false, expiry: nil, attachment: connection, completion: completion)
        }
        .id
        try await sessions.subscribed(one, Self.share, once)
        for number in 1...5 { try await sessions.published("\(number)", to: "t") }
        sessions.detach(one, connection, sentUpTo: 1, expiry: .seconds(60))
        let other = try await asking { completion in
            let key = SessionKey(owner: .subject("bob"), clientID: "other")
            let connection = RecordingConnection()
            sessions.attach(key, clean: false, expiry: nil, attachment: connection, completion: completion)
        }
        .id
        try await sessions.subscribed(other, Self.share, once)
        store.close()
        let deletion = Task { try await messenger.deleteAccount(ann) }
        // This is long enough for a deletion that does not wait.
        for _ in 0..<10_000 { await Task.yield() }
        store.letThrough(100)
        try await deletion.value
        #expect(try await texts(other, of: sessions) == ["1", "2", "3", "4", "5"])
        #expect(try await store.sessions().map(\.id) == [other])
        await messenger.shutdown()
    }

    @Test
    func `a deletion that cannot hand over fails, and the account can be deleted again`() async throws {
        let (one, connection) = try await member("one", once)
        try await sessions.published("1", to: "t")
        let (other, _) = try await member("another", once)
        sessions.detach(one, connection, sentUpTo: 0, expiry: .seconds(60))
        // This attachment is completed after the end of the connection is committed.
        _ = try await sessions.attached("somebody else")
        store.close()
        store.fail(1)
        sessions.endAll(of: .subject("ann"))
        let waiting = Task { [sessions] in try await sessions.ended(.subject("ann")) }
        while sessions.shared.state.withLock({ $0.farewells.isEmpty }) { await Task.yield() }
        store.letThrough(100)
        await #expect(throws: HermesError.self) { try await waiting.value }
        sessions.expire(now: time.now())
        while try await texts(other) != ["1"] { await Task.yield() }
    }

    @Test(arguments: Ending.allCases)
    func `what a member leaves goes to the others`(_ ending: Ending) async throws {
        let (one, connection) = try await member("one", once)
        for number in 1...5 { try await sessions.published("\(number)", to: "t") }
        let (other, otherConnection) = try await member("another", exactly)
        try await end("one", one, connection, ending)
        #expect(try await texts(other) == ["1", "2", "3", "4", "5"])
        #expect(await otherConnection.deliveries.next(1).joined().map(\.seq) == [1, 2, 3, 4, 5])
        #expect(sessions.statistics.handedOver == 5)
        #expect(sessions.statistics.dropped == 0)
        // The messages moved in the commit that removed the session.
        let ends = store.commits.joined().count {
            if case .move(let move) = $0 { move.endsBehind != nil } else { false }
        }
        #expect(ends == 1)
    }

    @Test func `what was sent with QoS 2 goes to nobody else`() async throws {
        let (one, connection) = try await member("one", exactly)
        for number in 1...3 { try await sessions.published("\(number)", to: "t", qos: .exactlyOnce) }
        let (other, _) = try await member("another", exactly)
        // One message was sent.
        try await end("one", one, connection, .detached)
        #expect(try await texts(other) == ["2", "3"])
    }

    @Test func `a removal that fails loses nothing`() async throws {
        let (one, connection) = try await member("one", once)
        for number in 1...3 { try await sessions.published("\(number)", to: "t") }
        let (other, _) = try await member("another", once)
        store.fail(2)
        sessions.detach(one, connection, sentUpTo: 0, expiry: .zero)
        await store.untilCommitted({ if case .move = $0 { true } else { false } })
        #expect(try await texts(other) == [])
        // A client that connects while the removal fails is refused. The housekeeping tries the removal again.
        while (try? await sessions.attached("one", clean: true, expiry: .zero)) == nil {
            sessions.expire(now: time.now())
        }
        #expect(try await texts(other) == ["1", "2", "3"])
    }

    @Test func `what the store has removed by itself is removed`() async throws {
        let (one, connection) = try await member("one", once)
        try await sessions.published("1", to: "t")
        sessions.detach(one, connection, sentUpTo: 0, expiry: .seconds(60))
        // The store removes the session, as it does when it deletes the session's account.
        _ = try await sessions.attached("somebody else")
        _ = try store.base.commit([.remove(one)], now: time.now())
        sessions.endAll(of: .subject("ann"))
        _ = try await sessions.attached("one")
        #expect(sessions.statistics.sessions == 2)
    }

    @Test func `what is on the way to one that ends goes to another`() async throws {
        let (one, connection) = try await member("one", once)
        let topic = try #require(TopicName("t"))
        let targets = sessions.targets(of: topic)
        let (other, _) = try await member("another", once)
        sessions.detach(one, connection, sentUpTo: 0, expiry: .zero)
        _ = try await sessions.attached("one", clean: true, expiry: .zero)
        // The publisher looked up the members before the session ended.
        let publication = StoredPublication(
            topic: topic,
            payload: ByteBuffer(string: "late"),
            qos: .atLeastOnce,
            publishedAt: time.now()
        )
        try await asking { sessions.publish(publication, targets: targets, completion: $0) }
        #expect(try await texts(other) == ["late"])
        #expect(sessions.statistics.dropped == 0)
    }

    @Test func `a full queue passes its turn`() async throws {
        let store = FakeSessionStore(StoreSettings(maxQueuedMessages: 2))
        let sessions = DurableSessions(store: store, time: time)
        let (one, _) = try await member("one", once, of: sessions)
        let (other, otherConnection) = try await member("another", once, of: sessions)
        sessions.detach(other, otherConnection, sentUpTo: 0, expiry: .seconds(600))
        for number in 1...5 { try await sessions.published("\(number)", to: "t") }
        #expect(try await texts(one, of: sessions) == ["1", "2"])
        #expect(try await texts(other, of: sessions) == ["3", "4"])
        #expect(sessions.statistics.dropped == 1)
    }

    @Test func `a QoS 2 publication is received when a member has it; until then a repetition finds one`() async throws
    {
        let store = FakeSessionStore(StoreSettings(maxQueuedBytes: 1_000))
        let sessions = DurableSessions(store: store, time: time)
        let (one, _) = try await member("one", once, of: sessions)
        let (publisher, _) = try await sessions.attached("publisher")
        // The queue of the member reaches its limit of bytes. This is known only when a publication is stored.
        try await sessions.published(String(repeating: "x", count: 1_000), to: "t")
        let (other, _) = try await member("another", once, of: sessions)
        let (third, _) = try await sessions.attached("third")
        let text = String(repeating: "y", count: 150)
        for _ in 0..<2 { try await sessions.published(text, to: "t") }
        try await sessions.subscribed(third.id, "t", once)
        #expect(try await texts(other, of: sessions).count == 2)
        // The first member is chosen first, because fewer publications wait for it.
        store.fail(1, after: 1)
        await #expect(throws: HermesError.self) {
            try await sessions.published(text, to: "t", qos: .exactlyOnce, from: publisher.id, receivedID: 5)
        }
        #expect(sessions.isPartlyStored(publisher.id, 5))
        #expect(try await texts(other, of: sessions).count == 2)
        await sessions.shutdown()

        // All of this state is in the store.
        let later = DurableSessions(store: store, time: time)
        try await later.load()
        let (again, _) = try await later.attached("publisher")
        #expect(again.received.isEmpty)
        try await later.published(text, to: "t", qos: .exactlyOnce, from: again.id, receivedID: 5)
        #expect(try await texts(one, of: later).count == 1)
        #expect(try await texts(other, of: later).count == 3)
        #expect(try await texts(third.id, of: later).count == 1)
        #expect(!later.isPartlyStored(again.id, 5))
        await later.shutdown()
        let last = DurableSessions(store: store, time: time)
        try await last.load()
        #expect(try await last.attached("publisher").0.received == [5])
        await last.shutdown()
    }

    @Test func `what has expired leaves room in a queue, whoever deletes it`() async throws {
        let store = FakeSessionStore(StoreSettings(maxQueuedMessages: 3))
        let sessions = DurableSessions(store: store, time: time)
        let (one, connection) = try await member("one", once, of: sessions)
        sessions.detach(one, connection, sentUpTo: 0, expiry: .seconds(600))
        let soon = PublicationDetails(expiresAt: time.now().advanced(by: .seconds(1)))
        for number in 1...3 { try await sessions.published("\(number)", to: "t", details: soon) }
        try await sessions.published("dropped", to: "t")
        #expect(sessions.statistics.dropped == 1)
        time.advance(by: .seconds(2))
        #expect(try await sessions.purge(now: time.now(), limit: 100) == 3)
        // This acknowledgement is too late. The publication is no longer in the queue, so no second place becomes free.
        sessions.acknowledged(one, [1])
        for number in 4...7 { try await sessions.published("\(number)", to: "t") }
        #expect(try await texts(one, of: sessions) == ["4", "5", "6"])
        #expect(sessions.statistics.dropped == 2)
    }

    @Test func `what a connection may have sent is not purged before it is acknowledged`() async throws {
        let (one, connection) = try await member("one", once)
        let soon = PublicationDetails(expiresAt: time.now().advanced(by: .seconds(1)))
        for number in 1...3 { try await sessions.published("\(number)", to: "t", details: soon) }
        connection.sentUpTo = 2
        time.advance(by: .seconds(2))
        #expect(try await sessions.purge(now: time.now(), limit: 100) == 1)
        sessions.detach(one, connection, sentUpTo: 2, expiry: .seconds(600))
        let page = try await asking {
            sessions.queued(of: one, after: 0, sentUpTo: 2, limit: 10, completion: $0)
        }
        #expect(page.publications.map(\.seq) == [1, 2])
    }

    @Test func `what waits for an absent member goes to the others in time`() async throws {
        let (one, connection) = try await member("one", once)
        for number in 1...4 { try await sessions.published("\(number)", to: "t") }
        // One message was sent, and may be acknowledged later.
        sessions.detach(one, connection, sentUpTo: 1, expiry: .seconds(600))
        let (other, otherConnection) = try await member("another", once)
        time.advance(by: .seconds(59))
        sessions.expire(now: time.now())
        #expect(try await texts(other) == [])
        time.advance(by: .seconds(1))
        sessions.expire(now: time.now())
        #expect(await otherConnection.deliveries.next(1).joined().map(\.seq) == [1, 2, 3])
        #expect(try await texts(other) == ["2", "3", "4"])
        #expect(try await texts(one) == ["1"])
        // No member is connected any more, so the message waits for the first member that connects.
        sessions.detach(other, otherConnection, sentUpTo: 3, expiry: .seconds(600))
        try await sessions.published("5", to: "t")
        time.advance(by: .seconds(60))
        sessions.expire(now: time.now())
        let (third, thirdConnection) = try await member("third", once)
        time.advance(by: .seconds(5))
        // A session is not due again before its last pass has ended.
        while thirdConnection.batches.isEmpty {
            try Task.checkCancellation()
            sessions.expire(now: time.now())
            await Task.yield()
        }
        let (again, _) = try await sessions.attached("another")
        let (first, _) = try await sessions.attached("one")
        var left = try await texts(third)
        left += try await texts(again.id) + texts(first.id)
        #expect(left.sorted() == ["1", "2", "3", "4", "5"])
    }

    @Test func `of the absent sessions with a queue, only those with shared subscriptions are looked at`() throws {
        var state = DurableState(DurableSettings())
        let now = time.now()
        let ids = (1...1_000).map { DurableSessionID(rawValue: Int64($0)) }
        func load(_ id: DurableSessionID, _ filter: String) {
            var session = StoredSession(id: id, key: SessionKey(owner: .subject("ann"), clientID: "\(id.rawValue)"))
            session.subscriptions = [DurableSubscription(filter: filter, options: once)]
            session.head = 1
            session.queuedCount = 1
            state.load(session, expiresAt: nil, redistributesAt: now)
        }
        func due(_ ids: [DurableSessionID], after pause: Duration = .zero) -> [DurableState.Redistribution] {
            let then = now.advanced(by: pause)
            return state.takeDueForRedistribution(ids[...], now: then, latest: then.advanced(by: .seconds(60)))
        }
        for id in ids { load(id, "t") }
        #expect(state.absentSharing.isEmpty)
        let none = due(ids)
        #expect(none.isEmpty)
        let member = DurableSessionID(rawValue: 1_001)
        load(member, Self.share)
        #expect(state.absentSharing == [member])
        let first = due([member])
        #expect(first.map(\.subscriptions) == [[TopicText(Self.share)]])
        let tooSoon = due([member], after: .seconds(4))
        #expect(tooSoon.isEmpty)
        let again = due([member], after: .seconds(5))
        #expect(again.map(\.id) == [member])
        state.unsubscribe(member, [Self.share])
        let last = due([member], after: .seconds(60))
        #expect(last.isEmpty)
    }

    @Test func `who may not read a topic is no candidate`() async throws {
        let (denied, _) = try await member("denied", once, reader: NoReader())
        let (allowed, connection) = try await member("allowed", once)
        for number in 1...4 { try await sessions.published("\(number)", to: "t") }
        #expect(try await texts(denied) == [])
        #expect(try await texts(allowed) == ["1", "2", "3", "4"])
        // This member does not get messages from a session that ends, either.
        sessions.detach(allowed, connection, sentUpTo: 0, expiry: .zero)
        _ = try await sessions.attached("allowed", clean: true, expiry: .zero)
        #expect(try await texts(denied) == [])
    }

    @Test func `an absent member takes nothing that only its account's earlier name may read`() async throws {
        let user = try #require(UserID(rawValue: 7))
        let readers = ["ann": NamedReader("ann"), "anna": NamedReader("anna")]
        var ids: [String: DurableSessionID] = [:]
        for (name, reader) in readers {
            let connection = RecordingConnection(reader: reader)
            let key = SessionKey(owner: .account(user), clientID: name)
            let id = try await asking { completion in
                sessions.attach(key, clean: false, expiry: nil, attachment: connection, completion: completion)
            }
            .id
            try await sessions.subscribed(id, Self.share, once)
            sessions.detach(id, connection, sentUpTo: 0, expiry: .seconds(600))
            ids[name] = id
        }
        try await sessions.published("1", to: "t")
        try await sessions.published("2", to: "t")
        let (before, after) = (try #require(ids["ann"]), try #require(ids["anna"]))
        #expect(try await texts(before).count == 1)
        // Another connection may already have logged in under the new name.
        sessions.end(user, "ann", .accountRenamed, .all)
        for number in 3...6 { try await sessions.published("\(number)", to: "t") }
        #expect(try await texts(before).count == 1)
        #expect(try await texts(after).count == 5)
    }

    @Test func `absent members of unknown permissions come last`() async throws {
        let (unknown, connection) = try await member("unknown", once)
        sessions.detach(unknown, connection, sentUpTo: 0, expiry: .seconds(3_600))
        await sessions.shutdown()
        let later = DurableSessions(store: store, time: time)
        try await later.load()
        let (known, second) = try await member("known", once, of: later, reader: NamedReader(""))
        later.detach(known, second, sentUpTo: 0, expiry: .seconds(3_600))
        for number in 1...4 { try await later.published("\(number)", to: "t") }
        #expect(try await texts(known, of: later) == ["1", "2", "3", "4"])
        #expect(try await texts(unknown, of: later) == [])
        await later.shutdown()
    }

    private final class NamedReader: TopicReader {
        private let name: String

        init(_ name: String) { self.name = name }

        func mayRead(_ topic: TopicName) -> Bool { true }

        func without(_ name: String) -> any TopicReader { name == self.name ? NoReader() : self }
    }

    // MARK: Clean and kept members

    private final class CleanMember: SharedMember {
        let load = SharedLoad()
        let reader: (any TopicReader)?
        var received: [String] = []
        var unacknowledged: [Publication] = []

        init(reader: (any TopicReader)? = nil) { self.reader = reader }

        func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
            received.append(String(buffer: delivery.publication.payload))
            unacknowledged.append(delivery.publication)
            load.add()
        }
    }

    private func join(
        _ loops: ManualLoops,
        _ index: Int,
        isFiltered: Bool = false,
        _ member: CleanMember
    ) throws -> SharedSubscription {
        let filter = try #require(TopicFilter("t"))
        let shard = loops.shard(index)
        let options = SubscriptionOptions(qos: .exactlyOnce, isFiltered: isFiltered)
        let held = loops[index].run { shard.subscribe(member, sharing: "team", to: filter, options: options) }
        loops.settle()
        return held
    }

    /// Publishes as a publisher does: through the live path and through the store.
    private func publish(_ text: String, qos: QoS = .atLeastOnce, _ loops: ManualLoops) async throws {
        let topic = try #require(TopicName("t"))
        let targets = sessions.targets(of: topic)
        let shard = loops.shard(1)
        let publication = Publication(topic: topic, payload: ByteBuffer(string: text), kind: .plain, qos: qos)
            .deciding(DecidedShares(targets))
        loops[1].run { _ = shard.publish(publication) }
        let stored = StoredPublication(publication, publishedAt: time.now())
        try await asking { sessions.publish(stored, targets: targets, completion: $0) }
        loops.settle()
    }

    @Test func `clean and kept members take turns`() async throws {
        let loops = ManualLoops(2)
        loops.plane.share(with: sessions)
        let clean = [CleanMember(), CleanMember()]
        let held = try clean.enumerated().map { try join(loops, $0, $1) }
        let (kept, connection) = try await member("kept", once)
        for number in 0..<9 { try await publish("\(number)", loops) }
        #expect(clean.map(\.received.count) == [3, 3])
        #expect(try await texts(kept).count == 3)
        let all = clean.flatMap(\.received) + (try await texts(kept))
        #expect(all.sorted() == (0..<9).map(String.init))
        // A member that is away gets nothing while other members are connected.
        sessions.detach(kept, connection, sentUpTo: 3, expiry: .seconds(600))
        try await publish("away", loops)
        #expect(clean.flatMap(\.received).contains("away"))
        // Only the member that is away is left. It gets the publications that the other members have not acknowledged.
        for (index, held) in held.enumerated() {
            let shard = loops.shard(index)
            loops[index].run { shard.unsubscribe(held, givingBack: clean[index].unacknowledged) }
            loops.settle()
        }
        let count = 10
        while try await texts(kept).count < count { await Task.yield() }
        #expect(try await texts(kept).sorted() == ((0..<9).map(String.init) + ["away"]).sorted())
    }

    @Test func `a kept member leaves its jobs to a clean one`() async throws {
        let loops = ManualLoops(2)
        loops.plane.share(with: sessions)
        let (kept, connection) = try await member("kept", once)
        for number in 0..<3 { try await publish("\(number)", loops) }
        let clean = CleanMember()
        _ = try join(loops, 1, clean)
        sessions.detach(kept, connection, sentUpTo: 3, expiry: .zero)
        _ = try await sessions.attached("kept", clean: true, expiry: .zero)
        loops.settle()
        #expect(clean.received == ["0", "1", "2"])
    }

    @Test func `a clean member that may not read is no candidate`() async throws {
        let loops = ManualLoops(2)
        loops.plane.share(with: sessions)
        let denied = CleanMember(reader: NoReader())
        _ = try join(loops, 0, isFiltered: true, denied)
        let clean = CleanMember()
        let held = try join(loops, 1, clean)
        for number in 0..<4 { try await publish("\(number)", loops) }
        #expect(denied.received == [])
        #expect(clean.received == ["0", "1", "2", "3"])
        let (kept, _) = try await member("kept", once)
        let shard = loops.shard(1)
        loops[1].run { shard.unsubscribe(held, givingBack: []) }
        loops.settle()
        for number in 4..<6 { try await publish("\(number)", loops) }
        #expect(denied.received == [])
        #expect(try await texts(kept) == ["4", "5"])
    }

    private final class NoReader: TopicReader {
        func mayRead(_ topic: TopicName) -> Bool { false }
    }
}
