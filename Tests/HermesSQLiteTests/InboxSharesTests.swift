// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

/// Reading all entries of an inbox delays the writer. So it may happen only once, regardless of the senders to the
/// inbox.
@Suite("The shares of an inbox", .inTurns)
struct InboxSharesTests {
    private static let senders = 100

    /// The number of times that `body` makes the writer read all entries of an inbox.
    private func reads(_ store: SQLiteStore, _ body: () throws -> Void) async throws -> Int {
        try await store.statements(body).count { $0.contains("FROM inbox_fresh WHERE user") }
    }

    /// Sends messages to the first person, the same number from each other person.
    private func send(_ rounds: Int, _ store: SQLiteStore, _ world: StoreWorld) throws {
        let batch = (0..<rounds * Self.senders).map { number in
            WriteOperation.append(world.message("x", from: 1 + number % Self.senders, to: 0))
        }
        for outcome in try store.commit(batch, now: StoreWorld.now) {
            guard case .appended = outcome else { throw ConformanceFailure(description: "\(outcome)") }
        }
    }

    /// Checks that the cache has the shares of an inbox, and that they match its rows.
    private func checkShares(_ store: SQLiteStore, of user: UserID) async throws {
        let shares = try #require(store.cache.withLock { $0.inboxes[user]?.shares })
        let found = try await store.pool.read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT source, weight FROM inbox WHERE user = ?1 UNION ALL
                    SELECT source, weight FROM inbox_fresh WHERE user = ?1
                    """,
                arguments: [user.rawValue]
            )
            .map { (source: $0["source"] as Int64, weight: $0["weight"] as Int) }
        }
        var expected = InboxShares()
        for (source, weight) in found { expected.add(weight, from: source) }
        #expect(shares == expected)
        let (size, counted) = store.cache.withLock { (Self.size($0), $0.sharesSize) }
        #expect(size == counted)
    }

    /// The size of all shares of a cache.
    private static func size(_ cache: WriterCache) -> Int {
        cache.inboxes.values.reduce(0) { $0 + ($1.shares?.size ?? 0) }
    }

    @Test
    func `an inbox is counted once for all sources, and not again after purges and removals of devices`() async throws {
        let directory = try TemporaryDirectory()
        let budget = InboxBudget(maxEntries: 4_000, maxBytes: 16 << 20)
        let store = try directory.openStore(settings: StoreSettings(inbox: budget))
        let world = try await StoreWorld(store: store, people: Self.senders + 1)
        let user = world[0].user
        // Each sender's share is checked in an inbox with a quarter of the limit or more, which is 1,000 entries.
        let first = try await reads(store) { try send(13, store, world) }
        #expect(first == 1)
        try world.acknowledge(0, upTo: 200)
        try await world.purge()
        let afterPurge = try await reads(store) { try send(1, store, world) }
        #expect(afterPurge == 0)
        try await checkShares(store, of: user)

        let tablet = DeviceDescription(id: StoreWorld.tablet)
        _ = try await store.open(tablet, of: user, token: nil, now: StoreWorld.now)
        try await store.revoke(.device(StoreWorld.tablet, of: user), now: StoreWorld.now)
        let afterRemoval = try await reads(store) { try send(1, store, world) }
        #expect(afterRemoval == 0)
        try await checkShares(store, of: user)
        // The removed device no longer keeps entries.
        try world.acknowledge(0)
        try await world.purge()
        let position = try await store.position(of: user)
        #expect(position.head == 1_500 && position.oldest == 1_501)
        try await checkShares(store, of: user)
        try store.close()
    }

    @Test
    func `a commit that fails leaves no wrong counts`() async throws {
        let directory = try TemporaryDirectory()
        let budget = InboxBudget(maxEntries: 4_000, maxBytes: 16 << 20)
        let store = try directory.openStore(settings: StoreSettings(inbox: budget))
        let world = try await StoreWorld(store: store, people: Self.senders + 1)
        try send(11, store, world)
        try store.limitSize(pages: 1)
        #expect(throws: HermesError.self) { for _ in 0..<10 { try send(1, store, world) } }
        try store.limitSize(pages: 1 << 20)
        let anew = try await reads(store) { try send(1, store, world) }
        #expect(anew >= 1)
        try await checkShares(store, of: world[0].user)
        try store.close()
    }

    @Test
    func `a push that replaces another one counts alone`() async throws {
        let directory = try TemporaryDirectory()
        let budget = InboxBudget(maxEntries: 40, maxBytes: 1 << 20)
        let store = try directory.openStore(settings: StoreSettings(inbox: budget))
        let world = try await StoreWorld(store: store, people: 3)
        let user = world[0].user
        for number in 0..<12 { try world.send("x", from: 1 + number % 2, to: 0) }
        for title in ["one", "another", "the last"] {
            let push = world.push(title, collapseKey: "same")
            _ = try world.push(.append(push, recipients: [user], claim: nil))
        }
        try await checkShares(store, of: user)
        let server = store.cache.withLock { $0.inboxes[user]?.shares?[.server].entries }
        #expect(server == 1)
        try store.close()
    }

    @Test
    func `a group's share is that of all its members, and of the form without a member`() throws {
        let group = try #require(GroupID(rawValue: 5))
        let members = try [3, 4].map { number in try #require(UserID(number)) }
        var shares = InboxShares()
        let sources = members.map { EntrySource.group(group, by: $0).number } + [-5]
        for source in sources { shares.add(10, from: source) }
        // These entries are from another group, from a user, and from impossible sources.
        let other = EntrySource.group(try #require(GroupID(rawValue: 6)), by: members[0])
        for source in [other.number, 5, .min, .max] { shares.add(1, from: source) }
        #expect(shares[.group(group, by: nil)] == Holding(entries: 3, bytes: 30))
        #expect(shares[.group(group, by: members[0])] == Holding(entries: 1, bytes: 10))
        #expect(shares[other.whole] == Holding(entries: 1, bytes: 1))
        for source in sources { shares.remove(Holding(entries: 1, bytes: 10), from: source) }
        #expect(shares[.group(group, by: nil)] == Holding())
        var rest = InboxShares()
        for source in [other.number, 5, .min, .max] { rest.add(1, from: source) }
        #expect(shares == rest)
    }

    @Test
    func `the shares of all inboxes take bounded memory, and the largest go first`() throws {
        var cache = WriterCache()
        var large = InboxShares()
        for source in 1...Int64(WriterCache.maxSharesSize / 10) { large.add(1, from: source) }
        var small = InboxShares()
        small.add(7, from: 9)
        let users = try (1...20).map { number in try #require(UserID(number)) }
        for user in users {
            cache.inboxes[user] = WriterCache.Inbox(head: 0, oldest: 1, acknowledged: 0)
        }
        cache.keep(small, of: users[0])
        for user in users.dropFirst() {
            cache.keep(large, of: user)
            #expect(cache.sharesSize == Self.size(cache))
            #expect(cache.sharesSize <= WriterCache.maxSharesSize)
        }
        #expect(cache.sharesSize > WriterCache.maxSharesSize / 2)
        #expect(cache.inboxes[users[0]]?.shares == small)
        #expect(cache.inboxes.count == users.count)
    }

    @Test
    func `the size of the shares is that of the cached ones, whatever comes and goes`() throws {
        var cache = WriterCache()
        let users = try (1...3).map { number in try #require(UserID(number)) }
        for user in users {
            cache.inboxes[user] = WriterCache.Inbox(head: 0, oldest: 1, acknowledged: 0)
            cache.keep(InboxShares(), of: user)
        }
        for number in 0..<3_000 {
            let index = try #require(cache.inboxes.index(forKey: users[number % 3]))
            // Many entries of a few sources take no more room than a few entries.
            cache.countShare(1, from: Int64(1 + number % 30), at: index)
            #expect(cache.sharesSize == Self.size(cache))
        }
        #expect(cache.sharesSize < 1_000)
        let taken = cache.take(users[0])
        let inbox = try #require(taken)
        #expect(cache.sharesSize == Self.size(cache))
        cache.keep(inbox, of: users[0])
        cache.keep(inbox, of: users[0])
        cache.keep(InboxShares(), of: users[1])
        #expect(cache.sharesSize == Self.size(cache))
        for user in users { cache.forget(user) }
        #expect(cache.sharesSize == 0)
    }

    @Test
    func `a purge that fails leaves no inbox in the cache`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store)
        let user = world[1].user
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        try world.acknowledge(1, upTo: 2)
        try await store.pool.writeWithoutTransaction { db in
            db.add(transactionObserver: Refusal(), extent: .nextTransaction)
        }
        await #expect(throws: HermesError.self) { _ = try await store.purge(now: StoreWorld.now, limit: 100) }
        #expect(store.cache.withLock { $0.inboxes[user] } == nil)
        try world.send("d", from: 0, to: 1)
        let inbox = try #require(store.cache.withLock { $0.inboxes[user] })
        #expect(inbox.use.entries == 4 && inbox.oldest == 1 && inbox.head == 4)
        try store.close()
    }

    /// Fails a transaction at its end.
    private final class Refusal: TransactionObserver {
        func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { false }
        func databaseDidChange(with event: DatabaseEvent) {}
        func databaseWillCommit() throws { throw DatabaseError(resultCode: .SQLITE_IOERR) }
        func databaseDidCommit(_ db: Database) {}
        func databaseDidRollback(_ db: Database) {}
    }

    @Test
    func `a push that replaces another one takes no message, and is counted with its source`() async throws {
        let directory = try TemporaryDirectory()
        let budget = InboxBudget(maxEntries: 40, maxBytes: 1 << 20)
        let store = try directory.openStore(settings: StoreSettings(inbox: budget))
        let world = try await StoreWorld(store: store, people: 3)
        let user = world[0].user
        func push(_ title: String) throws {
            let push = world.push(title, collapseKey: "same")
            _ = try world.push(.append(push, recipients: [user], claim: nil))
        }
        try push("one")
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE inbox_fresh SET source = 77 WHERE user = ?", arguments: [user.rawValue])
        }
        for number in 0..<12 { try world.send("x", from: 1 + number % 2, to: 0) }
        try push("another")
        try await checkShares(store, of: user)
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE push_collapse SET seq = 2 WHERE user = ?", arguments: [user.rawValue])
        }
        try push("the last")
        #expect(try await world.inbox(0).contains("2:x"))
        try await checkShares(store, of: user)
        try store.close()
    }
}
