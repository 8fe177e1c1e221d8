// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@Suite(.inTurns, .timeLimit(.minutes(1)))
struct HermesClientTests {
    @Test func `logs in, sends, receives and acknowledges`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate(let request):
                #expect(request.password.nickName == "ann")
                #expect(request.device.id == "test-device")
                connection.accept(id: packet.id)
                connection.event(1, "hello ann")
            case .send(let send):
                #expect(send.to.uid == 8)
                #expect(send.content.text == "hello bob")
                #expect(!send.clientID.isEmpty)
                connection.receipt(for: send, id: packet.id, seq: 2)
            default: break
            }
        }
        let receipt = try await HermesClient.withClient(
            .fake(server),
            .password(nickName: "ann", password: "secret")
        ) { client, session in
            #expect(session.uid == 7)
            #expect(session.token == "token-1")
            for await event in client.events {
                guard let message = event.message else { continue }
                #expect(message.text == "hello ann")
                #expect(message.fromNickName == "bob")
                break
            }
            return try await client.sendDirectly(.text("hello bob"), to: .user(8))
        }
        #expect(receipt.messageID.rawValue.hasPrefix("M-"))
        let acknowledged = await server.firstPacket { _, packet in
            if case .acknowledge(let acknowledge) = packet.body { acknowledge.upToSeq == 2 } else { false }
        }
        #expect(acknowledged != nil)
        try await server.stop()
    }

    @Test func `a refused login is told and not tried again`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            connection.refuse(1003, "wrong name or password", id: packet.id)
        }
        let client = try HermesClient(.fake(server))
        await #expect(throws: HermesClientError(.wrongCredentials, "wrong name or password")) {
            try await client.logIn(.password(nickName: "ann", password: "wrong"))
        }
        #expect(server.connectionCount == 1)
        await #expect(throws: HermesClientError.self) { try await client.sendDirectly(.text("x"), to: .user(8)) }
        try await server.stop()
    }

    @Test func `a server that is not there is told at once where the policy says never`() async throws {
        // No program listens on this port, and no program can get it in the meantime.
        var configuration = HermesClient.Configuration.fake(port: 1)
        configuration.reconnect = .never
        let client = try HermesClient(configuration)
        let error = await #expect(throws: HermesClientError.self) {
            try await client.logIn(.token("t"))
        }
        #expect(error?.code == .cannotConnect)
    }

    @Test func `a send whose receipt was lost is sent again under the same client id, in order`() async throws {
        let sent = Log<(Int, String, String)>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate(let request):
                if connection.number == 1 {
                    #expect(request.password.nickName == "ann")
                } else {
                    #expect(request.token == "token-1")
                }
                connection.accept(id: packet.id, token: connection.number == 1 ? "token-1" : "")
            case .send(let send):
                let count = sent.count(adding: (connection.number, send.clientID, send.content.text))
                if connection.number == 1 {
                    if count == 3 { connection.close() }
                } else {
                    connection.receipt(for: send, id: packet.id, duplicate: send.content.text == "1")
                }
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.password(nickName: "ann", password: "secret"))
        async let first = client.sendDirectly(.text("1"), to: .user(8), clientID: "c1")
        async let second = client.sendDirectly(.text("2"), to: .user(8), clientID: "c2")
        async let third = client.sendDirectly(.text("3"), to: .user(8), clientID: "c3")
        let receipts = try await [first, second, third]
        #expect(receipts.map(\.clientID) == ["c1", "c2", "c3"])
        #expect(receipts.map(\.isDuplicate) == [true, false, false])
        let before = sent.all.filter { $0.0 == 1 }.map(\.1)
        let after = sent.all.filter { $0.0 == 2 }.map(\.1)
        #expect(before.count == 3)
        #expect(after == before)
        await client.close()
        try await server.stop()
    }

    @Test func `what comes twice after a reconnect reaches the app once`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate(let request) = packet.body else { return }
            if connection.number == 1 {
                connection.accept(id: packet.id, head: 2)
                connection.event(1, "one")
                connection.event(2, "two")
                connection.close()
            } else {
                #expect(request.epoch == 1)
                connection.accept(id: packet.id, head: 4)
                for seq in (request.acknowledgedSeq + 1)...4 { connection.event(seq, "\(seq)") }
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        var seqs: [UInt64] = []
        for await event in client.events {
            guard let message = event.message else { continue }
            seqs.append(message.conversationSeq)
            if seqs.count == 4 { break }
        }
        #expect(seqs == [1, 2, 3, 4])
        await client.close()
        try await server.stop()
    }

    @Test func `a hole is noticed and filled, and a duplicate dropped`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate:
                connection.accept(id: packet.id)
                connection.event(1, "1")
                connection.event(1, "1")
                connection.event(4, "4")
            case .synchronize(let request):
                #expect(request.afterSeq == 1)
                var result = Hermes_V1_Result()
                result.synchronized.epoch = 1
                result.synchronized.headSeq = 4
                result.synchronized.oldestSeq = 1
                result.synchronized.count = 3
                connection.send(.result(result), id: packet.id)
                for seq in UInt64(2)...4 { connection.event(seq, "\(seq)") }
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        var texts: [String] = []
        for await event in client.events {
            guard let message = event.message else { continue }
            texts.append(message.text ?? "")
            if texts.count == 4 { break }
        }
        #expect(texts == ["1", "2", "3", "4"])
        await client.close()
        try await server.stop()
    }

    @Test(arguments: [
        (Hermes_V1_Kicked.Reason.replaced, HermesClientError.Code.replaced),
        (.disabled, .accountDisabled), (.revoked, .revoked),
    ])
    func `a client that is sent away for good stays away`(
        reason: Hermes_V1_Kicked.Reason,
        code: HermesClientError.Code
    ) async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            connection.accept(id: packet.id)
            var kicked = Hermes_V1_Kicked()
            kicked.reason = reason
            kicked.message = "because"
            connection.send(.kicked(kicked))
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let error = await #expect(throws: HermesClientError.self) { try await client.run() }
        #expect(error?.code == code)
        #expect(error?.message == "because")
        #expect(server.connectionCount == 1)
        for await _ in client.events { Issue.record("no event is due") }
        try await server.stop()
    }

    @Test func `a server that sends its clients elsewhere is left for the other, and that one for it`() async throws {
        let other = try await FakeHermesServer.scripted { packet, connection in
            connection.accept(id: packet.id, head: 1)
            connection.event(1, "from the other")
        }
        let server = try await FakeHermesServer.scripted { packet, connection in
            connection.accept(id: packet.id, head: connection.number == 1 ? 0 : 2)
            guard connection.number == 1 else { return connection.event(2, "from the first again") }
            var kicked = Hermes_V1_Kicked()
            kicked.reason = .shutdown
            kicked.reconnect.windowMs = 20
            kicked.reconnect.address = "127.0.0.1:\(other.port)"
            connection.send(.kicked(kicked))
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        var texts: [String] = []
        for await event in client.events {
            guard let message = event.message else { continue }
            texts.append(message.text ?? "")
            if texts.count == 2 { break }
            // The server's redirection applies to only one login.
            other.closeConnection()
        }
        #expect(texts == ["from the other", "from the first again"])
        #expect(other.connectionCount == 1)
        await client.close()
        try await other.stop()
        try await server.stop()
    }

    @Test func `a server that sends its clients to nobody gets them back`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            connection.accept(id: packet.id)
            guard connection.number == 1 else { return connection.event(1, "back") }
            var kicked = Hermes_V1_Kicked()
            kicked.reason = .shutdown
            kicked.reconnect.windowMs = 20
            kicked.reconnect.address = "127.0.0.1:1"
            connection.send(.kicked(kicked))
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        for await event in client.events {
            guard let message = event.message else { continue }
            #expect(message.text == "back")
            break
        }
        await client.close()
        try await server.stop()
    }

    @Test func `a request that gets no answer fails in time`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            if case .authenticate = packet.body { connection.accept(id: packet.id) }
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.requestTimeout = .milliseconds(50)
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        let error = await #expect(throws: HermesClientError.self) { try await client.devices() }
        #expect(error?.code == .timedOut)
        await client.close()
        try await server.stop()
    }

    @Test func `a cancelled request and a closed client leave nobody waiting`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            if case .authenticate = packet.body { connection.accept(id: packet.id) }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        await withTaskGroup { group in
            group.addTask { await #expect(throws: CancellationError.self) { try await client.devices() } }
            group.cancelAll()
        }
        async let waiting = #expect(throws: HermesClientError.self) { try await client.devices() }
        _ = await server.firstPacket { _, packet in
            if case .device = packet.body { true } else { false }
        }
        await client.close()
        _ = await waiting
        try await server.stop()
    }

    @Test func `heartbeats without answer end the connection, answered ones do not`() async throws {
        let pings = Log<Int>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .ping:
                let count = pings.count(adding: connection.number)
                if count <= 3 || connection.number > 1 { connection.send(.pong(Hermes_V1_Pong()), id: packet.id) }
            default: break
            }
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.heartbeat = HeartbeatPolicy(interval: .milliseconds(10), answerTimeout: .milliseconds(100))
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        _ = await server.firstPacket { number, packet in
            if number == 2, case .ping = packet.body { true } else { false }
        }
        // The fourth heartbeat is unanswered, and so are the two heartbeats that repeat it.
        #expect(pings.all.filter { $0 == 1 }.count == 6)
        await client.close()
        try await server.stop()
    }

    @Test func `what breaks the protocol ends the connection and the client comes back`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            connection.accept(id: packet.id)
            if connection.number == 1 {
                connection.channel.writeAndFlush(ByteBuffer(repeating: 0xFF, count: 6), promise: nil)
            } else {
                connection.event(1, "back")
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        for await event in client.events {
            guard let message = event.message else { continue }
            #expect(message.text == "back")
            break
        }
        #expect(server.connectionCount == 2)
        await client.close()
        try await server.stop()
    }

    @Test func `a reconnect ticket is shown at the next login, and at that one alone`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate(let request) = packet.body else { return }
            #expect(Array(request.ticket) == (connection.number == 2 ? [1, 2, 3] : []))
            connection.accept(id: packet.id)
            guard connection.number < 3 else { return }
            var kicked = Hermes_V1_Kicked()
            kicked.reason = .shutdown
            kicked.reconnect.windowMs = 1
            if connection.number == 1 { kicked.reconnect.ticket.append(contentsOf: [1, 2, 3]) }
            connection.send(.kicked(kicked))
            connection.close()
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let third = await server.firstPacket { number, packet in
            if case .authenticate = packet.body { number == 3 } else { false }
        }
        #expect(third != nil)
        await client.close()
        try await server.stop()
    }

    @Test func `a late login of its own that takes its place is no reason to stop; the second such time is`()
        async throws
    {
        let server = try await FakeHermesServer.scripted { packet, connection in
            guard case .authenticate = packet.body else { return }
            // The first login is never answered.
            guard connection.number > 1 else { return }
            connection.accept(id: packet.id)
            var kicked = Hermes_V1_Kicked()
            kicked.reason = .replaced
            connection.send(.kicked(kicked))
            connection.close()
        }
        var configuration = HermesClient.Configuration.fake(server)
        configuration.loginTimeout = .milliseconds(50)
        let client = try HermesClient(configuration)
        _ = try await client.logIn(.token("t"))
        let error = await #expect(throws: HermesClientError.self) { try await client.run() }
        #expect(error?.code == .replaced)
        #expect(server.connectionCount == 3)
        try await server.stop()
    }
}
