// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// Publications for kept members of shared subscriptions, together with other operations that wait for a commit.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct DurableSharedCommitTests {
    private let time = ManualTime()
    private let once = SubscriptionOptions(qos: .atLeastOnce)

    /// Creates a session with a shared subscription to `t`.
    private func member(
        _ name: String,
        of sessions: DurableSessions
    ) async throws -> (id: DurableSessionID, connection: RecordingConnection) {
        let (opening, connection) = try await sessions.attached(name)
        try await sessions.subscribed(opening.id, "$share/team/t", once)
        return (opening.id, connection)
    }

    /// Creates an absent member. It gets a publication only if no connected member can accept it.
    private func absentMember(_ name: String, of sessions: DurableSessions) async throws -> DurableSessionID {
        let (id, connection) = try await member(name, of: sessions)
        sessions.detach(id, connection, sentUpTo: 0, expiry: .seconds(600))
        return id
    }

    private func texts(_ id: DurableSessionID, of sessions: DurableSessions) async throws -> [String] {
        try await sessions.page(of: id).publications.map { String(buffer: $0.publication.payload) }
    }

    /// Makes the committer wait within a commit, so that the next operations also wait, and are committed together.
    private func holdUp(_ sessions: DurableSessions, _ store: FakeSessionStore, by id: DurableSessionID) async {
        store.close()
        sessions.receivedReleased(id, 1) { _ in }
        await store.untilHeldUp()
    }

    /// Publishes to all subscribers of `t`, without waiting for the commit.
    private func publish(
        _ text: String,
        qos: QoS = .atLeastOnce,
        retains: Bool = false,
        from publisher: DurableSessionID? = nil,
        receivedID: UInt16? = nil,
        of sessions: DurableSessions,
        _ results: Collector<Bool>
    ) throws {
        let topic = try #require(TopicName("t"))
        let publication = StoredPublication(
            topic: topic,
            payload: ByteBuffer(string: text),
            qos: qos,
            retain: retains,
            publishedAt: time.now()
        )
        sessions.publish(
            publication,
            targets: sessions.targets(of: topic),
            from: publisher,
            receivedID: receivedID,
            retains: retains
        ) { results.add($0.isSuccess) }
    }

    @Test(arguments: [false, true])
    func `what a member gets in the commit that ends its connection goes to another, also with a clean start`(
        _ startsClean: Bool
    ) async throws {
        let store = FakeSessionStore()
        let sessions = DurableSessions(store: store, time: time)
        let other = try await absentMember("another", of: sessions)
        // The queue of this member never contained a shared publication.
        let (one, connection) = try await member("one", of: sessions)
        await holdUp(sessions, store, by: other)
        let published = Collector<Bool>()
        let attached = Collector<Bool>()
        func comeBack() {
            let key = SessionKey(owner: .subject("ann"), clientID: "one")
            sessions.attach(key, clean: true, expiry: .zero, attachment: RecordingConnection()) {
                attached.add($0.isSuccess)
            }
        }
        try publish("1", of: sessions, published)
        sessions.detach(one, connection, sentUpTo: 0, expiry: startsClean ? .seconds(60) : .zero)
        if startsClean { comeBack() }
        store.letThrough(100)
        #expect(await published.next(1) == [true])
        if !startsClean { comeBack() }
        // The old session is removed first.
        #expect(await attached.next(1) == [true])
        #expect(try await texts(other, of: sessions) == ["1"])
        let isTogether = store.commits.contains { commit in
            let isPublished = commit.contains { if case .publish = $0 { true } else { false } }
            let isClosed = commit.contains { if case .close = $0 { true } else { false } }
            return isPublished && isClosed
        }
        #expect(isTogether)
        await sessions.shutdown()
    }

    @Test(arguments: [false, true])
    func `a member with an empty queue is removed, also after a restart`(_ restarts: Bool) async throws {
        let store = FakeSessionStore()
        var sessions = DurableSessions(store: store, time: time)
        let (one, connection) = try await member("one", of: sessions)
        sessions.detach(one, connection, sentUpTo: 0, expiry: .seconds(600))
        // This attachment is completed after the end of the connection is committed.
        let other = try await member("another", of: sessions).id
        if restarts {
            await sessions.shutdown()
            sessions = DurableSessions(store: store, time: time)
            try await sessions.load()
        }
        _ = try await sessions.attached("one", clean: true, expiry: .zero)
        #expect(try await store.sessions().map(\.id) == [other])
        #expect(sessions.statistics.sessions == 1)
        #expect(sessions.statistics.handedOver == 0)
        #expect(sessions.statistics.dropped == 0)
        await sessions.shutdown()
    }

    @Test func `a publication that looks for a member is not retained in place of a newer one`() async throws {
        let store = FakeSessionStore(StoreSettings(maxQueuedBytes: 1_000))
        let sessions = DurableSessions(store: store, time: time)
        let other = try await absentMember("another", of: sessions)
        let (one, _) = try await member("one", of: sessions)
        let publisher = try await sessions.attached("publisher").opening.id
        // The queue of the member reaches its limit of bytes. This is known only when a publication is stored.
        try await sessions.published(String(repeating: "x", count: 1_000), to: "t")
        #expect(try await texts(one, of: sessions).count == 1)
        await holdUp(sessions, store, by: publisher)
        let results = Collector<Bool>()
        try publish("1", qos: .exactlyOnce, retains: true, from: publisher, receivedID: 5, of: sessions, results)
        try publish("2", retains: true, from: publisher, of: sessions, results)
        store.letThrough(100)
        #expect(await results.next(2) == [true, true])
        let topic = try #require(TopicName("t"))
        let retained = try await store.retained(of: [topic]).map { String(buffer: $0.payload) }
        #expect(retained == ["2"])
        #expect(sessions.retained.publication(of: topic).map { String(buffer: $0.payload) } == "2")
        #expect(try await texts(other, of: sessions) == ["1", "2"])
        await sessions.shutdown()
    }
}
