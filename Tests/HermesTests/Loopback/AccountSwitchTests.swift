// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

/// Another account logs in on the same client. Neither account gets data of the other.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct AccountSwitchTests {
    private static func uid(of login: Hermes_V1_Authenticate) -> UInt32 {
        let name = login.password.nickName
        if name == "ann" || login.token == "token-7" { return 7 }
        return 9
    }

    @Test func `a login as another account is one, and what waits of the first neither shows nor is acknowledged`()
        async throws
    {
        let acknowledged = Log<(UInt32, UInt64)>()
        let accounts = Log<(Int, UInt32)>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate(let login):
                let uid = Self.uid(of: login)
                accounts.append((connection.number, uid))
                // The place is that of Ann's inbox.
                if uid == 9 { #expect(login.uid == 7) }
                connection.accept(id: packet.id, head: uid == 7 ? 3 : 1, token: "token-\(uid)", uid: uid)
                if uid == 7 {
                    for seq in (login.acknowledged(by: uid) + 1)...3 { connection.event(seq, "ann's \(seq)") }
                } else {
                    connection.event(1, "cay's", id: "C1")
                }
            case .acknowledge(let request):
                let uid = accounts.all.last { $0.0 == connection.number }?.1 ?? 0
                acknowledged.append((uid, request.upToSeq))
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        let ann = try await client.logIn(.password(nickName: "ann", password: "a"))
        #expect(ann.uid == 7)
        let events = client.events.makeAsyncIterator()
        guard let first = await events.next()?.message else {
            Issue.record("no message")
            return
        }
        #expect(first.text == "ann's 1")
        // A login with the same account changes nothing.
        #expect(try await client.logIn(.password(nickName: "ann", password: "a")).uid == 7)
        #expect(server.connectionCount == 1)
        let cay = try await client.logIn(.password(nickName: "cay", password: "c"))
        #expect(cay.uid == 9)
        #expect(await client.session?.uid == 9)
        guard let second = await events.next()?.message else {
            Issue.record("no message")
            return
        }
        #expect(second.text == "cay's")
        await client.close()
        #expect(await client.cursor == Cursor(epoch: 1, seq: 1))
        let last = await server.firstPacket { number, packet in
            if number == 2, case .acknowledge = packet.body { true } else { false }
        }
        #expect(last != nil)
        #expect(acknowledged.all.allSatisfy { $0.0 == 9 && $0.1 == 1 })
        // When Ann logs in again, she gets her messages, including the message that the app has not taken.
        _ = try await client.logIn(.password(nickName: "ann", password: "a"))
        guard let again = await events.next()?.message else {
            Issue.record("no message")
            return
        }
        #expect(again.text == "ann's 1")
        await client.close()
        try await server.stop()
    }

    @Test func `before the login is answered, nothing is acknowledged: the app still takes another account's entries`()
        async throws
    {
        let logins = Log<(FakeHermesServer.Connection, UInt64)>()
        let acknowledged = Log<UInt64>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate(let login) where Self.uid(of: login) == 7:
                connection.accept(id: packet.id, head: 100, token: "token-7")
                for seq in 1...100 { connection.event(UInt64(seq), "ann's \(seq)") }
            case .authenticate: logins.append((connection, packet.id))
            case .acknowledge(let request) where connection.number == 2: acknowledged.append(request.upToSeq)
            case .send(let send): connection.receipt(for: send, id: packet.id)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.password(nickName: "ann", password: "a"))
        while await client.driver.events.count < 100 { try await Task.sleep(for: .milliseconds(2)) }
        async let cay = client.logIn(.password(nickName: "cay", password: "c"))
        _ = await server.firstPacket { number, packet in
            if number == 2, case .authenticate = packet.body { true } else { false }
        }
        let events = client.events.makeAsyncIterator()
        for _ in 1...100 { _ = await events.next() }
        // This is longer than an acknowledgement is delayed.
        try await Task.sleep(for: .milliseconds(100))
        await #expect(throws: HermesClientError.self, "nobody knows whose message it is") {
            try await client.send("whose?", to: .user(8))
        }
        let (connection, id) = try #require(logins.all.first)
        connection.accept(id: id, head: 100, token: "token-9", uid: 9)
        #expect(try await cay.uid == 9)
        _ = try await client.send("cay's", to: .user(8)).receipt()
        #expect(acknowledged.all.isEmpty)
        await client.close()
        try await server.stop()
    }

    @Test func `messages of two conversations that rest when the client is closed are sent after the next login`()
        async throws
    {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send where connection.number == 1:
                connection.refuse(3002, "later", retryAfter: 200, id: packet.id)
            case .send(let send): connection.receipt(for: send, id: packet.id)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.password(nickName: "ann", password: "a"))
        let sent = [try await client.send("one", to: .user(8)), try await client.send("two", to: .user(9))]
        for uid in [8, 9] as [UInt32] {
            _ = await server.firstPacket { _, packet in
                if case .send(let send) = packet.body { send.to.uid == uid } else { false }
            }
        }
        while await client.outbox.entries.contains(where: { $0.status == .sending }) { await Task.yield() }
        await client.close()
        // The pause of the messages ends while there is no client.
        try await Task.sleep(for: .milliseconds(300))
        _ = try await client.logIn(.password(nickName: "ann", password: "a"))
        for message in sent { _ = try await message.receipt() }
        await client.close()
        try await server.stop()
    }

    @Test(arguments: [false, true])
    func `a message that was sent is not shown when its account is back, although another account came further`(
        hasStore: Bool
    ) async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate(let login) where Self.uid(of: login) == 7:
                connection.accept(id: packet.id, head: connection.number == 1 ? 1 : 3, token: "token-7")
                connection.event(1, "ann's 1")
                guard connection.number > 1 else { return }
                connection.event(2, "mine", own: "the-id")
                connection.event(3, "ann's 3")
            case .authenticate:
                connection.accept(id: packet.id, head: 201, acknowledged: 199, token: "token-9", uid: 9)
                connection.event(200, "cay's 200", id: "C200")
                connection.event(201, "cay's 201", id: "C201")
            case .send(let send): connection.receipt(for: send, id: packet.id, seq: connection.number == 1 ? 2 : 202)
            default: break
            }
        }
        var configuration = HermesClient.Configuration.fake(server)
        if hasStore { configuration.localStore = MemoryLocalStore() }
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.password(nickName: "ann", password: "a"))
        // The app has not taken Ann's first message.
        while await client.driver.events.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        _ = try await client.send(.text("mine"), to: .user(8), clientID: "the-id").receipt()
        _ = try await client.logIn(.password(nickName: "cay", password: "c"))
        let events = client.events.makeAsyncIterator()
        #expect(await events.next()?.message?.text == "cay's 200")
        #expect(await events.next()?.message?.text == "cay's 201")
        _ = try await client.send("cay's", to: .user(8)).receipt()
        _ = try await client.logIn(.password(nickName: "ann", password: "a"))
        #expect(await events.next()?.message?.text == "ann's 1")
        #expect(await events.next()?.message?.text == "ann's 3")
        await client.close()
        try await server.stop()
    }

    @Test(arguments: [false, true])
    func `a login that succeeds after its cancellation leaves the other account's cursor out of the next login`(
        isFirst: Bool
    ) async throws {
        let held = Log<(FakeHermesServer.Connection, UInt64)>()
        let told = Log<UInt64>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate(let login) = packet.body else { return }
            guard Self.uid(of: login) == 7 else { return held.append((connection, packet.id)) }
            told.append(login.acknowledged(by: 7))
            connection.accept(id: packet.id, head: 3, token: "token-7")
            for seq in UInt64(1)...3 { connection.event(seq, "ann's \(seq)") }
        }
        let store = MemoryLocalStore()
        var configuration = HermesClient.Configuration.fake(server)
        configuration.localStore = store
        let client = try HermesClient(configuration)
        if !isFirst { _ = try await client.logIn(.password(nickName: "ann", password: "a")) }
        let login = Task { try await client.logIn(.password(nickName: "cay", password: "c")) }  // Awaited below.
        while held.all.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
        login.cancel()
        await #expect(throws: CancellationError.self) { try await login.value }
        let (connection, id) = try #require(held.all.first)
        connection.accept(id: id, head: 199, acknowledged: 199, token: "token-9", uid: 9)
        while await client.session?.uid != 9 { try await Task.sleep(for: .milliseconds(2)) }
        // The store records the account of the inbox at once.
        #expect(InboxJournal(store: store, records: store.records(), maxEntries: 10).account?.uid == 9)
        #expect(try await client.logIn(.token("token-7")).uid == 7)
        try #require(told.all.last == 0)
        let events = client.events.makeAsyncIterator()
        for seq in 1...3 { #expect(await events.next()?.message?.text == "ann's \(seq)") }
        await client.close()
        try await server.stop()
    }

    @Test func `what waits in the outbox goes out under its own account alone`() async throws {
        let sent = Log<(UInt32, String)>()
        let accounts = Log<(Int, UInt32)>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate(let login):
                let uid = Self.uid(of: login)
                accounts.append((connection.number, uid))
                connection.accept(id: packet.id, token: "token-\(uid)", uid: uid)
            case .send(let send):
                let uid = accounts.all.last { $0.0 == connection.number }?.1 ?? 0
                sent.append((uid, send.content.text))
                // Ann's first message is never answered.
                if uid == 9 || connection.number > 2 { connection.receipt(for: send, id: packet.id) }
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.password(nickName: "ann", password: "a"))
        try await client.send("ann's", to: .user(8))
        _ = await server.firstPacket { _, packet in if case .send = packet.body { true } else { false } }
        async let direct = client.sendDirectly(.text("ann's own"), to: .user(8))
        _ = await server.firstPacket { _, packet in if case .send = packet.body { true } else { false } }
        _ = try await client.logIn(.password(nickName: "cay", password: "c"))
        do {
            _ = try await direct
            Issue.record("it was sent")
        } catch let error as HermesClientError {
            #expect(error.code == .closed)
        }
        try await client.send("cay's", to: .user(8))
        _ = await server.firstPacket { number, packet in
            if number == 2, case .send = packet.body { true } else { false }
        }
        #expect(sent.all.filter { $0.0 == 9 }.map(\.1) == ["cay's"])
        _ = try await client.logIn(.password(nickName: "ann", password: "a"))
        _ = await server.firstPacket { number, packet in
            if number == 3, case .send(let send) = packet.body { send.content.text == "ann's" } else { false }
        }
        await client.close()
        try await server.stop()
    }
}
