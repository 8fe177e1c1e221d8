// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

/// Commits wait for one another, so the size of a commit must not depend on the amount of an account's stored data. The
/// tests count rows, because these do not depend on the machine.
@Suite("How much one transaction writes", .inTurns)
struct TransactionSizeTests {
    /// The number of rows that `body` writes.
    private func rows(_ store: SQLiteStore, _ body: () async throws -> Void) async throws -> Int {
        let before = try await store.pool.writeWithoutTransaction { $0.totalChangesCount }
        try await body()
        return try await store.pool.writeWithoutTransaction { $0.totalChangesCount } - before
    }

    @Test
    func `fresh entries move a slice at a time, while all of them stay readable`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(sweepRows: 4_000)
        let world = try await StoreWorld(store: store, people: 4)
        var count = 0
        var most = 0
        for _ in 0..<50 {
            let batch = (0..<100).map { index in
                WriteOperation.append(
                    world.message("\(count + index + 1)", from: index % 2, to: 2, clientID: "c\(count + index)")
                )
            }
            most = max(most, try await rows(store) { _ = try store.commit(batch, now: StoreWorld.now) })
            count += 100
            guard count % 500 == 0 else { continue }
            // The page crosses the present place of the sweep.
            let page = try await store.entries(of: world[2].user, after: UInt64(count - 300), limit: 1_000)
            try StoreWorld.checkContiguity(page, after: UInt64(count - 300))
            #expect(page.entries.count == 300)
        }
        // The commit's own rows are a message, a client id and two entries for each message, and heads. The sweep moves
        // twice as many rows as the batch has entries, from two tables. Each of them is inserted and deleted.
        #expect(most <= 100 * 5 + 20 + 4 * max(FreshSweep.sliceRows, 2 * 200), "\(most)")
        let moved = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM inbox") ?? 0 }
        #expect(moved >= 4_000)
        var seq: UInt64 = 0
        while seq < count {
            let page = try await store.entries(of: world[2].user, after: seq, limit: 1_000)
            try StoreWorld.checkContiguity(page, after: seq)
            for entry in page.entries { #expect(StoreWorld.summary(entry) == "\(entry.seq):\(entry.seq)") }
            seq = page.entries.last?.seq ?? .max
        }
        let again = world.message("1", from: 0, to: 2, clientID: "c0")
        guard case .duplicate = try world.commit(.append(again)) else {
            throw ConformanceFailure(description: "sent twice")
        }
        try store.close()
    }

    @Test
    func `a commit that fails takes its slice back`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore(sweepRows: 4_000)
        let world = try await StoreWorld(store: store)
        var count: UInt64 = 0
        func send(_ size: Int) throws {
            let batch = (0..<size).map {
                WriteOperation.append(world.message("\(count + UInt64($0) + 1)", from: 0, to: 1))
            }
            _ = try store.commit(batch, now: StoreWorld.now)
            count += UInt64(size)
        }
        while count < 2_200 { try send(200) }
        try store.limitSize(pages: 1)
        var failures = 0
        for _ in 0..<60 where failures < 3 {
            do { try send(200) } catch { failures += 1 }
        }
        #expect(failures == 3)
        try store.limitSize(pages: 1_000_000)
        for _ in 0..<20 { try send(200) }
        var seq: UInt64 = 0
        while seq < count {
            let page = try await store.entries(of: world[1].user, after: seq, limit: 1_000)
            try StoreWorld.checkContiguity(page, after: seq)
            for entry in page.entries { #expect(StoreWorld.summary(entry) == "\(entry.seq):\(entry.seq)") }
            seq = page.entries.last?.seq ?? .max
        }
        try store.close()
    }

    @Test
    func `long publications, retained or queued, fill a transaction by their bytes`() async throws {
        let directory = try TemporaryDirectory()
        // The clock of the store is stopped, so no transaction ends because of its time.
        let store = try directory.openStore(clock: ManualClock())
        let world = SessionWorld(store)
        let session = try world.open("s", expiry: nil).id
        let long = String(repeating: "x", count: 400_000)
        let target = PublicationTarget(session: session, qos: .atLeastOnce, identifiers: [], retain: false)
        func retain(_ number: Int, _ text: String) -> SessionOperation {
            .retain(world.publication(text, topic: "t/\(number)"))
        }
        let queued = (0..<8).map { _ in
            SessionOperation.publish(world.publication(long), targets: [target], received: nil, retains: false)
        }
        for operations in [(0..<8).map { retain($0, long) }, queued] {
            var rest = operations[...]
            var parts: [Int] = []
            while !rest.isEmpty {
                let done = try store.commit(firstOf: rest, now: StoreWorld.now).count
                parts.append(done)
                rest = rest.dropFirst(done)
            }
            #expect(parts == [3, 3, 2])
        }
        // A longer publication is committed alone. Many short publications are committed together.
        let longer = String(repeating: "x", count: 2 << 20)
        #expect(try store.commit(firstOf: [retain(1, longer), retain(2, "x")], now: StoreWorld.now).count == 1)
        let short = (0..<500).map { retain($0, "x") }
        #expect(try store.commit(firstOf: short[...], now: StoreWorld.now).count == 500)
        #expect(try await store.retained().count == 500)
        try store.close()
    }

    @Test
    func `who blocks many is not asked for all of them: one row is read for each sender`() async throws {
        let directory = try TemporaryDirectory()
        var store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 10)
        for peer in world.people[2...] {
            _ = try world.commit(.contact(.block, by: world[0], peer: peer.user, message: ""))
        }
        try store.close()
        store = try directory.openStore()
        let again = StoreWorld(store: store, people: world.people)
        let read = try await store.statements {
            try again.send("a", from: 1, to: 0)
            #expect(try again.refusal(.append(again.message("b", from: 2, to: 0))) == .forbidden)
        }
        let asking = read.filter { $0.contains("FROM contact") && !$0.contains("EXISTS") }
        #expect(asking.count == 2 && asking.allSatisfy { $0.contains("peer =") }, "\(asking)")
        try store.close()
    }

    @Test
    func `who is added to a group is looked up, not counted, however many groups it is in`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 40)
        let others = world.people.dropFirst().map(\.user)
        let read = try await store.statements {
            let create = GroupCommand.create(name: "g", members: others)
            guard case .groupChanged = try world.commit(.group(create, by: world[0].user)) else {
                throw ConformanceFailure(description: "refused")
            }
        }
        #expect(!read.contains { $0.contains("count(") })
        #expect(read.count { $0.contains("SELECT groups FROM groups_of_user") } == 40)
        try store.close()
    }

    /// A store that records the number of rows of each transaction.
    private final class CountingStore: SessionStore {
        let base: SQLiteStore
        private let rows = Mutex<[Int]>([])

        init(_ base: SQLiteStore) { self.base = base }

        var commits: [Int] { rows.withLock { $0 } }

        func commit(_ operations: [SessionOperation], now: Timestamp) throws(HermesError) -> [SessionOutcome] {
            try base.commit(operations, now: now)
        }

        func commit(
            taking next: (_ isLong: Bool) -> SessionOperation?,
            now: Timestamp
        ) throws(HermesError) -> [SessionOutcome] {
            let before = changes
            let outcomes = try base.commit(taking: next, now: now)
            let after = changes
            rows.withLock { $0.append(after - before) }
            return outcomes
        }

        private var changes: Int { base.pool.writeWithoutTransaction { $0.totalChangesCount } }

        func sessions() async throws(HermesError) -> [StoredSession] { try await base.sessions() }

        func queued(
            of session: DurableSessionID,
            after seq: UInt64,
            limit: Int,
            maxBytes: Int
        ) async throws(HermesError) -> QueuePage {
            try await base.queued(of: session, after: seq, limit: limit, maxBytes: maxBytes)
        }

        func shared(
            of session: DurableSessionID,
            after seq: UInt64,
            limit: Int,
            maxBytes: Int
        ) async throws(HermesError) -> QueuePage {
            try await base.shared(of: session, after: seq, limit: limit, maxBytes: maxBytes)
        }

        func retained(of topics: [TopicName]) async throws(HermesError) -> [StoredPublication] {
            try await base.retained(of: topics)
        }

        func retained(
            after topic: TopicName?,
            limit: Int
        ) async throws(HermesError) -> (publications: [StoredPublication], next: TopicName?) {
            try await base.retained(after: topic, limit: limit)
        }

        func purgeSessions(
            now: Timestamp,
            limit: Int,
            sentUpTo: @escaping @Sendable (DurableSessionID) -> UInt64
        ) async throws(HermesError) -> SessionPurge {
            try await base.purgeSessions(now: now, limit: limit, sentUpTo: sentUpTo)
        }

        var queues: QueueBudget { base.queues }
    }

    @Test
    func `a publication to many sessions, and many filters, are transactions of a bounded size`() async throws {
        let directory = try TemporaryDirectory()
        let base = try directory.openStore()
        let world = SessionWorld(base)
        let opened = try base.commit(
            (0..<3_000).map { number in
                .open(SessionKey(owner: .subject("\(number)"), clientID: "x"), clean: false, expiry: nil)
            },
            now: StoreWorld.now
        )
        var ids: [DurableSessionID] = []
        for case .opened(let session) in opened { ids.append(session.id) }
        let subscription = DurableSubscription(filter: "t", options: SubscriptionOptions(qos: .exactlyOnce))
        _ = try base.commit(ids.map { .subscribe($0, [subscription]) }, now: StoreWorld.now)
        _ = try base.commit(ids.map { .close($0, sentUpTo: 0, expiresAt: nil) }, now: StoreWorld.now)
        let publisher = try world.open("publisher", expiry: nil).id
        let store = CountingStore(base)
        let sessions = DurableSessions(store: store, time: ManualClock())
        try await sessions.load()
        let topic = world.topic("t")
        let targets = sessions.targets(of: topic)
        for number in 1...2 as ClosedRange<UInt16> {
            let result: Result<Void, HermesError> = await withCheckedContinuation { done in
                sessions.publish(
                    world.publication("\(number)"),
                    targets: targets,
                    from: publisher,
                    receivedID: number
                ) { done.resume(returning: $0) }
            }
            try result.get()
        }
        // Each target has a row of its queue and its head. Each part has the publication, its references and its
        // holders. The load closes the publisher's session in a commit of one row.
        #expect(store.commits.count { $0 > 1 } == 2 * 6, "\(store.commits)")
        #expect(store.commits.allSatisfy { $0 <= 2 * 512 + 5 }, "\(store.commits)")
        for id in ids { #expect(try await world.queue(id) == ["1:1", "2:2"]) }
        #expect(try world.open("publisher", expiry: nil).received == [1, 2])
        let start = store.commits.count
        let list = (0..<2_000).map { DurableSubscription(filter: "f/\($0)", options: subscription.options) }
        let come = await withCheckedContinuation { done in
            sessions.subscribe(publisher, list) { done.resume(returning: $0) }
        }
        let gone = await withCheckedContinuation { done in
            sessions.unsubscribe(publisher, list.map(\.filter)) { done.resume(returning: $0) }
        }
        #expect(come.done == 2_000 && gone.done == 2_000)
        #expect(store.commits.dropFirst(start).reduce(0, +) == 4_000)
        #expect(store.commits.dropFirst(start).allSatisfy { $0 <= 256 })
        await sessions.shutdown()
        try base.close()
    }

    private func message(_ text: String, from sender: Principal, to group: GroupID) -> MessageAppend {
        MessageAppend(
            id: StoreWorld.nextID(),
            draft: MessageDraft(
                conversation: .group(group),
                clientID: nil,
                content: MessageContent(bytes: Array(text.utf8))
            ),
            sender: sender,
            sentAt: StoreWorld.now,
            expiresAt: StoreWorld.later(.seconds(30 * 86_400)),
            recipients: []
        )
    }

    @Test
    func `an account that has much is deleted in parts; nobody finds it meanwhile, and its name is taken`() async throws
    {
        let directory = try TemporaryDirectory()
        var store = try directory.openStore()
        var world = try await StoreWorld(store: store, people: 30)
        let user = world[0].user
        let others = world.people.dropFirst().map(\.user)
        for round in 0..<120 {
            let create = GroupCommand.create(name: "g\(round)", members: Array(others.prefix(20)))
            guard case .groupChanged = try world.commit(.group(create, by: user)) else {
                throw ConformanceFailure(description: "refused")
            }
        }
        for peer in world.people.dropFirst() {
            _ = try world.commit(.contact(.request, by: world[0], peer: peer.user, message: ""))
        }
        let sessions = SessionWorld(store)
        let session = try sessions.open("s", owner: .account(world[0].user), expiry: nil).id
        let subscriptions = (0..<4_000).map {
            DurableSubscription(filter: "t/\($0)", options: SubscriptionOptions(qos: .atLeastOnce))
        }
        try sessions.change(.subscribe(session, subscriptions))

        var parts = 0
        var isDone = false
        while !isDone {
            let written = try await rows(store) {
                guard case .deleted(_, let done) = try world.commit(.deleteAccount(user)) else {
                    throw ConformanceFailure(description: "refused")
                }
                isDone = done
            }
            // The last group may exceed the limit by its members' entries and heads.
            #expect(written <= 2 * BatchWriter.deletionRows + 100, "\(written)")
            parts += 1
            guard !isDone else { break }
            #expect(try await store.find(.id(user)) == nil)
            #expect(try await store.find(.nickName(world[0].nickName)) == nil)
            #expect(try await store.deletions() == [user])
            try await expectError(.nameTaken) {
                try await store.create(
                    NewAccount(nickName: world[0].nickName, password: PasswordHash(phc: "")),
                    now: StoreWorld.now
                )
            }
            try await expectError(.notFound) { try await store.update(user, AccountChange(isDisabled: false)) }
            try await expectError(.notFound) {
                try await store.open(DeviceDescription(id: StoreWorld.phone), of: user, token: nil, now: StoreWorld.now)
            }
            // In the groups that the account has not left yet, other members can still send. Nobody can add the account
            // to a group.
            let groups = try await store.groups(of: user, after: nil, limit: 1_000)
            if let group = groups.last {
                guard
                    case .appended(_, let deliveries) = try world.commit(
                        .append(message("x", from: world[1], to: group.id))
                    )
                else { throw ConformanceFailure(description: "refused") }
                #expect(!deliveries.map(\.user).contains(user))
            }
            let add = GroupCommand.create(name: "new", members: [user])
            #expect(try world.refusal(.group(add, by: others[0])) == .notFound)
            // The store is reopened, as after a crash.
            try store.close()
            store = try directory.openStore()
            world = StoreWorld(store: store, people: world.people)
        }
        #expect(parts >= 5)
        #expect(try await store.deletions() == [])
        #expect(try await store.groups(of: user, after: nil, limit: 9).isEmpty)
        #expect(try await store.contacts(of: others[0], after: nil, limit: 9).isEmpty)
        #expect(try await store.sessions().isEmpty)
        let kept = KeptName(key: world[0].nickName.key, user: user)
        #expect(try await store.keptNames() == [kept], "it is kept in spite of the crashes")
        try await store.free(kept)
        let next = try await store.create(
            NewAccount(nickName: world[0].nickName, password: PasswordHash(phc: "")),
            now: StoreWorld.now
        )
        #expect(next.id > user)
        // Purges delete the remaining rows of the session.
        var most = 0
        for _ in 0..<100 {
            most = max(
                most,
                try await rows(store) { _ = try await store.purgeSessions(now: StoreWorld.now, limit: 500) }
            )
        }
        #expect(most <= 502, "\(most)")
        let left = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM session_subscription") }
        #expect(left == 0)
        try store.close()
    }

    @Test(arguments: [165, 166, 167, 400])
    func `all contacts of a deleted account go, and are told, however many there are`(_ count: Int) async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: count + 1)
        for person in 1...count {
            _ = try world.commit(.contact(.request, by: world[person], peer: world[0].user, message: ""))
        }
        var isDone = false
        while !isDone {
            guard case .deleted(_, let done) = try world.commit(.deleteAccount(world[0].user)) else {
                throw ConformanceFailure(description: "refused")
            }
            isDone = done
        }
        let left = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM contact") }
        #expect(left == 0)
        for person in 1...count { #expect(try await world.inbox(person).count == 1, "\(person)") }
        try store.close()
    }

    @Test
    func `a purge writes little more than it is allowed, whatever there is`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = try await StoreWorld(store: store, people: 60)
        let create = GroupCommand.create(name: "g", members: world.people.dropFirst().map(\.user))
        guard case .groupChanged(let group, _) = try world.commit(.group(create, by: world[0].user)) else {
            throw ConformanceFailure(description: "refused")
        }
        for index in 0..<200 {
            _ = try world.commit(.append(message("\(index)", from: world[index % 60], to: group.id)))
        }
        for person in 0..<30 { try world.acknowledge(person) }
        var most = 0
        for later in [Duration.zero, .seconds(1000 * 86_400)] {
            for _ in 0..<400 {
                let written = try await rows(store) {
                    _ = try await store.purge(now: StoreWorld.later(later), limit: 500)
                }
                most = max(most, written)
            }
        }
        // A purge may delete 500 entries, the other entries of the last message, and a message, a client id and a head
        // for each entry.
        #expect(most <= 500 + 60 + 3 * 500, "\(most)")
        let left = try await store.pool.read { db in
            try ["message", "inbox", "inbox_fresh"].map {
                try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)") ?? -1
            }
        }
        #expect(left == [0, 0, 0])
        try store.close()
    }
}
