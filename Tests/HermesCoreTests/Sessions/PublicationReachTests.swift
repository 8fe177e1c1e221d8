// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import HermesCore

/// Publications that fail after some subscribers have got them.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct PublicationReachTests {
    private let time = ManualTime()
    private let once = SubscriptionOptions(qos: .atLeastOnce)

    /// Publishes with QoS 1 to all subscribers of `t`. The publication must fail.
    ///
    /// - Returns: whether some subscribers have the publication although it has failed.
    private func failsPartly(_ sessions: DurableSessions) async throws -> Bool {
        let topic = try #require(TopicName("t"))
        let publication = StoredPublication(
            topic: topic,
            payload: ByteBuffer(string: "x"),
            qos: .atLeastOnce,
            publishedAt: time.now()
        )
        let reach = PublicationReach()
        let results = Collector<Bool>()
        sessions.publish(publication, targets: sessions.targets(of: topic), reach: reach) {
            results.add($0.isSuccess)
        }
        #expect(await results.next(1) == [false])
        return reach.isPartial
    }

    @Test func `a single commit that fails reaches nobody`() async throws {
        let store = FakeSessionStore()
        let sessions = DurableSessions(store: store, time: time)
        let id = try await sessions.attached("one").opening.id
        try await sessions.subscribed(id, "t", once)
        store.fail(1)
        #expect(try await !failsPartly(sessions))
        await sessions.shutdown()
    }

    @Test(arguments: [false, true])
    func `a commit for another member of a shared subscription fails when others have the publication, or nobody has`(
        _ hasOthers: Bool
    ) async throws {
        let store = FakeSessionStore(StoreSettings(maxQueuedBytes: 1_000))
        let sessions = DurableSessions(store: store, time: time)
        let (absent, connection) = try await sessions.attached("absent")
        try await sessions.subscribed(absent.id, "$share/team/t", once)
        sessions.detach(absent.id, connection, sentUpTo: 0, expiry: .seconds(600))
        let one = try await sessions.attached("one").opening.id
        try await sessions.subscribed(one, "$share/team/t", once)
        // The queue of the member reaches its limit of bytes. This is known only when a publication is stored.
        try await sessions.published(String(repeating: "x", count: 1_000), to: "t")
        if hasOthers {
            let other = try await sessions.attached("another").opening.id
            try await sessions.subscribed(other, "t", once)
        }
        store.fail(1, after: 1)
        #expect(try await failsPartly(sessions) == hasOthers)
        await sessions.shutdown()
    }
}
