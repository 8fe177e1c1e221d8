// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOConcurrencyHelpers
import NIOCore
import Testing

@testable import Hermes

/// A WebSocket server that breaks the standard. Each violation causes an error that describes it, in bounded memory.
/// The client then reconnects by its policy.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct HostileWebSocketTests {
    enum Way: CaseIterable, Sendable {
        case wrongKey, wrongSubprotocol, endlessHead, silentClose
        case masked, reservedBit, text, strayPart, nestedMessage, emptyParts, endlessParts
        case longControl, cutControl, hugeLength, badClose

        /// The error: some violations prevent the WebSocket from opening, others break an open WebSocket.
        var code: HermesClientError.Code {
            switch self {
            case .wrongKey, .wrongSubprotocol, .endlessHead, .silentClose: .cannotConnect
            case .badClose: .kicked
            default: .protocolViolation
            }
        }

        /// The bytes after the handshake, and whether they repeat endlessly.
        var frames: (bytes: [UInt8], isEndless: Bool) {
            switch self {
            case .wrongKey, .wrongSubprotocol, .endlessHead, .silentClose: ([], false)
            case .masked: ([0x82, 0x81, 1, 2, 3, 4, 5], false)
            case .reservedBit: ([0xC2, 1, 0], false)
            case .text: ([0x81, 1, 0x61], false)
            case .strayPart: ([0x80, 1, 0], false)
            case .nestedMessage: ([0x02, 1, 0x20, 0x82, 1, 0], false)
            case .emptyParts: ([UInt8](repeating: 0, count: 4096), true)
            case .endlessParts: ([0x00, 0x7E, 0x10, 0x00] + [UInt8](repeating: 0, count: 0x1000), true)
            case .longControl: ([0x89, 0x7E, 0, 126] + [UInt8](repeating: 0, count: 126), false)
            case .cutControl: ([0x09, 0], false)
            case .hugeLength: ([0x82, 0x7F, 0x7F] + [UInt8](repeating: 0xFF, count: 7), false)
            case .badClose: ([0x88, 2, 0x03, 0xF0], false)
            }
        }

        func run(_ channel: any Channel, _ accept: String, _ written: NIOLockedValueBox<Int>) {
            switch self {
            case .silentClose: return channel.close(promise: nil)
            case .wrongKey: return channel.writeAndFlush(FakeWebSocketServer.answer("AAAA" + accept), promise: nil)
            case .wrongSubprotocol:
                return channel.writeAndFlush(FakeWebSocketServer.answer(accept, subprotocol: "chat"), promise: nil)
            case .endlessHead:
                channel.writeAndFlush(ByteBuffer(string: "HTTP/1.1 101 Switching Protocols\r\n"), promise: nil)
                let filler = String(repeating: "X-Filler: 1\r\n", count: 300)
                return Self.flood(channel, ByteBuffer(string: filler), written)
            default: break
            }
            channel.writeAndFlush(FakeWebSocketServer.answer(accept), promise: nil)
        }

        /// Breaks the standard after the client's CONNECT has arrived.
        func breach(_ channel: any Channel, _ written: NIOLockedValueBox<Int>) {
            let begin: [UInt8] =
                switch self {
                case .emptyParts: [0x02, 1, 0x20]
                case .endlessParts: [0x02, 5, 0x30, 0xFF, 0xFF, 0xFF, 0x7F]
                default: []
                }
            channel.writeAndFlush(ByteBuffer(bytes: begin + (frames.isEndless ? [] : frames.bytes)), promise: nil)
            if frames.isEndless { Self.flood(channel, ByteBuffer(bytes: frames.bytes), written) }
        }

        /// Sends the same bytes again and again until the client closes the connection.
        private static func flood(_ channel: any Channel, _ bytes: ByteBuffer, _ written: NIOLockedValueBox<Int>) {
            channel.writeAndFlush(bytes).whenSuccess {
                written.withLockedValue { $0 += bytes.readableBytes }
                flood(channel, bytes, written)
            }
        }
    }

    private static func configuration(_ server: FakeWebSocketServer) -> MQTTClient.Configuration {
        var configuration = MQTTClient.Configuration(server: ServerAddress(port: server.port))
        configuration.server.webSocketPath = "/mqtt"
        configuration.conditions = DeviceConditions()
        configuration.reconnect = .never
        return configuration
    }

    @Test(arguments: Way.allCases)
    func `each breach ends in an error that says what it was`(_ way: Way) async throws {
        let written = NIOLockedValueBox(0)
        let server = try await FakeWebSocketServer(
            { _, channel, accept in way.run(channel, accept, written) },
            received: { _, channel, _ in way.breach(channel, written) }
        )
        let client = try MQTTClient(Self.configuration(server))
        let error = await #expect(throws: HermesClientError.self) { try await client.connect() }
        #expect(error?.code == way.code, "\(String(describing: error))")
        #expect(error?.message.isEmpty == false)
        // The limit covers the bytes that the client has read, and the system's buffers.
        #expect(written.withLockedValue { $0 } < 64 << 20)
        await client.close()
        try await server.stop()
    }

    /// Bytes in the same segment as the end of the handshake are read before the client has its connection.
    @Test(arguments: [Way.masked, .reservedBit, .text, .strayPart, .longControl, .cutControl, .hugeLength, .badClose])
    func `a breach together with the handshake is told as what it was`(_ way: Way) async throws {
        let server = try await FakeWebSocketServer { _, channel, accept in
            var bytes = FakeWebSocketServer.answer(accept)
            bytes.writeBytes(way.frames.bytes)
            channel.writeAndFlush(bytes, promise: nil)
        }
        let client = try MQTTClient(Self.configuration(server))
        let error = await #expect(throws: HermesClientError.self) { try await client.connect() }
        #expect(error?.code == way.code, "\(String(describing: error))")
        await client.close()
        try await server.stop()
    }

    @Test func `a packet together with the handshake is read once the connection is open`() async throws {
        let server = try await FakeWebSocketServer { _, channel, accept in
            var bytes = FakeWebSocketServer.answer(accept)
            // These bytes are a DISCONNECT of 5.0 for an administrative action, without properties.
            bytes.writeBytes([0x82, 4, 0xE0, 2, 0x98, 0])
            channel.writeAndFlush(bytes, promise: nil)
        }
        var configuration = Self.configuration(server)
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(1)], jitter: 0)
        let client = try MQTTClient(configuration)
        let error = await #expect(throws: HermesClientError.self) { try await client.connect() }
        #expect(error?.mqttReason?.rawValue == 0x98)
        #expect(server.connectionCount == 1)
        try await server.stop()
    }

    @Test func `what comes together with the handshake is bounded`() async throws {
        let server = try await FakeWebSocketServer { _, channel, accept in
            var bytes = FakeWebSocketServer.answer(accept)
            bytes.writeBytes([0x82, 100] + [UInt8](repeating: 0, count: 100))
            channel.writeAndFlush(bytes, promise: nil)
        }
        var configuration = Self.configuration(server)
        configuration.maxPacketBytes = 16
        let client = try MQTTClient(configuration)
        let error = await #expect(throws: HermesClientError.self) { try await client.connect() }
        #expect(error?.code == .protocolViolation)
        #expect(error?.message.contains("before the login") == true)
        try await server.stop()
    }

    @Test(arguments: Way.allCases)
    func `the client comes back by its policy`(_ way: Way) async throws {
        let written = NIOLockedValueBox(0)
        let server = try await FakeWebSocketServer(
            { number, channel, accept in
                guard number > 2 else { return way.run(channel, accept, written) }
                channel.writeAndFlush(FakeWebSocketServer.answer(accept), promise: nil)
            },
            received: { number, channel, _ in
                guard number > 2 else { return way.breach(channel, written) }
                // These bytes are a CONNACK of 5.0 without properties.
                channel.writeAndFlush(ByteBuffer(bytes: [0x82, 5, 0x20, 3, 0, 0, 0]), promise: nil)
            }
        )
        var configuration = Self.configuration(server)
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(1)], jitter: 0)
        let client = try MQTTClient(configuration)
        try await client.connect()
        #expect(server.connectionCount == 3)
        await client.close()
        try await server.stop()
    }

    @Test func `a close frame that says "too long" fails what was too long, once`() async throws {
        let server = try await FakeWebSocketServer(
            { _, channel, accept in channel.writeAndFlush(FakeWebSocketServer.answer(accept), promise: nil) },
            received: { number, channel, bytes in
                if bytes < 500 { channel.writeAndFlush(ByteBuffer(bytes: [0x82, 5, 0x20, 3, 0, 0, 0]), promise: nil) }
                guard number == 1, bytes > 1_000 else { return }
                channel.writeAndFlush(ByteBuffer(bytes: [0x88, 2, 0x03, 0xF1]), promise: nil)
            }
        )
        var configuration = Self.configuration(server)
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(1)], jitter: 0)
        let client = try MQTTClient(configuration)
        try await client.connect()
        let error = await #expect(throws: HermesClientError.self) {
            try await client.publish(String(repeating: "x", count: 1_000), to: "a", qos: .atLeastOnce)
        }
        #expect(error?.code == .notEncodable)
        await client.close()
        try await server.stop()
    }
}
