// Hermes
// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
package import HermesCore
internal import NIOCore
internal import Synchronization

/// A store of sessions in memory. A test decides which of its commits fail or wait.
package final class ScriptedSessionStore: SessionStore {
    private struct State {
        var commits = 0
        var failing: Set<Int> = []
        var refused: (@Sendable (SessionOperation) -> Bool)?
        var failures = 0
        var gate: DispatchSemaphore?
    }

    /// The store into which the successful commits go.
    package let base = MemoryStore()
    private let state = Mutex(State())

    package init() {}

    // MARK: What is to happen

    /// Makes the commits with these numbers fail. The next commit has the number 1.
    package func fail(_ numbers: Set<Int>) {
        state.withLock { state in
            state.commits = 0
            state.failing = numbers
        }
    }

    /// Makes each commit fail from now on if one of its operations is to be refused.
    package func fail(where isRefused: @escaping @Sendable (SessionOperation) -> Bool) {
        state.withLock { $0.refused = isRefused }
    }

    /// Lets all commits succeed from now on.
    package func recover() {
        state.withLock { state in
            state.failing = []
            state.refused = nil
        }
    }

    /// Makes each commit wait for ``open()`` from now on.
    package func close() { state.withLock { $0.gate = DispatchSemaphore(value: 0) } }

    /// Lets the waiting commits and all later ones proceed.
    package func open() {
        let gate = state.withLock { state in
            defer { state.gate = nil }
            return state.gate
        }
        for _ in 0..<10 { gate?.signal() }
    }

    // MARK: What has happened

    /// The number of commits since ``fail(_:)``.
    package var commits: Int { state.withLock { $0.commits } }

    /// The number of failed commits.
    package var failures: Int { state.withLock { $0.failures } }

    /// Returns the filters that a restarted server would find for a client.
    package func filters(_ clientID: String) async throws -> Set<String> {
        let session = try await base.sessions().first { $0.key.clientID == clientID }
        return Set(session?.subscriptions.map(\.filter) ?? [])
    }

    /// Returns the payloads that a restarted server would find in a client's queue.
    package func texts(_ clientID: String) async throws -> [String] {
        guard let session = try await base.sessions().first(where: { $0.key.clientID == clientID }) else { return [] }
        return try await base.queued(of: session.id, after: 0, limit: 100, maxBytes: .max)
            .map { String(buffer: $0.publication.payload) }
    }

    /// Returns the retained payloads that a restarted server would find.
    package func retainedTexts() async throws -> Set<String> {
        Set(try await base.retained().map { String(buffer: $0.payload) })
    }

    // MARK: SessionStore

    package var queues: QueueBudget { base.queues }

    package func commit(
        _ operations: [SessionOperation],
        now: Timestamp
    ) throws(HermesError) -> [SessionOutcome] {
        state.withLock { $0.gate }?.wait()
        // Commits with only acknowledgements do not count: the server makes them later, and no client waits for their
        // outcome.
        let isLazy = operations.allSatisfy { if case .completed = $0 { true } else { false } }
        let fails = state.withLock { state in
            guard !isLazy else { return false }
            state.commits += 1
            let fails = state.failing.contains(state.commits) || operations.contains { state.refused?($0) ?? false }
            if fails { state.failures += 1 }
            return fails
        }
        if fails { throw HermesError(.storageUnavailable, "the disk is full") }
        return try base.commit(operations, now: now)
    }

    package func sessions() async throws(HermesError) -> [StoredSession] { try await base.sessions() }

    package func queued(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage {
        try await base.queued(of: session, after: seq, limit: limit, maxBytes: maxBytes)
    }

    package func shared(
        of session: DurableSessionID,
        after seq: UInt64,
        limit: Int,
        maxBytes: Int
    ) async throws(HermesError) -> QueuePage {
        try await base.shared(of: session, after: seq, limit: limit, maxBytes: maxBytes)
    }

    package func retained(of topics: [TopicName]) async throws(HermesError) -> [StoredPublication] {
        try await base.retained(of: topics)
    }

    package func retained(
        after topic: TopicName?,
        limit: Int
    ) async throws(HermesError) -> (publications: [StoredPublication], next: TopicName?) {
        try await base.retained(after: topic, limit: limit)
    }

    package func purgeSessions(
        now: Timestamp,
        limit: Int,
        sentUpTo: @escaping @Sendable (DurableSessionID) -> UInt64
    ) async throws(HermesError) -> SessionPurge {
        try await base.purgeSessions(now: now, limit: limit, sentUpTo: sentUpTo)
    }
}
