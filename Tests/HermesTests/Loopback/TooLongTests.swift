// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// A message that is too long for the server fails for good; it does not end one connection after the other.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct TooLongTests {
    private static let long = String(repeating: "x", count: 2000)

    @Test func `what is above the told limit is not written, and what is behind it goes`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id, maxFrameBytes: 1000)
            case .send(let send):
                #expect(send.content.text == "short")
                connection.receipt(for: send, id: packet.id)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        let changes = client.outbox.changes
        _ = try await client.logIn(.token("t"))
        let failed = try await client.send(Self.long, to: .user(8))
        try await client.send("short", to: .user(8))
        var ends: [OutboxEntry.Status] = []
        for await entry in changes {
            switch entry.status {
            case .queued, .sending: continue
            case .sent, .failed, .discarded: ends.append(entry.status)
            }
            if ends.count == 2 { break }
        }
        guard case .failed(let error) = ends.first, case .sent = ends.last else {
            Issue.record("\(ends)")
            return
        }
        #expect(error.code == .notEncodable)
        #expect(error.message.contains("the server accepts at most 1000"))
        #expect(await client.outbox.entries.map(\.id) == [failed.id])
        let direct = await #expect(throws: HermesClientError.self) {
            try await client.sendDirectly(.text(Self.long), to: .user(8))
        }
        #expect(direct?.code == .notEncodable)
        #expect(server.connectionCount == 1)
        await client.close()
        try await server.stop()
    }

    @Test func `a text that a server would refuse is not sent`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send): connection.receipt(for: send, id: packet.id)
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        for (count, isSent) in [(StreamSafeText.maxRun, true), (StreamSafeText.maxRun + 1, false)] {
            let sent = try await client.send("a" + String(repeating: "\u{301}", count: count), to: .user(8))
            if isSent {
                _ = try await sent.receipt()
            } else {
                let error = await #expect(throws: HermesClientError.self) { try await sent.receipt() }
                #expect(error?.code == .notEncodable)
            }
        }
        try await client.sendDirectly(.text("another"), to: .user(8))
        #expect(server.connectionCount == 1)
        await client.close()
        try await server.stop()
    }

    @Test func `a server that tells no limit gets it twice, then it fails and the rest goes`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send):
                guard send.content.text.utf8.count > 1000 else { return connection.receipt(for: send, id: packet.id) }
                var kicked = Hermes_V1_Kicked()
                kicked.reason = .protocol
                kicked.message = "a frame of 2000 bytes is longer than the 1000 that are allowed"
                connection.send(.kicked(kicked))
                connection.close()
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        async let short = client.sendDirectly(.text("short"), to: .user(9))
        let error = await #expect(throws: HermesClientError.self) {
            try await client.sendDirectly(.text(Self.long), to: .user(8))
        }
        #expect(error?.code == .notEncodable)
        #expect(error?.message.contains("longer than the 1000") == true)
        _ = try await short
        try await client.sendDirectly(.text("another"), to: .user(8))
        #expect(server.connectionCount == 3)
        await client.close()
        try await server.stop()
    }

    @Test func `a server that says by its number that a frame was too long gets it once`() async throws {
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send):
                guard send.content.text.utf8.count > 1000 else { return connection.receipt(for: send, id: packet.id) }
                var kicked = Hermes_V1_Kicked()
                kicked.reason = .protocol
                kicked.code = WireError.Code.frameTooLong.rawValue
                connection.send(.kicked(kicked))
                connection.close()
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let error = await #expect(throws: HermesClientError.self) {
            try await client.sendDirectly(.text(Self.long), to: .user(8))
        }
        #expect(error?.code == .notEncodable)
        try await client.sendDirectly(.text("short"), to: .user(8))
        #expect(server.connectionCount == 2)
        await client.close()
        try await server.stop()
    }

    @Test func `over MQTT what the server disconnects for its length is not sent again`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect: connection.accept(sessionPresent: connection.number > 1)
            case .publish(let publish):
                guard let packetID = publish.packetID else { return }
                if publish.payload.readableBytes > 1000 {
                    connection.send(.disconnect(MQTTDisconnect(reason: .packetTooLarge)))
                    connection.close()
                } else {
                    connection.send(.puback(MQTTAcknowledgement(packetID: packetID)))
                }
            default: break
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        let error = await #expect(throws: HermesClientError.self) {
            try await client.publish(Self.long, to: "a", qos: .atLeastOnce)
        }
        #expect(error?.code == .notEncodable)
        try await client.publish("short", to: "a", qos: .atLeastOnce)
        #expect(server.connectionCount == 2)
        await client.close()
        try await server.stop()
    }

    @Test func `over MQTT what was sent once and is above the limit of the next connection fails`() throws {
        var machine = MQTTOutbound()
        _ = machine.connected(sessionPresent: false, receiveMaximum: 10, maxPacketBytes: nil)
        let outgoing = try MQTTOutgoing(
            MQTTMessage(topic: "a", text: Self.long, qos: .exactlyOnce),
            version: .v5
        )
        #expect(machine.published(outgoing, id: 16).count == 1)
        machine.lost()
        let actions = machine.connected(sessionPresent: true, receiveMaximum: 10, maxPacketBytes: 1000)
        guard case .failed(16, let error) = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(error.code == .notEncodable)
        #expect(machine.resumed().isEmpty)
        // The server may hold the number for taken.
        let short = try MQTTOutgoing(MQTTMessage(topic: "a", text: "s", qos: .exactlyOnce), version: .v5)
        #expect(machine.published(short, id: 17) == [.send(short.numbered(2, isDuplicate: false))])
    }

    @Test func `over MQTT what nobody waits for any more is not sent over connection after connection`() throws {
        var machine = MQTTOutbound()
        _ = machine.connected(sessionPresent: false, receiveMaximum: 10, maxPacketBytes: nil)
        let outgoing = try MQTTOutgoing(MQTTMessage(topic: "a", text: "s", qos: .atLeastOnce), version: .v311)
        _ = machine.published(outgoing, id: 16)
        machine.abandoned(id: 16)
        var connections = 1
        for _ in 0..<10 {
            machine.lost()
            _ = machine.connected(sessionPresent: true, receiveMaximum: 10, maxPacketBytes: nil)
            connections += machine.resumed().count
        }
        #expect(connections == 3)
        #expect(machine.inflight.isEmpty)
    }
}
