// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// The client with scripted servers on a loopback address.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct MQTTClientTests {
    @Test func `a refused login is not tried again, and says what helps`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            let properties: MQTTProperties = [.reasonString("who are you?")]
            connection.send(.connack(MQTTConnack(reason: .badUserNameOrPassword, properties: properties)))
        }
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.userName = "ann"
        configuration.password = "wrong"
        let client = try MQTTClient(configuration)
        let error = await #expect(throws: HermesClientError.self) { try await client.connect() }
        #expect(error?.mqttReason == .badUserNameOrPassword)
        #expect(error?.message.contains("check the user name and the password") == true)
        #expect(error?.message.contains("who are you?") == true)
        #expect(server.connectionCount == 1)
        try await server.stop()
    }

    @Test func `a token that expired is replaced by the one that the app passed meanwhile`() async throws {
        let passwords = Log<String>()
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect(let connect):
                passwords.append(connect.password.map { String(buffer: $0) } ?? "")
                connection.accept(sessionPresent: connection.number > 1)
            case .pingreq where connection.number == 1:
                connection.send(.disconnect(MQTTDisconnect(reason: .maximumConnectTime)))
                connection.close()
            case .pingreq: connection.send(.pingresp)
            default: return
            }
        }
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.userName = "ann"
        configuration.password = "old"
        let client = try MQTTClient(configuration)
        try await client.connect()
        try await client.useCredentials(userName: "ann", password: "new")
        _ = try? await client.ping()
        for await state in client.states where state == .live && server.connectionCount == 2 { break }
        #expect(passwords.all == ["old", "new"])
        await client.close()
        try await server.stop()
    }

    @Test func `a busy server is tried again later`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            connection.send(.connack(MQTTConnack(reason: .serverBusy)))
        }
        let client = try MQTTClient(.fake(server))
        async let connecting: MQTTClient.Connection = client.connect()
        for await state in client.states {
            guard case .waiting(let error, let delay) = state else { continue }
            #expect(error.mqttReason?.rawValue == 0x89)
            #expect(delay > .seconds(4))
            break
        }
        await client.close()
        let outcome = try? await connecting
        #expect(outcome == nil)
        try await server.stop()
    }

    @Test func `what is unacknowledged comes again after a reconnect, marked, and only then`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect(let connect):
                #expect(!connect.cleanStart)
                connection.accept(sessionPresent: connection.number > 1)
            case .publish(let publish):
                if connection.number == 1 { return connection.close() }
                #expect(publish.isDuplicate)
                connection.send(.pubrec(MQTTAcknowledgement(packetID: publish.packetID ?? 0)))
            case .pubrel(let release):
                connection.send(.pubcomp(MQTTAcknowledgement(packetID: release.packetID)))
            default:
                return
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        #expect(try await client.publish("hello", to: "t", qos: .exactlyOnce) == .success)
        await client.close()
        try await server.stop()
    }

    @Test func `a message that the app was not done with comes again when the same client connects again`()
        async throws
    {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect:
                let isAgain = connection.number > 1
                connection.accept(sessionPresent: isAgain)
                let message = MQTTPublish(
                    topic: "t",
                    payload: ByteBuffer(string: "1"),
                    qos: .atLeastOnce,
                    packetID: 5,
                    isDuplicate: isAgain
                )
                connection.send(.publish(message))
            case .pingreq: connection.send(.pingresp)
            default: return
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        #expect(await client.messages.makeAsyncIterator().next()?.text == "1")
        await client.close(takingLastMessage: false)
        try await client.connect()
        #expect(await client.messages.makeAsyncIterator().next()?.text == "1")
        // The server's repetition arrives before the answer to the ping.
        _ = try await client.ping()
        await client.close()
        let acknowledgement = await server.firstPacket { _, packet in
            if case .puback = packet { true } else { false }
        }
        guard case .puback(let puback) = acknowledgement else {
            Issue.record("no acknowledgement")
            return
        }
        #expect(puback.packetID == 5)
        try await server.stop()
    }

    @Test func `a lost session is subscribed to again`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect:
                connection.accept()
            case .subscribe(let request):
                let reasons = request.subscriptions.map { _ in MQTTReasonCode.grantedQoS1 }
                connection.send(.suback(MQTTSuback(packetID: request.packetID, reasons: reasons)))
                guard connection.number == 2 else { return }
                #expect(request.subscriptions.map(\.filter) == ["a/#", "b"])
                connection.send(
                    .publish(MQTTPublish(topic: "b", payload: ByteBuffer(string: "2"), qos: .atLeastOnce, packetID: 5))
                )
            default:
                return
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        let reasons = try await client.subscribe([.init("a/#", qos: .exactlyOnce), .init("b", qos: .atLeastOnce)])
        #expect(reasons == [.grantedQoS1, .grantedQoS1])
        server.closeConnection()
        let messages = client.messages.makeAsyncIterator()
        #expect(await messages.next()?.text == "2")
        async let next = client.messages.makeAsyncIterator().next()
        // Asking for the next message acknowledges the first message.
        let acknowledged = await server.firstPacket { number, packet in
            if case .puback(let puback) = packet { number == 2 && puback.packetID == 5 } else { false }
        }
        #expect(acknowledged != nil)
        await client.close()
        let end = await next
        #expect(end == nil)
        try await server.stop()
    }

    @Test func `a lost session is subscribed to until the server confirms it, over as many connections as it takes`()
        async throws
    {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect:
                // The second connection has created a session without a subscription.
                connection.accept(sessionPresent: connection.number > 2)
            case .subscribe where connection.number == 2:
                connection.close()
            case .subscribe(let request):
                connection.send(.suback(MQTTSuback(packetID: request.packetID, reasons: [.grantedQoS1])))
                guard connection.number == 3 else { return }
                connection.send(.publish(MQTTPublish(topic: "a", payload: ByteBuffer(string: "there"))))
            default:
                return
            }
        }
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.sessionExpiry = .seconds(60)
        let client = try MQTTClient(configuration)
        try await client.connect()
        try await client.subscribe(to: "a", qos: .atLeastOnce)
        server.closeConnection()
        let messages = client.messages.makeAsyncIterator()
        #expect(await messages.next()?.text == "there")
        await client.close()
        try await server.stop()
    }

    @Test func `a cancelled run acknowledges nothing that the app may not be done with`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            connection.accept()
            connection.send(
                .publish(MQTTPublish(topic: "b", payload: ByteBuffer(string: "1"), qos: .atLeastOnce, packetID: 5))
            )
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        let messages = client.messages.makeAsyncIterator()
        #expect(await messages.next()?.text == "1")
        let run = Task { try await client.run() }
        run.cancel()
        try await run.value
        let last = await server.firstPacket { _, packet in if case .connect = packet { false } else { true } }
        #expect(last == .disconnect(MQTTDisconnect(reason: .success)))
        try await server.stop()
    }

    @Test func `a subscription that is not renewed ends the client`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect:
                connection.accept()
            case .subscribe(let request):
                let reason: MQTTReasonCode = connection.number == 1 ? .success : .notAuthorized
                connection.send(.suback(MQTTSuback(packetID: request.packetID, reasons: [reason])))
            default:
                return
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        try await client.subscribe(to: "a")
        server.closeConnection()
        let error = await #expect(throws: HermesClientError.self) { try await client.run() }
        #expect(error?.mqttReason == .notAuthorized)
        try await server.stop()
    }

    @Test func `topic aliases of the server are understood, wrong ones end the connection`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            connection.accept()
            guard connection.number == 1 else { return }
            let text = ByteBuffer(string: "x")
            connection.send(
                .publish(MQTTPublish(topic: "long/topic", payload: text, properties: [.topicAlias(3)])),
                .publish(MQTTPublish(topic: "", payload: text, properties: [.topicAlias(3)])),
                .publish(MQTTPublish(topic: "", payload: text, properties: [.topicAlias(4)]))
            )
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        let messages = client.messages.makeAsyncIterator()
        #expect(await messages.next()?.topic == "long/topic")
        #expect(await messages.next()?.topic == "long/topic")
        let said = await server.firstPacket { _, packet in if case .disconnect = packet { true } else { false } }
        #expect(said == .disconnect(MQTTDisconnect(reason: .protocolError)))
        await client.close()
        try await server.stop()
    }

    @Test func `QoS 0 is dropped and counted where the app is too slow`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            connection.accept()
            for number in 0..<5 {
                connection.send(.publish(MQTTPublish(topic: "t", payload: ByteBuffer(string: "\(number)"))))
            }
            connection.send(.publish(MQTTPublish(topic: "t", payload: ByteBuffer(), qos: .atLeastOnce, packetID: 1)))
        }
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.maxQueuedMessages = 2
        let client = try MQTTClient(configuration)
        try await client.connect()
        while await client.droppedMessages < 3 { await Task.yield() }
        var texts: [String?] = []
        for await message in client.messages {
            texts.append(message.text)
            if texts.count == 3 { break }
        }
        #expect(texts == ["0", "1", ""])
        await client.close()
        try await server.stop()
    }

    @Test func `a message of QoS 0 is not delivered again after a close that does not take it`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            guard case .connect = packet else { return }
            connection.accept(sessionPresent: connection.number > 1)
            connection.send(.publish(MQTTPublish(topic: "a", payload: ByteBuffer(string: "\(connection.number)"))))
        }
        let client = try MQTTClient(.fake(server))
        for text in ["1", "2"] {
            try await client.connect()
            #expect(await client.messages.makeAsyncIterator().next()?.text == text)
            await client.close(takingLastMessage: false)
        }
        try await client.connect()
        #expect(await client.messages.makeAsyncIterator().next()?.text == "3")
        await client.close()
        #expect(await client.driver.link.backlogBytes == 0)
        try await server.stop()
    }

    @Test(arguments: [MQTTClient.Version.v311, .v5])
    func `CONNECT says what was configured, DISCONNECT ends it`(version: MQTTClient.Version) async throws {
        let server = try await FakeMQTTServer.scripted(version: version.wire) { packet, connection in
            guard case .connect(let connect) = packet else { return }
            connection.send(.connack(MQTTConnack(reason: .success)), version: connect.version)
        }
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.version = version
        configuration.userName = "ann"
        configuration.password = "secret"
        configuration.will = MQTTMessage(topic: "gone", text: "ann", qos: .atLeastOnce)
        configuration.willDelay = .seconds(3)
        configuration.heartbeat.interval = .seconds(90)
        let client = try MQTTClient(configuration)
        let connection = try await client.connect()
        #expect(connection.clientID == "test")
        await client.close()
        var packets: [MQTTPacket] = []
        for await (_, frame) in server.received {
            packets.append(try MQTTPacket(frame, version: version.wire))
            if case .disconnect = packets.last { break }
        }
        guard case .connect(let connect) = packets.first else {
            Issue.record("no CONNECT")
            return
        }
        #expect(connect.version == version.wire)
        #expect(connect.keepAlive == 90)
        #expect(connect.userName == "ann")
        #expect(connect.will?.topic == "gone")
        #expect(connect.will?.properties == (version == .v5 ? [.willDelayInterval(3)] : []))
        try await server.stop()
    }

    @Test func `nonsense is refused before it is sent`() async throws {
        var configuration = MQTTClient.Configuration()
        configuration.cleanStart = false
        #expect(throws: HermesClientError.self) { try MQTTClient(configuration) }
        configuration.clientID = "x"
        configuration.will = MQTTMessage(topic: "a/+")
        #expect(throws: HermesClientError.self) { try MQTTClient(configuration) }
        configuration.will = MQTTMessage(topic: "a", text: String(repeating: "x", count: 65_536))
        #expect(throws: HermesClientError.self) { try MQTTClient(configuration) }
        configuration.will = nil
        configuration.version = .v311
        configuration.password = "x"
        #expect(throws: HermesClientError.self) { try MQTTClient(configuration) }
        let client = try MQTTClient(MQTTClient.Configuration())
        await #expect(throws: HermesClientError.self) { try await client.publish("x", to: "a/#") }
        await #expect(throws: HermesClientError.self) { try await client.subscribe(to: "a#") }
        await #expect(throws: HermesClientError.self) { try await client.unsubscribe([]) }
    }
}
