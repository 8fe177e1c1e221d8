// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// The client's subscriptions after a server has lost its session.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct MQTTRenewalTests {
    private static func grant(
        _ request: MQTTSubscribe,
        _ connection: FakeMQTTServer.Connection,
        version: MQTTVersion = .v5
    ) {
        let reasons = request.subscriptions.map { _ in MQTTReasonCode.grantedQoS1 }
        connection.send(.suback(MQTTSuback(packetID: request.packetID, reasons: reasons)), version: version)
    }

    @Test(arguments: [MQTTClient.Version.v311, .v5])
    func `many subscriptions are renewed in packets that the server accepts`(version: MQTTClient.Version) async throws {
        let renewed = Log<String>()
        let server = try await FakeMQTTServer.scripted(version: version.wire) { packet, connection in
            switch packet {
            case .connect:
                let properties: MQTTProperties = version == .v5 ? [.maximumPacketSize(512)] : []
                let answer = MQTTConnack(reason: .success, properties: properties)
                connection.send(.connack(answer), version: version.wire)
            case .subscribe(let request):
                let bytes = (try? packet.frame(version: version.wire))?.encodedBytes ?? .max
                guard request.subscriptions.count <= 8, bytes <= (version == .v5 ? 512 : 4_096) else {
                    return connection.close()
                }
                if connection.number > 1 {
                    for subscription in request.subscriptions { renewed.append(subscription.filter) }
                }
                Self.grant(request, connection, version: version.wire)
            case .pingreq:
                connection.send(.pingresp, version: version.wire)
            default:
                return
            }
        }
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.version = version
        let client = try MQTTClient(configuration)
        try await client.connect()
        let filters = (0..<150).map { "house/\($0)/temperature" }
        for filter in filters { try await client.subscribe(to: filter) }
        server.closeConnection()
        while renewed.all.count < filters.count { await Task.yield() }
        #expect(renewed.all.sorted() == filters.sorted())
        // The server has answered all earlier packets.
        try await client.ping()
        #expect(await client.driver.link.unrenewed.isEmpty)
        #expect(server.connectionCount == 2)
        await client.close()
        try await server.stop()
    }

    @Test func `filters that only look alike are two subscriptions, and both are renewed`() async throws {
        let renewed = Log<String>()
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect:
                connection.accept()
            case .subscribe(let request):
                if connection.number > 1 {
                    for subscription in request.subscriptions { renewed.append(subscription.filter) }
                }
                Self.grant(request, connection)
            case .unsubscribe(let request):
                let reasons = request.filters.map { _ in MQTTReasonCode.success }
                connection.send(.unsuback(MQTTUnsuback(packetID: request.packetID, reasons: reasons)))
            default:
                return
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        let filters = ["\u{E9}", "e\u{301}"]
        for filter in filters + ["o\u{308}", "\u{F6}"] { try await client.subscribe(to: filter) }
        _ = try await client.unsubscribe(from: "o\u{308}")
        server.closeConnection()
        while renewed.all.count < 3 { await Task.yield() }
        #expect(Set(renewed.all.map { Array($0.utf8) }) == Set((filters + ["\u{F6}"]).map { Array($0.utf8) }))
        await client.close()
        try await server.stop()
    }

    @Test func `a subscription that fits into no packet of the server any more ends the client`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect:
                let properties: MQTTProperties = connection.number > 1 ? [.maximumPacketSize(50)] : []
                connection.accept(properties)
            case .subscribe(let request):
                Self.grant(request, connection)
            default:
                return
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        let filter = String(repeating: "x", count: 100)
        try await client.subscribe(to: filter)
        server.closeConnection()
        let error = await #expect(throws: HermesClientError.self) { try await client.run() }
        #expect(error?.code == .notEncodable)
        #expect(error?.message.contains(filter) == true)
        #expect(server.connectionCount == 2)
        try await server.stop()
    }

    @Test func `all is renewed again if the connection ends before the last packet is confirmed`() async throws {
        let confirmed = Log<Int>()
        let renewed = Log<String>()
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect:
                // The second connection has created a session.
                connection.accept(sessionPresent: connection.number > 2)
            case .subscribe(let request) where connection.number == 2:
                guard confirmed.count(adding: 1) == 1 else { return connection.close() }
                Self.grant(request, connection)
            case .subscribe(let request):
                if connection.number > 2 {
                    for subscription in request.subscriptions { renewed.append(subscription.filter) }
                }
                Self.grant(request, connection)
            default:
                return
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        let filters = (0..<100).map { "house/\($0)" }
        for filter in filters { try await client.subscribe(to: filter) }
        server.closeConnection()
        while renewed.all.count < filters.count { await Task.yield() }
        #expect(renewed.all.sorted() == filters.sorted())
        await client.close()
        try await server.stop()
    }

    /// A case without a reason is an answer with too few reasons.
    @Test(arguments: [.unspecifiedError, .implementationSpecificError, .quotaExceeded, nil] as [MQTTReasonCode?])
    func `what a server does not renew now is renewed on the next connection`(reason: MQTTReasonCode?) async throws {
        let renewed = Log<[String]>()
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect:
                // The second connection has created a session.
                connection.accept(sessionPresent: connection.number > 2)
            case .subscribe(let request) where connection.number == 2:
                var reasons = [MQTTReasonCode.grantedQoS1]
                if let reason { reasons.append(reason) }
                connection.send(.suback(MQTTSuback(packetID: request.packetID, reasons: reasons)))
            case .subscribe(let request):
                Self.grant(request, connection)
                guard connection.number == 3 else { return }
                renewed.append(request.subscriptions.map(\.filter).sorted())
                connection.send(.publish(MQTTPublish(topic: "b", payload: ByteBuffer(string: "there"))))
            default:
                return
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        _ = try await client.subscribe([.init("a"), .init("b")])
        server.closeConnection()
        let messages = client.messages.makeAsyncIterator()
        #expect(await messages.next()?.text == "there")
        #expect(renewed.all == [["a", "b"]])
        #expect(await client.driver.link.unrenewed.isEmpty)
        #expect(server.connectionCount == 3)
        await client.close()
        try await server.stop()
    }

    /// MQTT 3.1.1 has one code for all refusals.
    @Test func `a subscription that is never renewed ends the client after some tries`() async throws {
        let server = try await FakeMQTTServer.scripted(version: .v311) { packet, connection in
            switch packet {
            case .connect:
                connection.send(.connack(MQTTConnack(reason: .success)), version: .v311)
            case .subscribe(let request):
                let reason: MQTTReasonCode = connection.number == 1 ? .grantedQoS1 : .unspecifiedError
                connection.send(.suback(MQTTSuback(packetID: request.packetID, reasons: [reason])), version: .v311)
            default:
                return
            }
        }
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.version = .v311
        let client = try MQTTClient(configuration)
        try await client.connect()
        try await client.subscribe(to: "a")
        server.closeConnection()
        let error = await #expect(throws: HermesClientError.self) { try await client.run() }
        #expect(error?.mqttReason == .unspecifiedError)
        #expect(server.connectionCount == 2 + MQTTLink.maxRefusedRenewals)
        try await server.stop()
    }
}
