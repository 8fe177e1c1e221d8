// Hermes
// SPDX-License-Identifier: Apache-2.0

import Foundation
import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

/// A client that continues with the store of a killed client.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct RestartOfTheAppTests {
    private static func configuration(
        port: Int,
        device: String = "phone",
        store: (any LocalStore)? = nil
    ) -> HermesClient.Configuration {
        var configuration = HermesClient.Configuration(
            server: ServerAddress(port: port),
            device: DeviceDescription(id: device)
        )
        configuration.conditions = DeviceConditions()
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(10)], maxAdvisedWindow: .zero)
        configuration.localStore = store
        return configuration
    }

    /// Returns the final entries of `count` messages.
    private static func ended(_ count: Int, of changes: AsyncStream<OutboxEntry>) async -> [OutboxEntry] {
        var ended: [OutboxEntry] = []
        for await entry in changes {
            switch entry.status {
            case .queued, .sending: continue
            case .sent, .failed, .discarded: ended.append(entry)
            }
            if ended.count == count { break }
        }
        return ended
    }

    private static func texts(_ count: Int, from client: HermesClient) async -> [String] {
        var texts: [String] = []
        for await event in client.events {
            guard let message = event.message else { continue }
            texts.append(message.text ?? "")
            if texts.count == count { break }
        }
        return texts
    }

    private static func cancelRun(of client: HermesClient) async throws {
        let run = Task { try await client.run() }  // Awaited below.
        run.cancel()
        try await run.value
    }

    @Test(arguments: [false, true])
    func `a cancelled run leaves the entry that the app may not be done with`(hasStore: Bool) async throws {
        try await withServer { server in
            let port = server.port("delimited")
            let ann = try HermesClient(Self.configuration(port: port, device: "ann"))
            _ = try await ann.logIn(.register(nickName: "ann", password: "secret"))
            let store: (any LocalStore)? = hasStore ? MemoryLocalStore() : nil
            let bob = try HermesClient(Self.configuration(port: port, device: "bob", store: store))
            let session = try await bob.logIn(.register(nickName: "bob", password: "secret"))
            try await ann.send("1", to: .user(session.uid)).receipt()
            #expect(await Self.texts(1, from: bob) == ["1"])
            try await Self.cancelRun(of: bob)
            // The same client gets the message again, and then another client gets it.
            _ = try await bob.logIn(.token(session.token))
            #expect(await Self.texts(1, from: bob) == ["1"])
            try await Self.cancelRun(of: bob)
            let again = try HermesClient(Self.configuration(port: port, device: "bob"))
            _ = try await again.logIn(.token(session.token))
            #expect(await Self.texts(1, from: again) == ["1"])
            await again.close()
            await ann.close()
        }
    }

    /// Returns a logged-in client with its session. The entries "1" and "2" wait in the client.
    private static func clientWithTwoEntries(
        port: Int,
        store: (any LocalStore)? = nil
    ) async throws -> (bob: HermesClient, session: Session, ann: HermesClient) {
        let ann = try HermesClient(configuration(port: port, device: "ann"))
        _ = try await ann.logIn(.register(nickName: "ann", password: "secret"))
        let bob = try HermesClient(configuration(port: port, device: "bob", store: store))
        let session = try await bob.logIn(.register(nickName: "bob", password: "secret"))
        for text in ["1", "2"] { try await ann.send(text, to: .user(session.uid)).receipt() }
        return (bob, session, ann)
    }

    @Test(arguments: [false, true])
    func `an entry that the app gets after the close is not delivered again while the app handles it`(
        hasStore: Bool
    ) async throws {
        try await withServer { server in
            let port = server.port("delimited")
            let store: (any LocalStore)? = hasStore ? MemoryLocalStore() : nil
            let (bob, session, ann) = try await Self.clientWithTwoEntries(port: port, store: store)
            #expect(await Self.texts(1, from: bob) == ["1"])
            while await bob.driver.eventBytes == 0 { await Task.yield() }
            await bob.close(takingLastEvent: false)
            #expect(await Self.texts(1, from: bob) == ["2"])
            _ = try await bob.logIn(.token(session.token))
            try await ann.send("3", to: .user(session.uid)).receipt()
            #expect(await Self.texts(1, from: bob) == ["3"])
            await bob.close()
            await ann.close()
        }
    }

    @Test func `a loop whose task is cancelled gets no entry that waits`() async throws {
        try await withServer { server in
            let (bob, _, ann) = try await Self.clientWithTwoEntries(port: server.port("delimited"))
            while await bob.driver.eventBytes == 0 { await Task.yield() }
            // Awaited below.
            let loop = Task {
                while !Task.isCancelled { await Task.yield() }
                return await Self.texts(1, from: bob)
            }
            loop.cancel()
            #expect(await loop.value.isEmpty)
            #expect(await Self.texts(2, from: bob) == ["1", "2"])
            await bob.close()
            await ann.close()
        }
    }

    @Test(arguments: TestStore.allCases)
    func `what was sent offline arrives after a restart, once, in order, and a refusal is told`(
        store kind: TestStore
    ) async throws {
        try await FileLocalStoreTests.withPath { path in
            try await withServer(store: kind) { server in
                let port = server.port("delimited")
                let bob = try HermesClient(Self.configuration(port: port, device: "bob"))
                let bobSession = try await bob.logIn(.register(nickName: "bob", password: "secret"))
                let configuration = Self.configuration(port: port, store: try FileLocalStore(path: path))
                let first = try HermesClient(configuration)
                let error = await #expect(throws: HermesClientError.self) {
                    try await first.send("too early", to: .user(1))
                }
                #expect(error?.code == .closed)
                let session = try await first.logIn(.register(nickName: "ann", password: "secret"))
                configuration.conditions.appState = .suspended
                for number in 1...20 { try await first.send("\(number)", to: .user(bobSession.uid)) }
                try await first.send("to nobody", to: .user(999_999))
                #expect(await first.outbox.entries.count == 21)
                // The app is killed at this point. Only the file counts.
                try FileManager.default.copyItem(atPath: path, toPath: path + ".killed")

                let next = Self.configuration(port: port, store: try FileLocalStore(path: path + ".killed"))
                let second = try HermesClient(next)
                #expect(await second.outbox.entries.map(\.content).last == .text("to nobody"))
                // This happens before any login of this run, and offline.
                next.conditions.appState = .suspended
                try await second.send("21", to: .user(bobSession.uid))
                let changes = second.outbox.changes
                next.conditions.appState = .foreground
                _ = try await second.logIn(.token(session.token))
                let results = await Self.ended(22, of: changes)
                let failed = results.filter { if case .failed = $0.status { true } else { false } }
                #expect(failed.map(\.content) == [.text("to nobody")])
                #expect(await second.outbox.entries.map(\.content) == [.text("to nobody")])
                #expect(try await second.outbox.discard(clientID: failed.first?.id ?? ""))
                #expect(await second.outbox.entries.isEmpty)
                #expect(await Self.texts(21, from: bob) == (1...21).map { "\($0)" })
                for client in [first, second, bob] { await client.close() }
            }
        }
    }

    @Test func `a message whose receipt was not seen goes out again under its client id, and is not shown`()
        async throws
    {
        try await FileLocalStoreTests.withPath { path in
            let server = try await FakeHermesServer.scripted { packet, connection in
                switch packet.body {
                case .authenticate:
                    connection.accept(id: packet.id, head: connection.number == 1 ? 0 : 2)
                    guard connection.number == 2 else { return }
                    connection.event(1, "mine", own: "the-id")
                    connection.event(2, "another's")
                case .send(let send):
                    #expect(send.clientID == "the-id")
                    // On the first connection, the receipt never arrives.
                    if connection.number == 2 { connection.receipt(for: send, id: packet.id, seq: 1, duplicate: true) }
                default: break
                }
            }
            var configuration = HermesClient.Configuration.fake(server)
            configuration.store = try FileLocalStore(path: path)
            let first = try HermesClient(configuration)
            _ = try await first.logIn(.token("t"))
            try await first.send(.text("mine"), to: .user(8), clientID: "the-id")
            let sent = await server.firstPacket { _, packet in if case .send = packet.body { true } else { false } }
            #expect(sent != nil)
            try FileManager.default.copyItem(atPath: path, toPath: path + ".killed")
            configuration.store = try FileLocalStore(path: path + ".killed")
            let second = try HermesClient(configuration)
            let changes = second.outbox.changes
            _ = try await second.logIn(.token("t"))
            guard case .sent(let receipt) = await Self.ended(1, of: changes).first?.status else {
                Issue.record("the message was not sent")
                return
            }
            #expect(receipt.isDuplicate)
            #expect(await Self.texts(1, from: second) == ["another's"])
            await first.close()
            await second.close()
            try await server.stop()
        }
    }

    @Test(arguments: TestStore.allCases)
    func `what the app has taken does not come again, and what it has not does`(store kind: TestStore) async throws {
        try await FileLocalStoreTests.withPath { path in
            try await withServer(store: kind) { server in
                let port = server.port("delimited")
                let bob = try HermesClient(Self.configuration(port: port, device: "bob"))
                _ = try await bob.logIn(.register(nickName: "bob", password: "secret"))
                let configuration = Self.configuration(port: port, store: try FileLocalStore(path: path))
                let first = try HermesClient(configuration)
                let session = try await first.logIn(.register(nickName: "ann", password: "secret"))
                for number in 1...5 { try await bob.send("\(number)", to: .user(session.uid)).receipt() }
                // The app has received the third message, but may be killed before it has shown it.
                #expect(await Self.texts(3, from: first) == ["1", "2", "3"])
                try FileManager.default.copyItem(atPath: path, toPath: path + ".killed")
                let store = try FileLocalStore(path: path + ".killed")
                let second = try HermesClient(Self.configuration(port: port, store: store))
                #expect(second.recentEvents.count == 2)
                _ = try await second.logIn(.token(session.token))
                #expect(await Self.texts(3, from: second) == ["3", "4", "5"])
                await second.close()
                #expect(second.recentEvents.count == 5)
                // The client was closed properly, so no message arrives again.
                try await bob.send("6", to: .user(session.uid)).receipt()
                let third = try HermesClient(Self.configuration(port: port, store: store))
                _ = try await third.logIn(.token(session.token))
                #expect(await Self.texts(1, from: third) == ["6"])
                for client in [first, third, bob] { await client.close() }
            }
        }
    }

    @Test(arguments: TestStore.allCases)
    func `what it sent itself does not come back, though the app was behind with its inbox`(
        store kind: TestStore
    ) async throws {
        try await FileLocalStoreTests.withPath { path in
            try await withServer(store: kind) { server in
                let port = server.port("delimited")
                let bob = try HermesClient(Self.configuration(port: port, device: "bob"))
                let bobSession = try await bob.logIn(.register(nickName: "bob", password: "secret"))
                let firstStore = try FileLocalStore(path: path)
                let first = try HermesClient(Self.configuration(port: port, store: firstStore))
                let session = try await first.logIn(.register(nickName: "ann", password: "secret"))
                // The app never asks for this message.
                try await bob.send("1", to: .user(session.uid)).receipt()
                let changes = first.outbox.changes
                for _ in 1...3 { try await first.send("mine", to: .user(bobSession.uid)) }
                #expect(await Self.ended(3, of: changes).count == 3)
                // This write comes after the outbox's writes.
                try await firstStore.write([LocalChange(key: "last", value: nil)], durably: true)
                try FileManager.default.copyItem(atPath: path, toPath: path + ".killed")
                let store = try FileLocalStore(path: path + ".killed")
                let second = try HermesClient(Self.configuration(port: port, store: store))
                _ = try await second.logIn(.token(session.token))
                try await bob.send("2", to: .user(session.uid)).receipt()
                #expect(await Self.texts(2, from: second) == ["1", "2"])
                // After the app has passed these messages, only the record of the next message is kept.
                await second.close()
                let third = try HermesClient(Self.configuration(port: port, store: store))
                let more = third.outbox.changes
                _ = try await third.logIn(.token(session.token))
                try await third.send("mine", to: .user(bobSession.uid))
                #expect(await Self.ended(1, of: more).count == 1)
                try await store.write([LocalChange(key: "last", value: nil)], durably: true)
                #expect(store.records().count { $0.key.hasPrefix("sent/") } == 1)
                for client in [first, third, bob] { await client.close() }
            }
        }
    }

    @Test func `an app that never looks at its inbox keeps the names of so many messages, and no more`() {
        let inbox = SentMessages.Inbox(uid: 7, epoch: 1)
        var sent = SentMessages()
        var table: [String: [UInt8]] = [:]
        for seq in 1...UInt64(SentMessages.maxEntries) + 10 {
            for change in sent.sent("id-\(seq)", seq: seq, in: inbox, place: 0) { table[change.key] = change.value }
        }
        #expect(sent.clientIDs.count == SentMessages.maxEntries)
        let again = SentMessages(records: table.map { LocalRecord(key: $0.key, value: $0.value) })
        #expect(again.clientIDs == sent.clientIDs)
        #expect(!again.clientIDs.contains("id-10"))
        #expect(again.clientIDs.contains("id-11"))
        #expect(sent.sent("known", seq: 5000, in: inbox, place: 6000).count == SentMessages.maxEntries)
        #expect(sent.clientIDs.isEmpty)
    }

    @Test func `the place in one inbox says nothing about messages in another, or about those of an earlier version`() {
        let old = LocalRecord(key: "sent/old", value: [0, 0, 0, 0, 0, 0, 0, 50])
        var sent = SentMessages(records: [old])
        #expect(sent.clientIDs == ["old"])
        let inbox = SentMessages.Inbox(uid: 7, epoch: 1)
        let changes = sent.sent("mine", seq: 50, in: inbox, place: 10)
        #expect(changes.map(\.key) == ["sent/mine"])
        #expect(sent.sent("cay's", seq: 201, in: .init(uid: 9, epoch: 1), place: 200).map(\.key) == ["sent/cay's"])
        #expect(sent.sent("later", seq: 101, in: .init(uid: 7, epoch: 2), place: 100).map(\.key) == ["sent/later"])
        #expect(sent.clientIDs == ["old", "mine", "cay's", "later"])
        // The same holds after a restart.
        let records = changes.map { LocalRecord(key: $0.key, value: $0.value ?? []) }
        var next = SentMessages(records: records)
        #expect(next.sent("more", seq: 201, in: .init(uid: 9, epoch: 1), place: 200).map(\.key) == ["sent/more"])
        let last = next.sent("last", seq: 52, in: inbox, place: 51)
        #expect(last.map(\.key) == ["sent/mine", "sent/last"])
        #expect(last.map(\.value) == [nil, [0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1]])
    }

    @Test func `another account's login neither takes that account's entries away nor shows those of the first`()
        async throws
    {
        try await withServer { server in
            let port = server.port("delimited")
            let store = MemoryLocalStore()
            let bob = try HermesClient(Self.configuration(port: port, device: "bob"))
            _ = try await bob.logIn(.register(nickName: "bob", password: "secret"))
            let ann = try HermesClient(Self.configuration(port: port, store: store))
            let annSession = try await ann.logIn(.register(nickName: "ann", password: "secret"))
            for number in 1...3 { try await bob.send("\(number)", to: .user(annSession.uid)).receipt() }
            #expect(await Self.texts(3, from: ann) == ["1", "2", "3"])
            await ann.close()
            // The device and the store are the same, but the account is Cay's.
            let other = try HermesClient(Self.configuration(port: port, device: "tablet"))
            let caySession = try await other.logIn(.register(nickName: "cay", password: "secret"))
            await other.close()
            for number in 1...3 { try await bob.send("for cay \(number)", to: .user(caySession.uid)).receipt() }
            let cay = try HermesClient(Self.configuration(port: port, device: "tablet", store: store))
            _ = try await cay.logIn(.password(nickName: "cay", password: "secret"))
            #expect(await Self.texts(3, from: cay) == (1...3).map { "for cay \($0)" })
            await cay.close()
            #expect(cay.recentEvents.count == 3)
            await bob.close()
        }
    }
}
