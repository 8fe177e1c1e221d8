// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Synchronization
import Testing

@testable import HermesCore

/// A message of a shared subscription leaves the queue of a kept member only for a member that will not lose it.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DurableMovingTests {
    private let store = FakeSessionStore()
    private let time = ManualTime()
    private let sessions: DurableSessions
    private let once = SubscriptionOptions(qos: .atLeastOnce)

    init() { sessions = DurableSessions(store: store, time: time) }

    /// The permissions of a client that accepts only messages up to a length.
    private final class SizeReader: TopicReader {
        let maxMessageBytes: Int

        init(_ maxMessageBytes: Int) { self.maxMessageBytes = maxMessageBytes }

        func mayRead(_ topic: TopicName) -> Bool { true }
    }

    /// The permissions of a client, which count how often they are checked.
    private final class CountingReader: TopicReader {
        private let asked = Atomic(0)

        var count: Int { asked.load(ordering: .relaxed) }

        func mayRead(_ topic: TopicName) -> Bool {
            asked.add(1, ordering: .relaxed)
            return true
        }
    }

    private final class CleanMember: SharedMember {
        let load = SharedLoad()
        let reader: (any TopicReader)?
        var received: [String] = []

        init(reader: (any TopicReader)? = nil) { self.reader = reader }

        func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
            received.append(String(buffer: delivery.publication.payload))
        }
    }

    private func join(_ loops: ManualLoops, _ index: Int, qos: QoS, _ member: CleanMember) throws {
        let filter = try #require(TopicFilter("t"))
        let shard = loops.shard(index)
        let options = SubscriptionOptions(qos: qos)
        _ = loops[index].run { shard.subscribe(member, sharing: "team", to: filter, options: options) }
        loops.settle()
    }

    /// Creates a connected kept member.
    private func member(
        _ name: String,
        of sessions: DurableSessions,
        qos: QoS = .atLeastOnce,
        reader: (any TopicReader)? = nil
    ) async throws -> (id: DurableSessionID, connection: RecordingConnection) {
        let (opening, connection) = try await sessions.attached(name, RecordingConnection(reader: reader))
        try await sessions.subscribed(opening.id, "$share/team/t", SubscriptionOptions(qos: qos))
        return (opening.id, connection)
    }

    /// Ends the connection of a kept member.
    private func leave(
        _ member: (id: DurableSessionID, connection: RecordingConnection),
        of sessions: DurableSessions
    ) async throws {
        sessions.detach(member.id, member.connection, sentUpTo: 0, expiry: .seconds(3_600))
        // This attachment is completed after the end of the connection is committed.
        _ = try await sessions.attached("somebody else")
    }

    private func texts(_ id: DurableSessionID, of sessions: DurableSessions) async throws -> [String] {
        try await sessions.page(of: id).publications.map { String(buffer: $0.publication.payload) }
    }

    /// Passes on the first message of a session.
    private func passOn(
        of id: DurableSessionID,
        isTooLarge: Bool = false,
        _ sessions: DurableSessions
    ) async throws -> Bool {
        let page = try await sessions.page(of: id)
        let queued = try #require(page.publications.first)
        return await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            sessions.passOn(queued, of: id, isTooLarge: isTooLarge) { continuation.resume(returning: $0) }
        }
    }

    /// Passes on all messages of a session while the store fails. Afterwards, the messages wait for their next try.
    private func failToPassOn(
        of id: DurableSessionID,
        isTooLarge: Bool = false,
        _ answers: Collector<Bool> = Collector()
    ) async throws {
        let messages = try await sessions.page(of: id).publications
        store.fail(.max)
        for queued in messages { sessions.passOn(queued, of: id, isTooLarge: isTooLarge) { answers.add($0) } }
        while sessions.shared.state.withLock({ $0.delayedMoves[id]?.messages.count ?? 0 }) < messages.count {
            try Task.checkCancellation()
            await Task.yield()
        }
        store.fail(0)
    }

    @Test func `what an absent member has stays there if the connected ones could lose it`() async throws {
        let loops = ManualLoops(2)
        loops.plane.share(with: sessions)
        let kept = try await member("kept", of: sessions)
        // A packet has some bytes in addition to topic and payload, so the second message is too large, too.
        let large = [String(repeating: "x", count: 500), String(repeating: "y", count: 95)]
        for text in large + ["small"] { try await sessions.published(text, to: "t") }
        try await leave(kept, of: sessions)
        let (small, unsure) = (CleanMember(reader: SizeReader(100)), CleanMember())
        try join(loops, 0, qos: .atLeastOnce, small)
        try join(loops, 1, qos: .atMostOnce, unsure)
        _ = try await member("small", of: sessions, reader: SizeReader(20))
        time.advance(by: .seconds(61))
        sessions.redistribute(now: time.now())
        while small.received.isEmpty || sessions.statistics.handedOver == 0 {
            try Task.checkCancellation()
            loops.settle()
            await Task.yield()
        }
        #expect(small.received == ["small"])
        #expect(unsure.received == [])
        #expect(sessions.statistics.handedOver == 1)
        #expect(try await texts(kept.id, of: sessions) == large)
        await sessions.shutdown()
    }

    @Test(arguments: [QoS.atMostOnce, .atLeastOnce])
    func `what is new goes to an absent member rather than to a slow one that could lose it`(qos: QoS) async throws {
        let loops = ManualLoops(2)
        loops.plane.share(with: sessions)
        let absent = try await member("absent", of: sessions)
        try await leave(absent, of: sessions)
        let clean = CleanMember()
        try join(loops, 0, qos: qos, clean)
        try await sessions.published("1", to: "t")
        clean.load.fallBehind()
        try await sessions.published("2", to: "t")
        clean.load.catchUp()
        try await sessions.published("3", to: "t")
        loops.settle()
        // With QoS 1, the slow member keeps the publication until it can be sent.
        #expect(clean.received == (qos == .atMostOnce ? ["1", "3"] : ["1", "2", "3"]))
        #expect(try await texts(absent.id, of: sessions) == (qos == .atMostOnce ? ["2"] : []))
        await sessions.shutdown()
    }

    @Test func `what has expired goes to no other member`() async throws {
        let loops = ManualLoops(2)
        loops.plane.share(with: sessions)
        let kept = try await member("kept", of: sessions)
        let soon = PublicationDetails(expiresAt: time.now().advanced(by: .seconds(30)))
        try await sessions.published("old", to: "t", details: soon)
        try await sessions.published("new", to: "t")
        try await leave(kept, of: sessions)
        let clean = CleanMember()
        try join(loops, 0, qos: .atLeastOnce, clean)
        time.advance(by: .seconds(61))
        sessions.redistribute(now: time.now())
        while clean.received.isEmpty || sessions.statistics.handedOver == 0 {
            try Task.checkCancellation()
            loops.settle()
            await Task.yield()
        }
        #expect(clean.received == ["new"])
        #expect(sessions.statistics.handedOver == 1)
        await sessions.shutdown()
    }

    @Test(arguments: [true, false])
    func `what a member leaves when it ends goes to an absent one rather than to one that could lose it`(
        isTooLarge: Bool
    ) async throws {
        let loops = ManualLoops(2)
        loops.plane.share(with: sessions)
        let (one, connection) = try await member("one", of: sessions)
        let jobs = (1...3).map { "\($0)" + String(repeating: "x", count: 200) }
        for text in jobs { try await sessions.published(text, to: "t") }
        let absent = try await member("absent", of: sessions, reader: SizeReader(isTooLarge ? 100 : 1_000))
        try await leave(absent, of: sessions)
        let clean = CleanMember(reader: SizeReader(isTooLarge ? 100 : 1_000))
        try join(loops, 0, qos: isTooLarge ? .atLeastOnce : .atMostOnce, clean)
        sessions.detach(one, connection, sentUpTo: 0, expiry: .zero)
        // The old session is removed first.
        _ = try await sessions.attached("one", clean: true, expiry: .zero)
        loops.settle()
        #expect(clean.received == [])
        #expect(try await texts(absent.id, of: sessions) == jobs)
        await sessions.shutdown()
    }

    @Test func `a member at the end of a large group is found if all before it could lose what moves`() throws {
        let options = CombinedOptions(SubscriptionOptions(qos: .atLeastOnce))
        let members = (0..<DurableGroup.window + 36).map { number in
            let load = DurableLoad(owner: .subject("ann"))
            load.isOnline.store(true, ordering: .relaxed)
            load.setReader(SizeReader(10))
            return DurableMember(session: DurableSessionID(rawValue: Int64(number + 1)), options: options, load: load)
        }
        let last = try #require(members.last)
        last.load.setReader(SizeReader(1_000))
        let filter = try #require(TopicFilter("t"))
        let group = DurableGroup(name: "g", filter: filter, members: members, turn: DurableGroup.Turn())
        let publication = StoredPublication(
            topic: try #require(TopicName("t")),
            payload: ByteBuffer(string: String(repeating: "x", count: 100)),
            qos: .atLeastOnce,
            publishedAt: time.now()
        )
        for doubtful in [DurableGroup.Doubtful.last, .never] {
            let excluded = DurableGroup.Exclusions(doubtful: doubtful)
            let choice = group.choose(for: publication, live: nil, in: nil, excluding: excluded)
            guard case .kept(let member) = choice else {
                Issue.record("no kept member was chosen")
                continue
            }
            #expect(member.session == last.session)
        }
        last.load.setReader(SizeReader(10))
        let never = DurableGroup.Exclusions(doubtful: .never)
        #expect(group.choose(for: publication, live: nil, in: nil, excluding: never) == nil)
    }

    @Test func `what cannot be passed on because the store fails stays`() async throws {
        let (one, _) = try await member("one", of: sessions)
        try await sessions.published("1", to: "t")
        let (other, _) = try await member("another", of: sessions)
        try await failToPassOn(of: one)
        #expect(try await texts(one, of: sessions) == ["1"])
        #expect(try await passOn(of: one, sessions))
        #expect(try await texts(one, of: sessions) == [])
        #expect(try await texts(other, of: sessions) == ["1"])
        await sessions.shutdown()
    }

    @Test(arguments: [true, false], [QoS.atLeastOnce, .exactlyOnce])
    func `what the store failed to pass on is tried again after growing pauses, until the connection ends`(
        ends: Bool,
        qos: QoS
    ) async throws {
        let (one, connection) = try await member("one", of: sessions, qos: qos)
        try await sessions.published("1", to: "t", qos: qos)
        let (other, _) = try await member("another", of: sessions, qos: qos)
        try await failToPassOn(of: one)
        /// Returns the number of commits of a pass.
        func pass() async throws -> Int {
            let before = store.commits.count
            sessions.redistribute(now: time.now())
            while sessions.handOvers.running > 0 {
                try Task.checkCancellation()
                await Task.yield()
            }
            return store.commits.count - before
        }
        let pauses = [10, 20, 40]
        for pause in pauses {
            time.advance(by: .seconds(pause - 1))
            #expect(try await pass() == 0)
            let isLast = pause == pauses.last
            if isLast, ends {
                sessions.detach(one, connection, sentUpTo: 0, expiry: .seconds(3_600))
                _ = try await sessions.attached("one")
            }
            if !isLast { store.fail(1) }
            time.advance(by: .seconds(1))
            #expect(try await pass() == (isLast && ends ? 0 : 1))
        }
        // A new connection decides anew what its client can get.
        #expect(try await texts(one, of: sessions) == (ends ? ["1"] : []))
        #expect(try await texts(other, of: sessions) == (ends ? [] : ["1"]))
        await sessions.shutdown()
    }

    @Test(arguments: [true, false])
    func `what has not left the queue when the connection ends stays for the next connection`(
        isRetry: Bool
    ) async throws {
        let (one, connection) = try await member("one", of: sessions)
        try await sessions.published("1", to: "t")
        let (other, _) = try await member("another", of: sessions)
        if isRetry { try await failToPassOn(of: one) }
        store.close()
        // This operation holds up the following ones.
        sessions.receivedReleased(other, 1) { _ in }
        await store.untilHeldUp()
        if isRetry {
            time.advance(by: .seconds(10))
            sessions.redistribute(now: time.now())
        } else {
            let page = try await sessions.page(of: one)
            let queued = try #require(page.publications.first)
            sessions.passOn(queued, of: one, isTooLarge: false) { _ in }
        }
        while sessions.committer.statistics.waiting < 2 {
            try Task.checkCancellation()
            await Task.yield()
        }
        sessions.detach(one, connection, sentUpTo: 0, expiry: .seconds(3_600))
        store.letThrough(10)
        _ = try await sessions.attached("one")
        #expect(try await texts(one, of: sessions) == ["1"])
        #expect(try await texts(other, of: sessions) == [])
        await sessions.shutdown()
    }

    @Test func `the next try moves all messages in one commit, and tells the connection what nobody can get`()
        async throws
    {
        let (one, _) = try await member("one", of: sessions)
        let large = String(repeating: "x", count: 500)
        for text in ["1", large, "2"] { try await sessions.published(text, to: "t") }
        let (other, _) = try await member("another", of: sessions, reader: SizeReader(100))
        let big = try await member("big", of: sessions, reader: SizeReader(1_000))
        let answers = Collector<Bool>()
        try await failToPassOn(of: one, isTooLarge: true, answers)
        // The only member that accepts the long message leaves.
        sessions.detach(big.id, big.connection, sentUpTo: 0, expiry: .zero)
        _ = try await sessions.attached("big", clean: true, expiry: .zero)
        let before = store.commits.count
        time.advance(by: .seconds(10))
        sessions.redistribute(now: time.now())
        let taken = await answers.next(3).filter { $0 }
        #expect(taken.count == 2)
        #expect(store.commits.count == before + 1)
        #expect(try await texts(one, of: sessions) == [large])
        #expect(try await texts(other, of: sessions) == ["1", "2"])
        await sessions.shutdown()
    }

    /// Returns a group on topic `t` with one kept member.
    private func groupOfOne(_ load: DurableLoad) throws -> DurableGroup {
        let options = CombinedOptions(SubscriptionOptions(qos: .atLeastOnce))
        let member = DurableMember(session: DurableSessionID(rawValue: 1), options: options, load: load)
        let filter = try #require(TopicFilter("t"))
        return DurableGroup(name: "team", filter: filter, members: [member], turn: DurableGroup.Turn())
    }

    /// Returns a publication to topic `t`.
    private func publication() throws -> StoredPublication {
        StoredPublication(
            topic: try #require(TopicName("t")),
            payload: ByteBuffer(string: "x"),
            qos: .atLeastOnce,
            publishedAt: time.now()
        )
    }

    @Test func `a choice among many slow members that could lose a publication looks at few of them`() throws {
        let loops = ManualLoops(1)
        loops.plane.share(with: sessions)
        var slow: [CleanMember] = []
        for _ in 0..<2 * DurableGroup.window {
            let member = CleanMember()
            try join(loops, 0, qos: .atMostOnce, member)
            member.load.fallBehind()
            slow.append(member)
        }
        let reader = CountingReader()
        let load = DurableLoad(owner: .subject("ann"))
        load.setReader(reader)
        let group = try groupOfOne(load)
        let publication = try self.publication()
        let live = try #require(sessions.shared.live.withLock { $0 })
        // The choice begins at another member each time.
        let count = slow.count + 1
        for _ in 0..<count { _ = group.choose(for: publication, live: live, in: nil) }
        #expect(reader.count == DurableGroup.window)
    }

    @Test func `a connected member at the end of a large group is found if only slow and absent ones are before it`()
        throws
    {
        let loops = ManualLoops(1)
        loops.plane.share(with: sessions)
        let slow = (0..<2 * DurableGroup.window).map { _ in CleanMember() }
        for member in slow {
            try join(loops, 0, qos: .atMostOnce, member)
            member.load.fallBehind()
        }
        let last = CleanMember()
        try join(loops, 0, qos: .atMostOnce, last)
        // The first choice begins at the absent member.
        let group = try groupOfOne(DurableLoad(owner: .subject("ann")))
        let publication = try self.publication()
        let live = try #require(sessions.shared.live.withLock { $0 })
        guard case .live(let choice) = group.choose(for: publication, live: live, in: nil) else {
            Issue.record("no connected member was chosen")
            return
        }
        #expect(choice.seat.load === last.load)
    }

    @Test func `what is passed on counts for the owner of the session, at the first try and later`() async throws {
        let limits = CommitLimits(maxWaiting: 80)
        let sessions = DurableSessions(store: store, time: time, settings: DurableSettings(commit: limits))
        let (one, _) = try await member("one", of: sessions)
        let count = 30
        for number in 0..<count { try await sessions.published("\(number)", to: "t") }
        let (other, _) = try await member("another", of: sessions)
        let messages = try await sessions.page(of: one).publications
        store.close()
        // This operation holds up the following ones.
        sessions.receivedReleased(other, 1) { _ in }
        await store.untilHeldUp()
        let answers = Collector<Bool>()
        for queued in messages { sessions.passOn(queued, of: one, isTooLarge: false) { answers.add($0) } }
        // A source may use an eighth of the queue. The other messages wait for their next try.
        let share = limits.maxWaiting / 8
        func delayed() -> Int { sessions.shared.state.withLock { $0.delayedMoves[one]?.messages.count ?? 0 } }
        #expect(delayed() == count - share)
        time.advance(by: .seconds(10))
        sessions.redistribute(now: time.now())
        while sessions.handOvers.running > 0 {
            try Task.checkCancellation()
            await Task.yield()
        }
        #expect(delayed() == count - share)
        #expect(sessions.statistics.commits.waiting == share + 1)
        store.letThrough(1_000)
        _ = await answers.next(share)
        time.advance(by: .seconds(20))
        sessions.redistribute(now: time.now())
        _ = await answers.next(count - share)
        #expect(try await texts(one, of: sessions) == [])
        #expect(try await texts(other, of: sessions).count == count)
        await sessions.shutdown()
    }

    @Test func `what is passed on finds a second member if the queue of the first is full`() async throws {
        let sessions = DurableSessions(store: FakeSessionStore(StoreSettings(maxQueuedBytes: 1_000)), time: time)
        let (one, _) = try await member("one", of: sessions)
        let job = String(repeating: "y", count: 150)
        try await sessions.published(job, to: "t")
        let (full, _) = try await member("full", of: sessions)
        let (other, _) = try await member("another", of: sessions)
        // The queue of this member reaches its limit of bytes. This is known only when a publication is stored.
        try await sessions.subscribed(full, "big", once)
        try await sessions.published(String(repeating: "x", count: 1_000), to: "big")
        // The first member is chosen first, because fewer publications wait for it.
        try await sessions.subscribed(other, "many", once)
        for _ in 0..<2 { try await sessions.published("x", to: "many") }
        #expect(try await passOn(of: one, sessions))
        #expect(try await texts(one, of: sessions) == [])
        #expect(try await texts(full, of: sessions).count == 1)
        #expect(try await texts(other, of: sessions) == ["x", "x", job])
        await sessions.shutdown()
    }

    @Test func `what is too large goes to a member that is absent since before a restart`() async throws {
        let unknown = try await member("unknown", of: sessions)
        try await leave(unknown, of: sessions)
        await sessions.shutdown()
        let later = DurableSessions(store: store, time: time)
        try await later.load()
        let (one, _) = try await member("one", of: later, reader: SizeReader(1_000))
        try await later.published("1", to: "t")
        #expect(try await texts(one, of: later) == ["1"])
        #expect(try await passOn(of: one, isTooLarge: true, later))
        #expect(try await texts(unknown.id, of: later) == ["1"])
        await later.shutdown()
    }
}
