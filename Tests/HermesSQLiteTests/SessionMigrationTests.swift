// Hermes
// SPDX-License-Identifier: Apache-2.0

import GRDB
import HermesCore
import HermesSQLite
import HermesTestKit
import Testing

@Suite(.inTurns) struct SessionMigrationTests {
    /// Turns a file of this version into a file of version 15, in which sessions belonged to names.
    private func revert(_ db: Database) throws {
        try db.takeBackConversationLists()
        try db.execute(
            sql: """
                ALTER TABLE session DROP COLUMN renamed_at;
                DELETE FROM grdb_migrations WHERE identifier >= '016';
                PRAGMA user_version = 15;
                """
        )
    }

    @Test func `sessions that belonged to names belong to the accounts of these names, and else to the names`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let people = try await StoreWorld(store: store).people
        let before = SessionWorld(store)
        // Some names contain the number of an account.
        let (ann, bob) = (people[0], people[1])
        let names = [
            ann.nickName.key, SessionOwner.account(ann.user).stored, "s" + SessionOwner.account(ann.user).stored,
            bob.nickName.key, "nobody's", "",
        ]
        let host = CommitSource(host: "10.0.0.1")
        for name in names {
            let owner: SessionOwner = name.isEmpty ? .anonymous : .subject(name)
            let id = try before.open("lamp", owner: owner, expiry: nil, from: "10.0.0.1").id
            try before.change(.subscribe(id, [DurableSubscription(filter: "t", options: SubscriptionOptions())]))
            try before.publish("for \(name)", to: [id])
        }
        // The ids of removed sessions are not used again.
        let removed = try before.open("removed", owner: .subject("x")).id
        try before.change(.remove(removed))
        for topic in ["ann", "nobody", "host", "server"] {
            try before.change(.retain(before.publication("x", topic: topic)))
        }
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try revert(db)
            try db.execute(sql: "UPDATE session SET owner = char(1) || substr(owner, 2) WHERE owner <> ''")
            try db.execute(sql: "UPDATE session SET owner = substr(owner, 2) WHERE owner <> ''")
            try db.execute(sql: "UPDATE session SET payer = 'a' || owner WHERE owner <> ''")
            for (topic, payer) in [("ann", "a\(ann.nickName.key)"), ("nobody", "anobody"), ("host", host.stored)] {
                try db.execute(sql: "UPDATE retained SET payer = ? WHERE topic = ?", arguments: [payer, topic])
            }
            let owners = try String.fetchAll(db, sql: "SELECT owner FROM session ORDER BY id")
            #expect(owners == names)
        }

        let world = SessionWorld(try directory.openStore())
        let sessions = try await world.store.sessions()
        #expect(
            sessions.map(\.key.owner) == [
                .account(ann.user), .subject(names[1]), .subject(names[2]), .account(bob.user), .subject("nobody's"),
                .anonymous,
            ]
        )
        #expect(sessions.map(\.payer) == sessions.map { CommitSource($0.key.owner) ?? host })
        #expect(sessions.allSatisfy { $0.subscriptions.count == 1 && $0.renamedAt == 0 })
        for (session, name) in zip(sessions, names) {
            let again = try world.open("lamp", owner: session.key.owner)
            #expect(again.wasPresent && again.id == session.id)
            #expect(try await world.queue(session.id) == ["1:for \(name)"])
        }
        let payers = Dictionary(
            uniqueKeysWithValues: try await world.store.retained().map { ($0.topic.rawValue, $0.source) }
        )
        #expect(payers == ["ann": .account(ann.user), "nobody": .subject("nobody"), "host": host, "server": .server])
        #expect(try world.open("new", owner: .anonymous).id > removed)
    }

    @Test func `an owner that is not readable is reported, and the other sessions are there`() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.openStore()
        let world = SessionWorld(store)
        for name in ["a", "b"] { _ = try world.open(name) }
        try store.close()
        try await DatabaseQueue(path: directory.database).write { db in
            try db.execute(sql: "UPDATE session SET owner = 'x', payer = 'x' WHERE client_id = 'a'")
        }
        let again = try directory.openStore()
        #expect(try await again.sessions().map(\.key.clientID) == ["b"])
    }
}
