// Hermes
// SPDX-License-Identifier: Apache-2.0

package import HermesCore
import NIOCore

/// A store of sessions, with shortcuts for tests.
package struct SessionWorld: Sendable {
    package let store: any Store

    package init(_ store: any Store) { self.store = store }

    /// Returns the topic with this name. For literals in tests only.
    package static func topic(_ text: String) -> TopicName {
        guard let topic = TopicName(text) else { preconditionFailure("not a topic: \(text)") }
        return topic
    }

    package func topic(_ text: String) -> TopicName { Self.topic(text) }

    package func publication(
        _ text: String,
        topic name: String = "t",
        _ details: PublicationDetails? = nil
    ) -> StoredPublication {
        Self.publication(text, topic: name, details)
    }

    /// Returns a publication of QoS 2.
    package static func publication(
        _ text: String,
        topic name: String = "t",
        _ details: PublicationDetails? = nil
    ) -> StoredPublication {
        StoredPublication(
            topic: topic(name),
            payload: ByteBuffer(string: text),
            qos: .exactlyOnce,
            details: details,
            publishedAt: StoreWorld.now
        )
    }

    /// Commits one operation.
    package func commit(_ operation: SessionOperation) throws -> SessionOutcome {
        let outcomes = try store.commit([operation], now: StoreWorld.now)
        try expectEqual(outcomes.count, 1)
        return outcomes[0]
    }

    /// Commits an operation whose outcome has no value. Throws for any other outcome.
    package func change(_ operation: SessionOperation) throws {
        let outcome = try commit(operation)
        switch outcome {
        case .done, .completed: return
        case .opened, .published, .moved, .refused:
            throw ConformanceFailure(description: "\(operation): \(outcome)")
        }
    }

    package func open(
        _ clientID: String,
        owner: SessionOwner = .subject("ann"),
        clean: Bool = false,
        expiry: Duration? = .seconds(60),
        from host: String? = nil
    ) throws -> StoredSession {
        let key = SessionKey(owner: owner, clientID: clientID)
        let payer = StoredSession.payer(of: owner, openedBy: host.map { CommitSource(host: $0) } ?? .server)
        let outcome = try commit(.open(key, clean: clean, expiry: expiry, payer: payer))
        guard case .opened(let session) = outcome else { throw ConformanceFailure(description: "\(outcome)") }
        try expectEqual(session.key, key)
        return session
    }

    @discardableResult
    package func publish(
        _ publication: StoredPublication,
        _ targets: [PublicationTarget],
        received: ReceivedMark? = nil,
        retains: Bool = false
    ) throws -> [UInt64] {
        let outcome = try commit(.publish(publication, targets: targets, received: received, retains: retains))
        guard case .published(let seqs) = outcome else { throw ConformanceFailure(description: "\(outcome)") }
        return seqs
    }

    @discardableResult
    package func publish(
        _ text: String,
        to sessions: [DurableSessionID],
        received: ReceivedMark? = nil
    ) throws -> [UInt64] {
        let targets = sessions.map { PublicationTarget(session: $0, qos: .exactlyOnce) }
        return try publish(publication(text), targets, received: received)
    }

    /// Returns all waiting publications, each as "seq:payload".
    package func queue(_ id: DurableSessionID, after seq: UInt64 = 0) async throws -> [String] {
        try await store.queued(of: id, after: seq, limit: .max >> 1, maxBytes: .max).map { queued in
            "\(queued.seq):\(String(buffer: queued.publication.payload))"
        }
    }

    /// Returns the payloads of all retained publications.
    package func retainedTexts() async throws -> [String] {
        try await store.retained().map { String(buffer: $0.payload) }.sorted()
    }

    /// Purges until nothing is left to do.
    package func purge(at now: Timestamp, limit: Int = 1000) async throws {
        for _ in 0..<10_000 where try await store.purgeSessions(now: now, limit: limit) == 0 { return }
        throw ConformanceFailure(description: "purge never comes to an end")
    }
}

extension SessionStore {
    /// Purges as if no session were open.
    ///
    /// - Returns: the number of handled rows.
    package func purgeSessions(now: Timestamp, limit: Int) async throws(HermesError) -> Int {
        try await purgeSessions(now: now, limit: limit, sentUpTo: { _ in 0 }).rows
    }
}
