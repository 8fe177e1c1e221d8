// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

/// A store in memory that cannot purge messages.
private final class UnpurgeableStore: MessageStore {
    static let failure = HermesError(.storageUnavailable, "cannot purge")

    let base = MemoryStore()
    private let count = Mutex(0)

    /// The number of calls of ``maintain(uptime:)``.
    var maintenances: Int { count.withLock { $0 } }

    func commit(_ operations: [WriteOperation], now: Timestamp) throws(HermesError) -> [WriteOutcome] {
        try base.commit(operations, now: now)
    }

    func entries(of user: UserID, after seq: UInt64, limit: Int) async throws(HermesError) -> InboxPage {
        try await base.entries(of: user, after: seq, limit: limit)
    }

    func position(of user: UserID) async throws(HermesError) -> InboxPosition { try await base.position(of: user) }

    func history(_ query: HistoryQuery) async throws(HermesError) -> StoredHistory { try await base.history(query) }

    func conversations(
        of user: UserID,
        after place: ConversationPlace?,
        limit: Int
    ) async throws(HermesError) -> [ConversationSummary] {
        try await base.conversations(of: user, after: place, limit: limit)
    }

    func pushJobs() async throws(HermesError) -> [MessageID] { try await base.pushJobs() }

    func purge(now: Timestamp, limit: Int) async throws(HermesError) -> Int { throw Self.failure }

    func maintain(uptime: Duration) async throws(HermesError) { count.withLock { $0 += 1 } }

    func backup(to path: String) async throws(HermesError) -> Int? { 0 }
}

@Suite(.inTurns, .timeLimit(.minutes(1))) struct HousekeepingTests {
    @Test func `while messages cannot be purged, sessions are, and the files are maintained`() async throws {
        let store = UnpurgeableStore()
        let messenger = Messenger(store.base, messages: store, time: ManualTime())
        let sessions = SessionWorld(store.base)
        let id = try sessions.open("c", expiry: nil).id
        let soon = PublicationDetails(expiresAt: StoreWorld.later(.seconds(60)))
        let publication = sessions.publication("text", topic: "t", soon)
        try sessions.publish(publication, [PublicationTarget(session: id, qos: .atLeastOnce)])
        #expect(try await sessions.queue(id) == ["1:text"])
        await #expect {
            _ = try await messenger.housekeeping(now: StoreWorld.later(.seconds(61)))
        } throws: { error in
            (error as? HermesError)?.message == UnpurgeableStore.failure.message
        }
        #expect(try await sessions.queue(id).isEmpty)
        #expect(store.maintenances == 1)
        await messenger.shutdown()
    }
}
