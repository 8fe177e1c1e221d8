// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

/// What an app gets from `send`, and when.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct SendTests {
    /// A server that holds back its receipts until the text "go" arrives in another conversation.
    private static func server(_ held: Log<(Hermes_V1_Send, UInt64)>) async throws -> FakeHermesServer {
        try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send) where send.content.text == "go":
                for (send, id) in held.all { connection.receipt(for: send, id: id, seq: 1) }
                connection.receipt(for: send, id: packet.id, seq: 2)
            case .send(let send) where send.content.text == "no":
                connection.refuse(2003, "bob has blocked you", id: packet.id)
            case .send(let send): held.append((send, packet.id))
            default: break
            }
        }
    }

    @Test func `send returns before the server has the message; the receipt follows`() async throws {
        let held = Log<(Hermes_V1_Send, UInt64)>()
        let server = try await Self.server(held)
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let sent = try await client.send("hello", to: .user(8))
        #expect(await client.outbox.entries.map(\.id) == [sent.id])
        async let early = sent.receipt()
        let other = try await client.send("go", to: .user(9))
        #expect(try await early.clientID == sent.id)
        #expect(try await other.receipt().conversationSeq == 2)
        // Again, and by the same id: the same message.
        #expect(try await sent.receipt().messageID.rawValue == "M-" + sent.id)
        #expect(await client.outbox.entries.isEmpty)
        await client.close()
        try await server.stop()
    }

    @Test func `a refusal for good is the receipt's error, and the entry stays`() async throws {
        let server = try await Self.server(Log())
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let sent = try await client.send(.text("no"), to: .user(8), clientID: "one")
        let error = await #expect(throws: HermesClientError.self) { try await sent.receipt() }
        #expect(error?.code == .forbidden)
        let again = try await client.send(.text("no"), to: .user(8), clientID: "one")
        let same = await #expect(throws: HermesClientError.self) { try await again.receipt() }
        #expect(same == error)
        #expect(await client.outbox.entries.map(\.id) == ["one"])
        await client.close()
        try await server.stop()
    }

    @Test func `offline it returns; the receipt is there once there is a server, and its loop may be cancelled`()
        async throws
    {
        let held = Log<(Hermes_V1_Send, UInt64)>()
        let server = try await Self.server(held)
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let port = server.port
        try await server.stop()
        let sent = try await client.send("go", to: .user(8))
        let waiting = Task { try await sent.receipt() }  // Cancelled below.
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        async let receipt = sent.receipt()
        let next = try await FakeHermesServer.scripted(port: port) { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send): connection.receipt(for: send, id: packet.id, seq: 3)
            default: break
            }
        }
        #expect(try await receipt.conversationSeq == 3)
        await client.close()
        try await next.stop()
    }

    @Test func `a closed client ends the waiting, and the message stays; a discarded one says so`() async throws {
        let held = Log<(Hermes_V1_Send, UInt64)>()
        let server = try await Self.server(held)
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let sent = try await client.send("held", to: .user(8))
        let later = try await client.send("behind it", to: .user(8))
        async let early = sent.receipt()
        // The first is on its way; the second waits for it.
        while held.all.isEmpty { await Task.yield() }
        #expect(try await client.outbox.discard(clientID: later.id))
        let discarded = await #expect(throws: HermesClientError.self) { try await later.receipt() }
        #expect(discarded?.code == .discarded)
        await client.close()
        do {
            _ = try await early
            Issue.record("there is no receipt")
        } catch {
            #expect((error as? HermesClientError)?.code == .closed)
        }
        let closed = await #expect(throws: HermesClientError.self) { try await sent.receipt() }
        #expect(closed?.code == .closed)
        #expect(await client.outbox.entries.map(\.id) == [sent.id])
        try await server.stop()
    }
}
