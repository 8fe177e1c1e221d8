// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

@Suite("The queue of webhooks", .inTurns)
struct WebhookQueryTests {
    @Test(arguments: [SQLiteStore.WebhookQuery.due, SQLiteStore.WebhookQuery.line, SQLiteStore.WebhookQuery.next])
    func `no query reads what is not due`(sql: String) async throws {
        let directory = try TemporaryDirectory()
        let plan = try await directory.queryPlan(of: sql)
        #expect(!plan.isEmpty)
        for step in plan { #expect(step.hasPrefix("SEARCH "), "\(step)") }
    }

    @Test
    func `a change is committed although the task that waits for it is cancelled`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let user = try #require(UserID(rawValue: 1))
        let event = WebhookEvent(id: "1", user: user, createdAt: StoreWorld.now, body: [])
        try await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await store.appendWebhooks([event], marks: [:], limit: 10)
        }.value
        #expect(try await store.webhookQueue().count == 1)
        #expect(!store.isAwaited)
        try store.close()
    }

    @Test
    func `a change that cannot begin does not count as waiting`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(path: directory.database, configuration: configuration)
        try await other.writeWithoutTransaction { try $0.execute(sql: "BEGIN IMMEDIATE") }
        let user = try #require(UserID(rawValue: 1))
        let event = WebhookEvent(id: "1", user: user, createdAt: StoreWorld.now, body: [])
        await #expect(throws: HermesError.self) { try await store.appendWebhooks([event], marks: [:], limit: 10) }
        #expect(!store.isAwaited)
        try await other.writeWithoutTransaction { try $0.execute(sql: "ROLLBACK") }
        _ = try await store.appendWebhooks([event], marks: [:], limit: 10)
        #expect(try await store.webhookQueue().count == 1)
        try store.close()
    }

    @Test
    func `one read looks at so many inboxes; a page is empty only behind the last one`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let last = 2 * SQLiteStore.rowsPerRead + 1
        try await store.pool.write { db in
            for number in 1...last {
                try db.execute(
                    sql: "INSERT INTO inbox_head (user, head, oldest, acknowledged) VALUES (?, ?, 1, 0)",
                    arguments: [number, number < last ? 0 : 1]
                )
            }
        }
        let sql = "SELECT user FROM inbox_head WHERE user > ? AND user <= ? AND head > 0 ORDER BY user LIMIT ?"
        var (place, reads): (Int64, Int) = (0, 0)
        while reads < 9 {
            let found = try await store.pool.read { [place] db in
                let part = try SQLiteStore.users(db, sql, among: "inbox_head", after: place, limit: 10)
                #expect(part.ids == (part.end == Int64(last) ? [Int64(last)] : []))
                return part.end
            }
            guard let found else { break }
            (place, reads) = (found, reads + 1)
        }
        #expect(reads == 3)
        let user = try #require(UserID(last))
        #expect(try await store.usersWithUndelivered(after: nil, limit: 10) == [user])
        #expect(try await store.usersWithUndelivered(after: user, limit: 10).isEmpty)
        try store.close()
    }

    @Test
    func `a limit that was lowered takes effect little by little`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let users = (1...20).compactMap { UserID(rawValue: $0) }
        func events(_ number: Int) -> [WebhookEvent] {
            users.map { WebhookEvent(id: "\($0)/\(number)", user: $0, createdAt: StoreWorld.now, body: []) }
        }
        for number in 1...300 { _ = try await store.appendWebhooks(events(number), marks: [:], limit: 30_000) }
        var counts: [Int] = []
        while counts.last ?? .max > 100, counts.count < 9 {
            let before = try await store.webhookQueue().count
            let dropped = try await store.appendWebhooks(events(1_000 + counts.count), marks: [:], limit: 100)
            counts.append(try await store.webhookQueue().count)
            #expect(dropped == before + users.count - (counts.last ?? 0))
        }
        #expect(counts == [5_000, 4_000, 3_000, 2_000, 1_000, 100])
    }

    /// Makes commits fail like a full disk.
    private final class FullDisk: TransactionObserver, Sendable {
        let isFull = Mutex(true)

        func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { true }
        func databaseDidChange(with event: DatabaseEvent) {}
        func databaseWillCommit() throws {
            if isFull.withLock({ $0 }) { throw DatabaseError(resultCode: .SQLITE_FULL) }
        }
        func databaseDidCommit(_ db: Database) {}
        func databaseDidRollback(_ db: Database) {}
    }

    @Test
    func `a commit that failed does not count`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        func event(_ number: Int) -> WebhookEvent {
            WebhookEvent(id: "\(number)", user: nil, createdAt: StoreWorld.now, body: [])
        }
        #expect(try await store.appendWebhooks([event(1)], marks: [:], limit: 3) == 0)
        let first = try #require(try await store.dueWebhooks(now: StoreWorld.now, limit: 1).first)
        let full = FullDisk()
        store.pool.add(transactionObserver: full, extent: .databaseLifetime)
        for number in 2...9 {
            await #expect(throws: HermesError.self) {
                try await store.appendWebhooks([event(number)], marks: [:], limit: 3)
            }
            await #expect(throws: HermesError.self) { try await store.settleWebhooks([.done(first.number)]) }
        }
        full.isFull.withLock { $0 = false }
        for number in 10...11 {
            #expect(try await store.appendWebhooks([event(number)], marks: [:], limit: 3) == 0)
        }
        #expect(try await store.webhookQueue().count == 3)
        #expect(try await store.appendWebhooks([event(12)], marks: [:], limit: 3) == 1)
        #expect(try await store.dueWebhooks(now: StoreWorld.now, limit: 9).map(\.event.id) == ["10", "11", "12"])
        try store.close()
    }

    @Test
    func `many that wait for an earlier one of their user do not hide others; the count stays right`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let users = try [1, 2].map { try #require(UserID(rawValue: $0)) }
        func event(_ user: UserID, _ number: Int) -> WebhookEvent {
            WebhookEvent(id: "\(number)", user: user, createdAt: StoreWorld.now, body: [])
        }
        let events = (0..<2_500).map { event(users[0], $0) } + [event(users[1], 2_500)]
        _ = try await store.appendWebhooks(events, marks: [:], limit: 250_000)
        let first = try #require(try await store.dueWebhooks(now: StoreWorld.now, limit: 1).first)
        let later = StoreWorld.later(.seconds(60))
        try await store.settleWebhooks([.again(first.number, attempts: 1, due: later)])
        let due = try await store.dueWebhooks(now: StoreWorld.now, limit: 100)
        #expect(due.map(\.event.id) == ["2500"])
        try await store.settleWebhooks([.done(due[0].number), .done(due[0].number)])
        #expect(try await store.dueWebhooks(now: later, limit: 100).first?.number == first.number)
        #expect(try await store.webhookQueue().count == 2_500)
        // A lowered limit takes effect step by step.
        #expect(try await store.appendWebhooks([event(users[1], 1)], marks: [:], limit: 100) == 1_001)
        #expect(try await store.appendWebhooks([], marks: [:], limit: 100) == 1_000)
        #expect(try await store.webhookQueue().count == 500)
        try store.close()
    }
}
