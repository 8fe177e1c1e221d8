// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// A message that the server cannot read, for example because it is too long, fails permanently. It does not end one
/// connection after the other.
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
                connection.endForBreach("a frame of 2000 bytes is longer than the 1000 that are allowed")
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

    @Test func `after another breach messages go one at a time, and only the cause fails`() async throws {
        let sent = Log<String>()
        let server = try await FakeHermesServer.scripted { packet, connection in
            switch packet.body {
            case .authenticate: connection.accept(id: packet.id)
            case .send(let send):
                let count = sent.count(adding: "\(connection.number) \(send.content.text)")
                // All messages are in flight when the first connection ends.
                if connection.number == 1 ? count == 4 : send.content.text == "bad" {
                    connection.endForBreach("not a packet", .badBody)
                } else if connection.number > 1, send.content.text != "first" {
                    connection.receipt(for: send, id: packet.id)
                }
            default: break
            }
        }
        let client = try HermesClient(.fake(server))
        _ = try await client.logIn(.token("t"))
        let texts = ["first", "bad", Self.long, "last"]
        var messages: [SentMessage] = []
        for (index, text) in texts.enumerated() {
            messages.append(try await client.send(text, to: .user(.init(rawValue: UInt32(8 + index)))))
        }
        let first = await server.firstPacket { number, packet in
            if case .send = packet.body { number == 2 } else { false }
        }
        // The message waits, because the first message has no answer yet.
        messages.append(try await client.send("later", to: .user(20)))
        if let first, case .send(let send) = first.body {
            var packet = Hermes_V1_Packet()
            packet.id = first.id
            packet.result.receipt.messageID = "M"
            packet.result.receipt.clientID = send.clientID
            server.send(try DelimitedFrame(packet))
        }
        for (index, message) in messages.enumerated() where index != 1 { _ = try await message.receipt() }
        let bad = messages[1]
        let error = await #expect(throws: HermesClientError.self) { try await bad.receipt() }
        #expect(error?.code == .notEncodable)
        #expect(error?.message.contains("not a packet") == true)
        #expect(sent.all.dropFirst(4).prefix(2) == ["2 first", "2 bad"])
        #expect(Set(sent.all.dropFirst(6)) == ["3 \(Self.long)", "3 last", "3 later"])
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
                connection.endForBreach("", .frameTooLong)
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

    @Test func `over MQTT in a WebSocket, what the server closes for its length goes once, and the rest is answered`()
        async throws
    {
        let published = Log<String>()
        let server = try await FakeWebSocketServer { number, channel, accept in
            channel.writeAndFlush(FakeWebSocketServer.answer(accept), promise: nil)
            let packets = MQTTPackets { packet, channel in
                switch packet {
                case .connect:
                    MQTTPackets.send(.connack(MQTTConnack(sessionPresent: number > 1, reason: .success)), channel)
                case .publish(let publish):
                    let isLong = publish.payload.readableBytes > 1000
                    published.append("\(number) \(isLong ? "long" : "short")")
                    if isLong {
                        var close = ByteBuffer()
                        WebSocketOutput.writeClose(1009, into: &close)
                        channel.writeAndFlush(close, promise: nil)
                    } else if number > 1, let packetID = publish.packetID {
                        MQTTPackets.send(.puback(MQTTAcknowledgement(packetID: packetID)), channel)
                    }
                default: break
                }
            }
            try? channel.pipeline.syncOperations.addHandler(packets, position: .first)
        }
        var configuration = MQTTClient.Configuration(server: ServerAddress(port: server.port), clientID: "test")
        configuration.server.webSocketPath = "/mqtt"
        configuration.version = .v311
        configuration.cleanStart = false
        configuration.conditions = DeviceConditions()
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(5)], jitter: 0)
        let client = try MQTTClient(configuration)
        try await client.connect()
        async let short = client.publish("short", to: "a", qos: .atLeastOnce)
        while published.all.isEmpty { await Task.yield() }
        let error = await #expect(throws: HermesClientError.self) {
            try await client.publish(Self.long, to: "a", qos: .atLeastOnce)
        }
        #expect(error?.code == .notEncodable)
        #expect(error?.message.contains("does not accept") == true)
        let outcome = try await short
        #expect(outcome == .success)
        #expect(published.all == ["1 short", "1 long", "2 short"])
        await client.close()
        try await server.stop()
    }

    @Test func `over MQTT what is shorter than another packet, or was not sent, is not given up`() throws {
        var machine = MQTTOutbound()
        let outgoing = try MQTTOutgoing(MQTTMessage(topic: "a", text: "s", qos: .atLeastOnce), version: .v311)
        let bytes = outgoing.frame.encodedBytes
        _ = machine.connected(sessionPresent: false, receiveMaximum: 10, maxPacketBytes: nil)
        #expect(machine.published(outgoing, id: 16).count == 1)
        #expect(machine.refusedForLength(atLeast: bytes + 1).isEmpty)
        machine.lost()
        #expect(machine.refusedForLength().isEmpty, "no connection refused it")
        _ = machine.connected(sessionPresent: true, receiveMaximum: 10, maxPacketBytes: nil)
        #expect(machine.refusedForLength().isEmpty, "it was not sent over this connection")
        #expect(machine.resumed().count == 1)
        #expect(machine.refusedForLength(atLeast: bytes).count == 1)
        #expect(machine.inflight.isEmpty)
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
        // The server may still treat the packet identifier as used.
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

/// Reads the MQTT 3.1.1 packets in a client's WebSocket messages.
private final class MQTTPackets: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var input = WebSocketInput()
    private var decoder = MQTTFrameDecoder()
    private var frames = ByteBuffer()
    private var packets = ByteBuffer()
    private let received: (MQTTPacket, any Channel) -> Void

    init(_ received: @escaping (MQTTPacket, any Channel) -> Void) { self.received = received }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        frames.writeImmutableBuffer(unwrapInboundIn(data))
        do {
            while try input.take(from: &frames, into: &packets) != nil {}
            while let frame = try decoder.next(from: &packets) {
                received(try MQTTPacket(frame, version: .v311), context.channel)
            }
        } catch {
            context.close(promise: nil)
        }
    }

    static func send(_ packet: MQTTPacket, _ channel: any Channel) {
        var body = ByteBuffer()
        guard (try? packet.write(into: &body, version: .v311)) != nil else { return }
        var frame = ByteBuffer()
        WebSocketOutput.writeHeader(of: body.readableBytes, into: &frame)
        frame.writeBuffer(&body)
        channel.writeAndFlush(frame, promise: nil)
    }
}
