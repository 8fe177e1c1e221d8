// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import Synchronization
import Testing

@testable import HermesCore

@Suite("Outbox of webhooks", .inTurns, .timeLimit(.minutes(1))) struct WebhookOutboxTests {
    /// A store whose next appends fail with the errors that a test has set.
    private final class FailingStore: WebhookStore {
        private struct State {
            var failures: [HermesError.Code] = []
            var appending: @Sendable () -> Void = {}
            var appends: [(count: Int, marks: [UserID: UInt64])] = []
        }

        private let store = MemoryStore()
        private let state = Mutex(State())

        func fail(_ codes: HermesError.Code...) { state.withLock { $0.failures = codes } }

        /// The number of events of each append, and its marks.
        var appends: [(count: Int, marks: [UserID: UInt64])] { state.withLock { $0.appends } }

        /// Sets a function that runs before each append.
        func beforeAppends(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.appending = body } }

        func appendWebhooks(
            _ events: [WebhookEvent],
            marks: [UserID: UInt64],
            limit: Int
        ) async throws(HermesError) -> Int {
            state.withLock { $0.appending }()
            state.withLock { $0.appends.append((count: events.count, marks: marks)) }
            let failure: HermesError.Code? = state.withLock { $0.failures.isEmpty ? nil : $0.failures.removeFirst() }
            if let failure { throw HermesError(failure, "the test wants it") }
            return try await store.appendWebhooks(events, marks: marks, limit: limit)
        }

        func dueWebhooks(now: Timestamp, limit: Int) async throws(HermesError) -> [StoredWebhook] {
            try await store.dueWebhooks(now: now, limit: limit)
        }

        func settleWebhooks(_ settlements: [WebhookSettlement]) async throws(HermesError) {
            try await store.settleWebhooks(settlements)
        }

        func webhookQueue() async throws(HermesError) -> (count: Int, nextDue: Timestamp?) {
            try await store.webhookQueue()
        }

        func undeliveredMark(of user: UserID) async throws(HermesError) -> UInt64 {
            try await store.undeliveredMark(of: user)
        }

        func usersWithUndelivered(after user: UserID?, limit: Int) async throws(HermesError) -> [UserID] {
            try await store.usersWithUndelivered(after: user, limit: limit)
        }
    }

    private let store = FailingStore()
    private let time = ManualTime()
    private let outbox: WebhookOutbox

    init() { outbox = WebhookOutbox(store: store, kinds: [.online, .offline], limit: 100_000, time: time) }

    private func stored() async throws -> [[String: Any]] {
        try await store.dueWebhooks(now: time.now(), limit: 1_000).map { webhook in
            try JSONSerialization.jsonObject(with: Data(webhook.event.body)) as? [String: Any] ?? [:]
        }
    }

    @Test
    func `what the store cannot take for now waits, and is stored in order, with the time at which it happened`()
        async throws
    {
        store.fail(.storageUnavailable)
        outbox.note(.online(try user(1)))
        let noted = time.now()
        await outbox.flush()
        #expect(try await stored().isEmpty)
        time.advance(by: .seconds(60))
        outbox.note(.offline(try user(1)))
        await outbox.flush()
        let events = try await stored()
        #expect(events.map { $0["type"] as? String } == ["online", "offline"])
        #expect(events.map { $0["time"] as? Int } == [Int(noted.rawValue), Int(time.now().rawValue)])
        #expect(outbox.statistics.queued == 2)
        #expect(outbox.statistics.dropped == 0)
    }

    @Test
    func `the outbox tries again by itself when the store has failed for a moment, and ends when it is cancelled`()
        async throws
    {
        store.fail(.storageUnavailable, .overloaded)
        let running = Task { [outbox] in await outbox.run() }
        outbox.note(.online(try user(1)))
        while try await stored().isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        #expect(outbox.statistics.dropped == 0)
        // The outbox also ends if it is cancelled while it waits for the store.
        store.fail(.storageUnavailable)
        let (tries, tried) = AsyncStream<Void>.makeStream()
        store.beforeAppends { tried.yield() }
        outbox.note(.offline(try user(1)))
        for await _ in tries { break }
        running.cancel()
        await running.value
        await outbox.flush()
        #expect(try await stored().count == 2)
    }

    @Test
    func `no more than the allowed number waits for a failing store`() async throws {
        let outbox = self.outbox
        let owner = try user(1)
        for _ in 0..<20_000 { outbox.note(.online(owner)) }
        store.fail(.storageUnavailable)
        // These events come while the first events are being stored.
        store.beforeAppends { for _ in 0..<200 { outbox.note(.offline(owner)) } }
        await outbox.flush()
        store.beforeAppends {}
        #expect(outbox.statistics.dropped == 200)
        outbox.note(.offline(owner))
        #expect(outbox.statistics.dropped == 201)
    }

    @Test
    func `many notices are stored in several transactions, and the marks in the last one`() async throws {
        let owner = try user(1)
        for (count, parts) in [(450, [200, 200, 50]), (400, [200, 200]), (0, [0])] {
            let before = store.appends.count
            let notices = Array(repeating: WebhookNotice.online(owner), count: count)
            try await outbox.append(notices, marks: [owner: UInt64(count)])
            let appends = store.appends[before...]
            #expect(appends.map(\.count) == parts)
            #expect(appends.dropLast().allSatisfy { $0.marks.isEmpty })
            #expect(appends.last?.marks == [owner: UInt64(count)])
        }
        #expect(outbox.statistics.queued == 850)
    }

    @Test
    func `what the store refuses for good is dropped and counted`() async throws {
        store.fail(.internalError)
        outbox.note(.online(try user(1)))
        await outbox.flush()
        await outbox.flush()
        #expect(try await stored().isEmpty)
        #expect(outbox.statistics.dropped == 1)
    }
}
