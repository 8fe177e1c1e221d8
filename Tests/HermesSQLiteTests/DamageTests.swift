// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import NIOCore
import Synchronization
import Testing

@testable import HermesSQLite

@Suite("Damaged rows", .inTurns)
struct DamageTests {
    private func open(_ directory: TemporaryDirectory, _ told: Count) throws -> SQLiteStore {
        try SQLiteStore.open(
            directory: directory.path,
            logger: TemporaryDirectory.silent,
            damaged: { told.number.withLock { $0 += 1 } }
        )
    }

    private final class Count: Sendable {
        let number = Mutex(0)
        var value: Int { number.withLock { $0 } }
    }

    @Test
    func `an operation that meets one is refused; the others of its batch are applied`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store, people: 3)
        let create = GroupCommand.create(name: "g", members: [world[1].user])
        guard case .groupChanged(let group, _) = try world.commit(.group(create, by: world[0].user)) else {
            throw ConformanceFailure(description: "refused")
        }
        let sent = try world.send("first", from: 0, to: 1)
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.execute(sql: "UPDATE group_member SET role = 77")
        }
        let again = try open(directory, told)
        let outcomes = try again.commit(
            [
                .append(world.message("a", from: 0, to: 1)),
                .group(.dissolve(group.id), by: world[0].user),
                .append(world.message("b", from: 0, to: 1)),
            ],
            now: StoreWorld.now
        )
        guard case .appended(let first, _) = outcomes[0], case .refused(let refusal) = outcomes[1],
            case .appended(let second, _) = outcomes[2]
        else {
            Issue.record("\(outcomes)")
            return
        }
        #expect(refusal.code == .internalError)
        #expect(first.conversationSeq == sent.conversationSeq + 1)
        #expect(second.conversationSeq == sent.conversationSeq + 2)
        #expect(try await StoreWorld(store: again, people: world.people).inbox(1, after: 2) == ["3:a", "4:b"])
        #expect(told.value == 1)
        try again.close()
    }

    /// Writes impossible values into the row of an inbox, while the store is closed. The row cannot be rebuilt, because
    /// the numbers of the account's devices are damaged, too.
    private func damageInbox(of person: Principal, in directory: TemporaryDirectory) async throws {
        try await DatabaseQueue(path: directory.database).write { db in
            try db.execute(sql: "UPDATE inbox_head SET head = -1 WHERE user = ?", arguments: [person.user.rawValue])
            try db.execute(sql: "UPDATE device SET cursor = -1 WHERE user = ?", arguments: [person.user.rawValue])
        }
    }

    @Test
    func `a push for several reaches everybody whose inbox is not damaged`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store, people: 3)
        let (users, push) = (world.people.map(\.user), world.push("sale"))
        for target in [PushJob.Target.everyone, .users(users)] {
            _ = try world.push(.accept(PushJob(push: Push(push, id: StoreWorld.nextID()), target: target), claim: nil))
        }
        let jobs = try await store.pushJobs()
        try store.close()
        try await damageInbox(of: world[1], in: directory)
        let again = try open(directory, told)
        let later = StoreWorld(store: again, people: world.people)
        let before = told.value
        for job in jobs {
            let outcome = try later.push(.fanOut(job, limit: 500))
            #expect(outcome.isDone)
            #expect(outcome.deliveries.map(\.user) == [users[0], users[2]])
        }
        #expect(jobs.count == 2)
        #expect(try await again.pushJobs().isEmpty)
        let few = try later.push(.append(later.push("few"), recipients: users, claim: nil))
        #expect(few.deliveries.map(\.user) == [users[0], users[2]])
        #expect(told.value == before + 1, "once each")
        let one = PushOperation.append(later.push("one"), recipients: [users[1]], claim: nil)
        #expect(try later.refusal(.push(one)) == .internalError, "nobody would get it")
        #expect(try await later.inbox(2) == ["1:push sale", "2:push sale", "3:push few"])
        try again.close()
    }

    @Test
    func `a damaged push for many is not tried again and again, and stays in the database`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store)
        let push = world.push("sale")
        _ = try world.push(.accept(PushJob(push: push, target: .everyone), claim: nil))
        try await store.pool.write { try $0.execute(sql: "UPDATE push_job SET cursor = -1") }
        let outcome = try world.push(.fanOut(push.id, limit: 500))
        #expect(outcome.isDone && outcome.deliveries.isEmpty)
        #expect(told.value == 1)
        #expect(try await store.pushJobs() == [push.id])
        try store.close()
    }

    @Test
    func `an account can be deleted although the inbox of a contact and group member is damaged`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store, people: 3)
        _ = try world.commit(.contact(.request, by: world[1], peer: world[0].user, message: ""))
        let create = GroupCommand.create(name: "g", members: [world[1].user, world[2].user])
        _ = try world.commit(.group(create, by: world[0].user))
        try store.close()
        try await damageInbox(of: world[1], in: directory)
        let again = try open(directory, told)
        let later = StoreWorld(store: again, people: world.people)
        var reached: Set<UserID> = []
        var isDone = false
        while !isDone {
            guard case .deleted(let deliveries, let done) = try later.commit(.deleteAccount(world[0].user)) else {
                throw ConformanceFailure(description: "refused")
            }
            reached.formUnion(deliveries.map(\.user))
            isDone = done
        }
        #expect(reached == [world[2].user])
        try again.close()
    }

    @Test
    func `a page names it as a hole; a purge goes on past it, and leaves it`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store)
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE message SET sender = 0, deliveries = x'01' WHERE content = CAST('b' AS BLOB)")
        }
        #expect(try await world.inbox(1) == ["1:a", "2-2:hole", "3:c"])
        #expect(told.value == 1)
        #expect(try await world.inbox(1) == ["1:a", "2-2:hole", "3:c"])
        #expect(told.value == 1, "once each")
        try await world.purge(at: StoreWorld.later(.seconds(1000 * 86_400)))
        let left = try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM message") }
        #expect(left == 1)
        try store.close()
    }

    @Test
    func `a push of an older version has no message; one whose message is cut off is damaged`() throws {
        func push(_ message: TypedMessage?) -> Push {
            Push(
                id: MessageID(high: 1, low: 2),
                content: PushContent(title: "t", message: message),
                expiresAt: Timestamp(rawValue: 3)
            )
        }
        let message = TypedMessage(type: "shop.Order", bytes: [1, 2, 3])
        func stored(_ push: Push) -> [UInt8] {
            var bytes: [UInt8] = []
            push.store(into: &bytes)
            return bytes
        }
        let (old, new) = (stored(push(nil)), stored(push(message)))
        #expect(Array(new.prefix(old.count)) == old)
        for length in old.count...new.count {
            var bytes = new.prefix(length)
            let read = Push(stored: &bytes)
            let expected = length == old.count ? push(nil) : length == new.count ? push(message) : nil
            #expect(read == expected, "\(length)")
        }
    }

    @Test(arguments: [Int64.max, .min, -1])
    func `a number that cannot be counts as none, and stops nothing`(_ number: Int64) async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store)
        for text in ["a", "b"] { try world.send(text, from: 0, to: 1) }
        let session = try SessionWorld(store).open("c").id
        try SessionWorld(store).publish("1", to: [session])
        let lying = store.inboxes.now.holding
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            for table in ["inbox", "inbox_fresh"] {
                try db.execute(sql: "UPDATE \(table) SET weight = ? WHERE seq = 1", arguments: [number])
            }
            try db.execute(sql: "UPDATE session_head SET queued = ?1, bytes = ?1", arguments: [number])
        }
        let again = try open(directory, told)
        #expect(again.inboxes.now.holding == Holding(entries: lying.entries, bytes: lying.bytes / 2))
        #expect(told.value == 3, "the weights of one sender in one table, and the session's numbers")
        let later = StoreWorld(store: again, people: world.people)
        try later.send("c", from: 0, to: 1)
        #expect(try await later.inbox(1) == ["1:a", "2:b", "3:c"])
        let sessions = SessionWorld(again)
        try sessions.publish("2", to: [session])
        // Another program has changed the file, so it counts as a copy. The seqs in the queues of a copy jump ahead.
        let queue = try await sessions.queue(session)
        #expect(queue.count == 2 && queue.first == "1:1" && queue.last?.hasSuffix(":2") == true)
        try await later.purge(at: StoreWorld.later(.seconds(1000 * 86_400)))
        #expect(again.inboxes.now.holding.entries == 0)
        try again.close()
    }

    @Test(
        arguments: [
            "UPDATE inbox_head SET head = ? WHERE user = 1", "UPDATE inbox_head SET oldest = ? WHERE user = 1",
            "UPDATE inbox_head SET acknowledged = ? WHERE user = 1", "UPDATE inbox_head SET entries = ? WHERE user = 1",
            "UPDATE inbox_head SET bytes = ? WHERE user = 1", "UPDATE conversation SET last_seq = ?",
            "UPDATE device SET cursor = ? WHERE user = 1", "UPDATE message SET conversation_seq = ?",
            "UPDATE message SET sent_at = ?", "UPDATE message SET refs = ?", "UPDATE session_head SET head = ?",
            "UPDATE session SET sent_up_to = ?", "UPDATE session SET expiry = ?", "UPDATE session SET expires_at = ?",
            "UPDATE session SET renamed_at = ?", "UPDATE group_member SET joined_after = ?",
            "UPDATE publication_refs SET refs = ?",
        ],
        [Int64.max, .min, -1]
    )
    func `a number of a sequence that cannot be refuses what needs it, and nothing else`(
        _ damage: String,
        _ number: Int64
    ) async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store, people: 4)
        try world.send("a", from: 0, to: 1)
        let create = GroupCommand.create(name: "g", members: [world[1].user])
        guard case .groupChanged(let group, _) = try world.commit(.group(create, by: world[0].user)) else {
            throw ConformanceFailure(description: "refused")
        }
        let session = try SessionWorld(store).open("c").id
        try SessionWorld(store).publish("1", to: [session])
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.execute(sql: damage, arguments: [number])
        }
        let again = try open(directory, told)
        let later = StoreWorld(store: again, people: world.people)
        let outcomes = try again.commit(
            [
                .append(later.message("b", from: 0, to: 1)),
                .append(later.message("c", from: 2, to: 3)),
                .group(.dissolve(group.id), by: world[0].user),
                .acknowledge(world[0].user, StoreWorld.phone, upTo: 1),
            ],
            now: StoreWorld.now
        )
        guard case .appended = outcomes[1] else {
            Issue.record("\(outcomes)")
            return
        }
        // These calls may fail, but must end.
        for person in 0...1 {
            _ = try? await later.inbox(person)
            _ = try? await again.open(
                DeviceDescription(id: StoreWorld.tablet),
                of: world[person].user,
                token: nil,
                now: StoreWorld.now
            )
            _ = try? await again.devices(of: world[person].user)
        }
        _ = try? await again.history(of: later.conversation(0, 1), before: nil, limit: 10)
        let sessions = SessionWorld(again)
        _ = try? await again.sessions()
        _ = try? sessions.publish("2", to: [session])
        _ = try? sessions.open("c")
        _ = try? await sessions.queue(session)
        let other = try sessions.open("d").id
        try sessions.publish("3", to: [other])
        let queue = try await sessions.queue(other)
        #expect(queue == ["1:3"])
        #expect(try await later.inbox(3) == ["1:c"])
        try await later.purge(at: StoreWorld.later(.seconds(86_400 * 1000)))
        try await sessions.purge(at: StoreWorld.later(.seconds(86_400 * 1000)))
        #expect(try await later.inbox(3) == ["1-1:hole"])
        try again.close()
    }

    @Test func `a device's place behind the end of its inbox deletes nothing`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store)
        try world.send("a", from: 0, to: 1)
        try await store.pool.write { try $0.execute(sql: "UPDATE inbox_head SET acknowledged = 1 << 40") }
        try await world.purge()
        #expect(try await world.inbox(1) == ["1:a"])
        try store.close()
    }

    @Test func `an entry with a number above the head is a hole, and hides no later entry`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store)
        for text in ["a", "b", "c"] { try world.send(text, from: 0, to: 1) }
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE inbox_fresh SET seq = 1 << 40 WHERE user = 2 AND seq = 2")
        }
        #expect(try await world.inbox(1) == ["1:a", "2-2:hole", "3:c"])
        #expect(told.value == 1)
        try store.close()
        // Opening a store settles all its rows.
        let again = try open(directory, told)
        let later = StoreWorld(store: again, people: world.people)
        #expect(try await later.inbox(1) == ["1:a", "2-2:hole", "3:c"])
        try later.send("d", from: 0, to: 1)
        #expect(try await later.inbox(1, after: 3) == ["4:d"])
        #expect(try await later.inbox(1) == ["1:a", "2-2:hole", "3:c", "4:d"])
        try later.acknowledge(1)
        try await later.purge()
        #expect(try await again.position(of: world[1].user).oldest == 5)
        try again.close()
    }

    @Test func `the devices with push tokens beside it are loaded`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store, people: 3)
        try await store.pool.write { db in
            for (user, device) in [(1, "phone"), (2, "a b"), (3, "phone"), (1 << 40, "phone")] {
                try db.execute(
                    sql: """
                        INSERT INTO push_token (user, device_id, service, token, app_id, set_at, pushed_up_to)
                        VALUES (?, ?, 1, ?, '', 0, 0)
                        """,
                    arguments: [user, device, "\(user)"]
                )
            }
        }
        let sound = [0, 2].map { TokenOwner(user: world[$0].user, device: StoreWorld.phone) }
        let loaded = try await PushTokenService(store: store, time: ManualClock()).load()
        #expect(loaded == sound.map { DeviceKey($0.user, $0.device) })
        #expect(told.value == 2)
        #expect(try await store.devicesWithPushTokens(after: nil, limit: 1) == [sound[0]])
        #expect(try await store.devicesWithPushTokens(after: sound[0], limit: 1) == [sound[1]])
        #expect(try await store.devicesWithPushTokens(after: sound[1], limit: 1).isEmpty)
        try store.close()
    }

    @Test func `the users beside it, for whom entries wait, are found`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store)
        try world.send("a", from: 0, to: 1)
        try await store.pool.write { db in
            try db.execute(sql: "INSERT INTO inbox_head (user, head, oldest, acknowledged) VALUES (1 << 40, 1, 1, 0)")
        }
        #expect(try await store.usersWithUndelivered(after: nil, limit: 10) == world.people.map(\.user))
        #expect(try await store.usersWithUndelivered(after: world[1].user, limit: 10).isEmpty)
        #expect(told.value == 1)
        try store.close()
    }

    @Test(arguments: [Int64(-1), 1 << 32, .max])
    func `an entry of the audit log is read without a code that cannot be`(_ code: Int64) async throws {
        let directory = try TemporaryDirectory()
        let store = try open(directory, Count())
        let event = AuditEvent(
            who: "ann",
            address: "local",
            action: "deleteUser",
            result: "refused",
            code: .invalidArgument
        )
        try await store.record(event, at: StoreWorld.now, keeping: AuditLimits())
        #expect(try await store.auditLog(before: nil, limit: 10).map(\.event.code) == [.invalidArgument])
        try await store.pool.write { try $0.execute(sql: "UPDATE audit SET code = ?", arguments: [code]) }
        let entries = try await store.auditLog(before: nil, limit: 10)
        #expect(entries.map(\.event.code) == [nil])
        #expect(entries.map(\.event.who) == ["ann"])
        try store.close()
    }

    @Test func `the numbers of push tokens and webhooks, too`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store, devices: [StoreWorld.phone, StoreWorld.tablet])
        try await store.pool.write { db in
            try db.execute(
                sql: """
                    INSERT INTO push_token (user, device_id, service, token, app_id, set_at, pushed_up_to)
                    VALUES (1, 'phone', 300, 't', '', 0, -1), (1, 'tablet', 1, 'u', '', 0, -1);
                    INSERT INTO webhook (id, user, created_at, body, attempts, due)
                    VALUES ('e', 1, 0, x'', \(Int64.max), 0);
                    """
            )
        }
        #expect(try await store.pushTargets(of: world[0].user).map(\.device) == [StoreWorld.tablet])
        #expect(told.value == 1)
        #expect(try await store.dueWebhooks(now: StoreWorld.now, limit: 1).map(\.attempts) == [1 << 30])
        try store.close()
    }

    @Test
    func `subscriptions, places and retained publications beside it are there`() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = SessionWorld(store)
        let id = try world.open("c").id
        for filter in ["a", "b"] {
            let options = SubscriptionOptions(qos: .exactlyOnce)
            try world.change(.subscribe(id, [DurableSubscription(filter: filter, options: options)]))
        }
        for text in ["1", "2"] {
            try world.publish(text, to: [id])
            _ = try world.commit(.retain(SessionWorld.publication(text, topic: text)))
        }
        try await store.pool.write { db in
            try db.execute(sql: "UPDATE session_subscription SET options = 3 WHERE filter = 'a'")
            try db.execute(sql: "UPDATE session_queue_fresh SET flags = 3 WHERE seq = 1")
            try db.execute(sql: "UPDATE retained SET flags = 48 WHERE topic = '1'")
        }
        #expect(try await store.sessions().first?.subscriptions.map(\.filter) == ["b"])
        #expect(try await world.queue(id) == ["2:2"])
        #expect(try await world.retainedTexts() == ["2"])
        #expect(told.value == 3)
        try store.close()
    }

    @Test func `a session ends although the number of a shared entry is damaged`() async throws {
        let directory = try TemporaryDirectory()
        let store = try open(directory, Count())
        let world = SessionWorld(store)
        let id = try world.open("c").id
        try world.publish(
            world.publication("1"),
            [PublicationTarget(session: id, qos: .atLeastOnce, share: "$share/g/t")]
        )
        try await store.pool.write { try $0.execute(sql: "UPDATE session_queue_fresh SET seq = 1 << 61") }
        let page = try await store.shared(of: id, after: 0, limit: 10, maxBytes: .max)
        #expect(page.isEmpty && page.isAtEnd && page.upTo == 0)
        guard case .moved(_, let hasEnded) = try world.commit(.move(QueueMove(from: id, [], endsBehind: 0))) else {
            throw ConformanceFailure(description: "not moved")
        }
        #expect(hasEnded)
        try store.close()
    }

    @Test(arguments: [false, true])
    func `a session gets all that waits, page by page, without the damaged`(_ hasDetails: Bool) async throws {
        let directory = try TemporaryDirectory()
        let store = try open(directory, Count())
        let world = SessionWorld(store)
        let id = try world.open("c").id
        for number in 1...1_000 {
            let payload = ByteBuffer(repeating: 0, count: number % 2 == 0 ? 1_000 : 200)
            let publication = StoredPublication(
                topic: world.topic("t"),
                payload: payload,
                qos: .atLeastOnce,
                retain: false,
                details: hasDetails ? PublicationDetails() : nil,
                publishedAt: StoreWorld.now
            )
            try world.publish(publication, [PublicationTarget(session: id, qos: .atLeastOnce)])
        }
        try await store.pool.write { db in
            for table in ["session_queue", "session_queue_fresh"] {
                try db.execute(sql: "UPDATE \(table) SET flags = 3 WHERE seq IN (1, 700)")
            }
        }
        let durable = DurableSessions(store: store, time: ManualClock())
        try await durable.load()
        var found: [UInt64] = []
        var after: UInt64? = 0
        while let seq = after {
            let result = await withCheckedContinuation { done in
                durable.queued(of: id, after: seq, limit: 512) { done.resume(returning: $0) }
            }
            let page = try result.get()
            found += page.publications.map(\.seq)
            after = page.isAtEnd ? nil : page.upTo
        }
        #expect(found == (1...1_000).filter { $0 != 1 && $0 != 700 })
        await durable.shutdown()
        try store.close()
    }
}
