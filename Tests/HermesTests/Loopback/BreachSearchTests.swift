// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import Testing

@testable import Hermes

/// The search for the request that made the server end a connection.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct BreachSearchTests {
    @Test func `a room text that is alone in flight fails with the breach, and is not sent again`() async throws {
        let texts = Log<String>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .room(let room):
                texts.append(room.text.text)
                connection.endForBreach("not a packet", .badBody)
            case .send(let send): connection.receipt(for: send, id: packet.id)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let error = await #expect(throws: HermesClientError.self) { try await client.sayInRoom("lobby", "bad") }
        #expect(error?.code == .notEncodable)
        #expect(error?.message.contains("not a packet") == true)
        _ = try await client.sendDirectly(.text("another"), to: .user(8))
        #expect(texts.all == ["bad"])
        #expect(server.connectionCount == 2)
        await client.close()
        try await server.stop()
    }

    @Test func `no request fails for one that was cancelled in flight`() async throws {
        let sent = Log<String>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send):
                let count = sent.count(adding: "\(connection.number) \(send.content.text)")
                switch connection.number {
                case 1: if count == 2 { connection.endForBreach("not a packet", .badBody) }
                // The breach of the cancelled message is noticed after the other message was written.
                case 2: if send.content.text == "innocent" { connection.endForBreach("not a packet", .badBody) }
                default: connection.receipt(for: send, id: packet.id)
                }
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let cancelled = Task { try await client.sendDirectly(.text("cancelled"), to: .user(8)) }
        _ = await server.firstPacket { _, packet in if case .send = packet.body { true } else { false } }
        async let innocent = client.sendDirectly(.text("innocent"), to: .user(9))
        _ = await server.firstPacket { number, packet in
            if case .send = packet.body { number == 2 } else { false }
        }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        _ = try await innocent
        #expect(sent.all == ["1 cancelled", "1 innocent", "2 cancelled", "2 innocent", "3 innocent"])
        await client.close()
        try await server.stop()
    }

    @Test func `a logout does not wait until the suspects are answered`() async throws {
        let sent = Log<String>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send):
                if sent.count(adding: send.content.text) == 2 { connection.endForBreach("not a packet", .badBody) }
            case .logOut: connection.send(.result(Hermes_V1_Result()), id: packet.id)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let messages = ["a", "b"].map { text in
            Task { try await client.sendDirectly(.text(text), to: .user(8)) }
        }
        _ = await server.firstPacket { number, packet in
            if case .send = packet.body { number == 2 } else { false }
        }
        try await client.logOut()
        for message in messages {
            await #expect(throws: HermesClientError.self) { try await message.value }
        }
        #expect(sent.all.count == 3)
        try await server.stop()
    }
}
