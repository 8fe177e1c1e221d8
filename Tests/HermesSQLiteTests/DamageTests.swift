// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import HermesCore
import HermesTestKit
import Synchronization
import Testing

@testable import HermesSQLite

@Suite("Damaged rows")
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

    @Test("An operation that meets one is refused; the others of its batch are applied")
    func batch() async throws {
        let directory = try TemporaryDirectory()
        let told = Count()
        let store = try open(directory, told)
        let world = try await StoreWorld(store: store, people: 3)
        let create = GroupCommand.create(name: "g", members: [world[1].user])
        guard case .groupChanged(let group, _) = try world.commit(.group(create, by: world[0].user)) else { return }
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

    @Test("A page names it as a hole; a purge goes on past it, and leaves it")
    func reading() async throws {
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

    @Test("Subscriptions, places and retained publications beside it are there")
    func sessions() async throws {
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
}
