// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

/// A clock that advances by a millisecond each time it is read, after it was started.
private final class SteppingClock: TimeSource {
    private let state = Mutex((uptime: Duration.zero, runs: false))

    func start() { state.withLock { $0.runs = true } }

    func now() -> Timestamp { StoreWorld.now }

    func uptime() -> Duration {
        state.withLock { state in
            if state.runs { state.uptime += .milliseconds(1) }
            return state.uptime
        }
    }
}

extension SQLiteStore {
    /// Commits the first of these operations, as many as fit into one short transaction.
    func commit(firstOf operations: ArraySlice<WriteOperation>, now: Timestamp) throws -> [WriteOutcome] {
        var rest = operations
        return try commit(taking: { isLong in isLong ? nil : rest.popFirst() }, now: now)
    }

    func commit(firstOf operations: ArraySlice<SessionOperation>, now: Timestamp) throws -> [SessionOutcome] {
        var rest = operations
        return try commit(taking: { isLong in isLong ? nil : rest.popFirst() }, now: now)
    }
}

/// Commits wait for one another, so each commit stops after some time. ``TransactionSizeTests`` counts rows.
@Suite("How long one transaction works", .inTurns)
struct TransactionTimeTests {
    private let clock = SteppingClock()

    private func rows(_ store: SQLiteStore, _ body: () async throws -> Void) async throws -> Int {
        let before = try await store.pool.writeWithoutTransaction { $0.totalChangesCount }
        try await body()
        return try await store.pool.writeWithoutTransaction { $0.totalChangesCount } - before
    }

    private func messages(_ numbers: Range<Int>, in world: StoreWorld) -> [WriteOperation] {
        numbers.map { .append(world.message("\($0)", from: $0 % 2, to: 2, clientID: "c\($0)")) }
    }

    /// Stores messages and starts the clock. A sweep begins later, so that all its steps take time on the clock.
    ///
    /// - Returns: the number of messages.
    private func fill(_ store: SQLiteStore, _ world: StoreWorld) throws -> Int {
        for start in stride(from: 1, to: 1_801, by: 200) {
            _ = try store.commit(messages(start..<start + 200, in: world), now: StoreWorld.now)
        }
        clock.start()
        return 1_800
    }

    private func checkInbox(_ store: SQLiteStore, of user: UserID, count: Int) async throws {
        var seq: UInt64 = 0
        while seq < count {
            let page = try await store.entries(of: user, after: seq, limit: 1_000)
            try StoreWorld.checkContiguity(page, after: seq)
            for entry in page.entries { #expect(StoreWorld.summary(entry) == "\(entry.seq):\(entry.seq)") }
            seq = page.entries.last?.seq ?? .max
        }
        #expect(seq == count)
    }

    @Test
    func `a batch of messages is cut where its time ends, and the rest follows in order`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(clock: clock)
        let world = try await StoreWorld(store: store, people: 3)
        clock.start()
        let batch = messages(1..<301, in: world)
        var rest = batch[...]
        var transactions = 0
        while !rest.isEmpty {
            let outcomes = try store.commit(firstOf: rest, now: StoreWorld.now)
            #expect((1...6).contains(outcomes.count))
            rest = rest.dropFirst(outcomes.count)
            transactions += 1
        }
        #expect(transactions >= 300 / 21)
        try await checkInbox(store, of: world[2].user, count: 300)
        // A commit without a time limit applies all operations.
        #expect(try store.commit(messages(301..<401, in: world), now: StoreWorld.now).count == 100)
        try store.close()
    }

    @Test
    func `a transaction goes on as long as it is given more, up to a limit`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(clock: clock)
        let world = try await StoreWorld(store: store, people: 3)
        let session = try SessionWorld(store).open("s", expiry: nil).id
        clock.start()
        var asked: [Bool] = []
        var rest = messages(1..<101, in: world)[...]
        let outcomes = try store.commit(
            taking: { isLong in
                asked.append(isLong)
                return rest.popFirst()
            },
            now: StoreWorld.now
        )
        // The clock is read once for each operation. The first limit is 5 ms, the second is 20 ms.
        #expect((15...20).contains(outcomes.count) && asked.count == outcomes.count, "\(outcomes.count)")
        #expect((1...6).contains(asked.prefix { !$0 }.count) && asked.drop { !$0 }.allSatisfy { $0 })
        try await checkInbox(store, of: world[2].user, count: outcomes.count)
        // The caller learns when the transaction is long, and can then end it.
        asked = []
        let cut = try store.commit(
            taking: { isLong in
                asked.append(isLong)
                return asked.count > 10 ? nil : rest.popFirst()
            },
            now: StoreWorld.now
        )
        #expect(cut.count == 10 && asked.last == true)
        var count = 0
        let close = SessionOperation.close(session, sentUpTo: 0, expiresAt: nil)
        let done = try store.commit(
            taking: { _ in
                count += 1
                return close
            },
            now: StoreWorld.now
        )
        #expect((15...20).contains(done.count) && done.count == count)
        try store.close()
    }

    @Test
    func `a batch of session operations is cut where its time ends`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(clock: clock)
        let world = SessionWorld(store)
        let session = try world.open("s", expiry: nil).id
        clock.start()
        let operations = (0..<100).map { _ in
            SessionOperation.publish(
                world.publication("x"),
                targets: [PublicationTarget(session: session, qos: .atLeastOnce)],
                received: nil,
                retains: false
            )
        }
        var rest = operations[...]
        while !rest.isEmpty {
            let outcomes = try store.commit(firstOf: rest, now: StoreWorld.now)
            #expect((1...6).contains(outcomes.count))
            rest = rest.dropFirst(outcomes.count)
        }
        #expect(try await store.sessions().first?.head == 100)
        try store.close()
    }

    @Test
    func `fresh entries stop moving where the time ends, and all of them move nonetheless`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(clock: clock, sweepRows: 4_000)
        let world = try await StoreWorld(store: store, people: 3)
        var count = try fill(store, world)
        var most = 0
        for _ in 0..<20 {
            let written = try await rows(store) {
                _ = try store.commit(messages(count + 1..<count + 301, in: world), now: StoreWorld.now)
            }
            most = max(most, written)
            count += 300
        }
        // The commit's own rows are a message, a client id and two entries for each message, and heads. The sweep adds
        // eleven steps, whose rows are inserted and deleted. Without a time limit, it would move 1,200 rows of each
        // table.
        #expect(most <= 300 * 5 + 20 + 2 * 11 * 64, "\(most)")
        for _ in 0..<400 {
            _ = try store.commit(messages(count + 1..<count + 2, in: world), now: StoreWorld.now)
            count += 1
        }
        let fresh = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM inbox_fresh") ?? 0 }
        #expect(fresh < 4_000)
        try await checkInbox(store, of: world[2].user, count: count)
        try store.close()
    }

    @Test
    func `a sweep takes little of a transaction that others wait for`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(clock: clock, sweepRows: 4_000)
        let world = try await StoreWorld(store: store, people: 3)
        var count = try fill(store, world)
        // This commit begins a sweep.
        _ = try store.commit(messages(count + 1..<count + 301, in: world), now: StoreWorld.now)
        count += 300
        for round in 0..<10 {
            var rest = messages(count + 1..<count + 101, in: world)[...]
            var longs = 0
            let written = try await rows(store) {
                let done = try store.commit(
                    taking: { isLong in
                        longs += isLong ? 1 : 0
                        // In every second round, the end comes after the transaction has continued for some time.
                        return longs > round % 2 * 2 ? nil : rest.popFirst()
                    },
                    now: StoreWorld.now
                )
                count += done.count
            }
            // The commit's own rows are a message, a client id and two entries for each message, and heads. The sweep
            // adds four steps, whose rows are inserted and deleted.
            #expect(written <= 6 * 5 + 20 + 2 * 4 * 64, "\(written)")
        }
        try await checkInbox(store, of: world[2].user, count: count)
        try store.close()
    }

    @Test
    func `purges stop where their time ends, and say that more is left`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(clock: clock)
        let world = try await StoreWorld(store: store, people: 3)
        _ = try store.commit(messages(1..<3_001, in: world), now: StoreWorld.now)
        for person in 0..<3 { try world.acknowledge(person) }
        let sessions = SessionWorld(store)
        let session = try sessions.open("s", expiry: nil).id
        let filters = (0..<3_000).map {
            DurableSubscription(filter: "t/\($0)", options: SubscriptionOptions(qos: .atLeastOnce))
        }
        try sessions.change(.subscribe(session, filters))
        try sessions.change(.remove(session))
        clock.start()
        var done: [Int] = []
        repeat { done.append(try await store.purge(now: StoreWorld.now, limit: 5_000)) } while done.last != 0
        #expect(done.allSatisfy { $0 <= 11 * 64 }, "\(done)")
        #expect(done.count > 5)
        done = []
        repeat { done.append(try await store.purgeSessions(now: StoreWorld.now, limit: 5_000)) } while done.last != 0
        #expect(done.allSatisfy { $0 <= 11 * 64 }, "\(done)")
        let left = try await store.pool.read { db in
            try ["inbox", "inbox_fresh", "session_subscription"].map {
                try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)") ?? -1
            }
        }
        #expect(left == [0, 0, 0])
        try store.close()
    }

    @Test
    func `a deletion of an account stops where its time ends`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(clock: clock)
        let world = try await StoreWorld(store: store, people: 3)
        for number in 0..<60 {
            let create = GroupCommand.create(name: "g\(number)", members: [])
            _ = try world.commit(.group(create, by: world[0].user))
        }
        clock.start()
        var parts = 0
        var isDone = false
        while !isDone, parts < 100 {
            guard case .deleted(_, let done) = try world.commit(.deleteAccount(world[0].user)) else { break }
            isDone = done
            parts += 1
        }
        #expect(isDone && parts >= 3, "\(parts)")
        try store.close()
    }

    @Test
    func `steps become smaller when they take long, and larger when they do not`() {
        var size = StepSize()
        for _ in 0..<20 { size.learn(.milliseconds(6)) }
        #expect(size.rows == 8)
        size.learn(.milliseconds(1))
        #expect(size.rows == 8)
        for _ in 0..<20 { size.learn(.microseconds(400)) }
        #expect(size.rows == 512)
    }

    @Test(.timeLimit(.minutes(1)))
    func `beside the commits the log is written back, and begins again`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 3)
        let pages = try await store.pool.writeWithoutTransaction {
            try Int.fetchOne($0, sql: "PRAGMA wal_autocheckpoint") ?? -1
        }
        #expect(pages == 0)
        store.checkpointer.setStart(pages: 200)
        var count = 0
        var restarts = 0
        var last = 0
        while restarts < 3 {
            _ = try store.commit(messages(count + 1..<count + 3, in: world), now: StoreWorld.now)
            count += 2
            if store.checkpointer.logPages < last { restarts += 1 }
            last = store.checkpointer.logPages
        }
        // A reader keeps the log from beginning again. When the reader has ended, the log begins again.
        let log = store.checkpointer
        let batches = (0..<300).map { messages(count + 2 * $0 + 1..<count + 2 * $0 + 3, in: world) }
        count += 600
        try await store.pool.read { db in
            _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM message")
            for batch in batches { _ = try store.commit(batch, now: StoreWorld.now) }
        }
        last = log.logPages
        #expect(last >= 300)
        while log.logPages >= last {
            _ = try store.commit(messages(count + 1..<count + 3, in: world), now: StoreWorld.now)
            count += 2
        }
        try await checkInbox(store, of: world[2].user, count: count)
        try store.close()
    }

    @Test
    func `while the disk is slow, the log grows up to eight times before a commit waits for it`() {
        #expect(Checkpointer.takesRest(10, after: .milliseconds(5), (pages: 100, start: 100)))
        #expect(!Checkpointer.takesRest(10, after: .milliseconds(40), (pages: 799, start: 100)))
        #expect(!Checkpointer.takesRest(257, after: .milliseconds(5), (pages: 799, start: 100)))
        #expect(Checkpointer.takesRest(257, after: .milliseconds(40), (pages: 800, start: 100)))
    }
}
