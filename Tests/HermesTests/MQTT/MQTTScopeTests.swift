// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import Hermes

/// Subscriptions that end with their scopes.
@Suite(.inTurns, .timeLimit(.minutes(1)))
struct MQTTScopeTests {
    private struct Stop: Error {}

    /// A server that grants all subscriptions. For each publication of the client, it sends one publication to each
    /// subscription.
    private static func server(_ ended: Log<[String]>) async throws -> FakeMQTTServer {
        let subscribed = Log<(filter: String, identifier: Int?)>()
        return try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect: connection.accept()
            case .subscribe(let request):
                let identifier: Int? = request.properties.first {
                    if case .subscriptionIdentifier(let identifier) = $0 { identifier } else { nil }
                }
                for subscription in request.subscriptions { subscribed.append((subscription.filter, identifier)) }
                let reasons = request.subscriptions.map { _ in MQTTReasonCode.grantedQoS1 }
                connection.send(.suback(MQTTSuback(packetID: request.packetID, reasons: reasons)))
            case .unsubscribe(let request):
                ended.append(request.filters)
                let reasons = request.filters.map { _ in MQTTReasonCode.success }
                connection.send(.unsuback(MQTTUnsuback(packetID: request.packetID, reasons: reasons)))
            case .publish(let publish):
                for (filter, identifier) in subscribed.all where MQTTTopicMatch.matches(publish.topic, filter) {
                    let properties: MQTTProperties = identifier.map { [.subscriptionIdentifier($0)] } ?? []
                    let packetID: UInt16? = publish.qos == .atMostOnce ? nil : UInt16.random(in: 1...9999)
                    connection.send(
                        .publish(
                            MQTTPublish(
                                topic: publish.topic,
                                payload: publish.payload,
                                qos: publish.qos,
                                packetID: packetID,
                                properties: properties
                            )
                        )
                    )
                }
                if let packetID = publish.packetID {
                    connection.send(.puback(MQTTAcknowledgement(packetID: packetID)))
                }
            case .pingreq: connection.send(.pingresp)
            default: return
            }
        }
    }

    @Test func `a scope gets its messages, the others get theirs, and the subscription ends with it`() async throws {
        let ended = Log<[String]>()
        let server = try await Self.server(ended)
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        try await client.subscribe(to: "other")
        let texts = try await client.subscribe(to: "home/#") { messages in
            try await client.subscribe(to: "home/kitchen") { inner in
                try await client.publish("1", to: "home/kitchen", qos: .atLeastOnce)
                try await client.publish("2", to: "home/hall")
                try await client.publish("3", to: "other")
                #expect(await inner.makeAsyncIterator().next()?.text == "1")
                #expect(ended.all.isEmpty)
            }
            let iterator = messages.makeAsyncIterator()
            return [await iterator.next()?.text, await iterator.next()?.text]
        }
        #expect(texts == ["1", "2"])
        #expect(await client.messages.makeAsyncIterator().next()?.text == "3")
        // The server has answered all earlier packets.
        _ = try await client.subscribe(to: "fence")
        #expect(ended.all == [["home/kitchen"], ["home/#"]])
        #expect(await client.driver.link.subscriptions.map(\.subscription.filter) == ["other", "fence"])
        await client.close()
        try await server.stop()
    }

    @Test func `a scope ends when its body throws, or its task is cancelled, and owes no acknowledgement`() async throws
    {
        let ended = Log<[String]>()
        let server = try await Self.server(ended)
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        await #expect(throws: Stop.self) {
            try await client.subscribe(to: "a", qos: .atLeastOnce) { _ in
                for _ in 0..<3 { try await client.publish("x", to: "a", qos: .atLeastOnce) }
                throw Stop()
            }
        }
        let started = Log<Int>()
        let task = Task {  // Cancelled below.
            try await client.subscribe(to: "b") { messages in
                started.append(1)
                for await _ in messages {}
            }
        }
        while started.all.isEmpty { await Task.yield() }
        task.cancel()
        try await task.value
        _ = try await client.subscribe(to: "fence")
        #expect(ended.all == [["a"], ["b"]])
        #expect(await client.driver.link.backlogBytes == 0)
        #expect(await client.driver.link.endings.isEmpty)
        await client.close()
        try await server.stop()
    }

    /// A server that resumes a session with 256 messages of QoS 1 to "home/1" and so on. It sends another message when
    /// all are acknowledged. It refuses the filter "bad/#".
    private static func server(
        _ version: MQTTVersion,
        identifiers: [Int],
        _ acknowledged: Log<UInt16>
    ) async throws -> FakeMQTTServer {
        // With MQTT 3.1.1, the properties are not sent.
        let properties = MQTTProperties(identifiers.map { MQTTProperty.subscriptionIdentifier($0) })
        @Sendable func message(_ packetID: UInt16) -> MQTTPacket {
            .publish(
                MQTTPublish(
                    topic: "home/\(packetID)",
                    payload: ByteBuffer(string: "\(packetID)"),
                    qos: .atLeastOnce,
                    packetID: packetID,
                    properties: properties
                )
            )
        }
        return try await FakeMQTTServer.scripted(version: version) { packet, connection in
            switch packet {
            case .connect:
                connection.send(.connack(MQTTConnack(sessionPresent: true, reason: .success)), version: version)
                for packetID in UInt16(1)...256 { connection.send(message(packetID), version: version) }
            case .puback(let acknowledgement):
                guard acknowledged.count(adding: acknowledgement.packetID) == 256 else { return }
                connection.send(message(257), version: version)
            case .subscribe(let request):
                let reasons: [MQTTReasonCode] = request.subscriptions.map {
                    $0.filter == "bad/#" ? .unspecifiedError : .grantedQoS1
                }
                let answer = MQTTSuback(packetID: request.packetID, reasons: reasons)
                connection.send(.suback(answer), version: version)
            case .unsubscribe(let request):
                let reasons = request.filters.map { _ in MQTTReasonCode.success }
                let answer = MQTTUnsuback(packetID: request.packetID, reasons: reasons)
                connection.send(.unsuback(answer), version: version)
            default: return
            }
        }
    }

    @Test(arguments: [(.v311, []), (.v5, []), (.v5, [7])] as [(MQTTClient.Version, [Int])])
    func `a scope gets the messages of an earlier run that its filter matches, and acknowledges them`(
        version: MQTTClient.Version,
        identifiers: [Int]
    ) async throws {
        let acknowledged = Log<UInt16>()
        let server = try await Self.server(version.wire, identifiers: identifiers, acknowledged)
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.version = version
        let client = try MQTTClient(configuration)
        try await client.connect()
        while await client.driver.link.backlog < 256 { await Task.yield() }
        let other = try await client.subscribe(to: "other/#", qos: .atLeastOnce) { _ in
            await client.driver.link.backlog
        }
        #expect(other == 256, "they are not this scope's")
        let texts = try await client.subscribe(to: "home/+", qos: .atLeastOnce) { messages in
            var texts: [String] = []
            for await message in messages {
                texts.append(message.text ?? "")
                if texts.count == 257 { break }
            }
            return texts
        }
        #expect(texts == (1...257).map { "\($0)" })
        // The server has answered all earlier packets.
        _ = try await client.subscribe(to: "fence")
        #expect(acknowledged.all == Array(UInt16(1)...257))
        #expect(await client.driver.link.backlogBytes == 0)
        await client.close()
        try await server.stop()
    }

    @Test func `messages of an earlier run stay for the app if it reads them, or the scope is refused`() async throws {
        let acknowledged = Log<UInt16>()
        let server = try await Self.server(.v5, identifiers: [], acknowledged)
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        while await client.driver.link.backlog < 256 { await Task.yield() }
        await #expect(throws: HermesClientError.self) {
            try await client.subscribe(to: "bad/#") { _ in Issue.record("the body does not run") }
        }
        try await client.subscribe(to: "home/#", qos: .atLeastOnce)
        try await client.subscribe(to: "home/+", qos: .atLeastOnce) { _ in }
        #expect(await client.driver.link.backlog == 256)
        #expect(await client.messages.makeAsyncIterator().next()?.text == "1")
        #expect(acknowledged.all.isEmpty)
        await client.close()
        try await server.stop()
    }

    @Test func `a refused subscription throws, and a scope of a closed client ends`() async throws {
        let server = try await FakeMQTTServer.scripted { packet, connection in
            switch packet {
            case .connect: connection.accept()
            case .subscribe(let request):
                let isBad = request.subscriptions.first?.filter == "bad"
                let reasons: [MQTTReasonCode] = [isBad ? .notAuthorized : .grantedQoS1]
                connection.send(.suback(MQTTSuback(packetID: request.packetID, reasons: reasons)))
            default: return
            }
        }
        let client = try MQTTClient(.fake(server))
        try await client.connect()
        let error = await #expect(throws: HermesClientError.self) {
            try await client.subscribe(to: "bad") { _ in Issue.record("the body does not run") }
        }
        #expect(error?.mqttReason == .notAuthorized)
        let count = try await client.subscribe(to: "good") { messages in
            await client.close()
            var count = 0
            for await _ in messages { count += 1 }
            return count
        }
        #expect(count == 0)
        try await server.stop()
    }

    @Test func `a loop that is too slow misses messages of QoS 0, and nothing else`() async throws {
        let server = try await Self.server(Log())
        var configuration = MQTTClient.Configuration.fake(server)
        configuration.maxQueuedMessages = 2
        let client = try MQTTClient(configuration)
        try await client.connect()
        let texts = try await client.subscribe(to: "a", qos: .atLeastOnce) { messages in
            for text in ["1", "2", "dropped"] { try await client.publish(text, to: "a") }
            for text in ["3", "4"] { try await client.publish(text, to: "a", qos: .atLeastOnce) }
            // All earlier messages have been delivered.
            _ = try await client.ping()
            var texts: [String?] = []
            for await message in messages {
                texts.append(message.text)
                if texts.count == 4 { break }
            }
            return texts
        }
        #expect(texts == ["1", "2", "3", "4"])
        #expect(await client.droppedMessages == 1)
        await client.close()
        try await server.stop()
    }

    @Test(arguments: [MQTTClient.Version.v311, .v5])
    func `scopes beside each other, against a whole server`(version: MQTTClient.Version) async throws {
        try await withServer { server in
            var configuration = MQTTClient.Configuration(
                server: ServerAddress(port: server.port("mqtt")),
                clientID: "scopes"
            )
            configuration.version = version
            try await MQTTClient.withClient(configuration) { client, _ in
                for round in 0..<3 {
                    let count = try await client.subscribe(to: "room/+/a", qos: .atLeastOnce) { messages in
                        for number in 0..<20 {
                            try await client.publish("\(number)", to: "room/\(number)/a", qos: .atLeastOnce)
                        }
                        var count = 0
                        for await message in messages {
                            #expect(message.text == "\(count)", "round \(round)")
                            count += 1
                            if count == 20 { break }
                        }
                        return count
                    }
                    #expect(count == 20)
                }
            }
        }
    }

    @Test(arguments: [
        ("a/b", "a/b", true), ("a/b", "a/+", true), ("a/b", "#", true), ("a", "a/#", true), ("a/b/c", "a/+", false),
        ("a", "a/+", false), ("a/", "a/+", true), ("/a", "+/a", true), ("/a", "/+", true), ("/a", "+", false),
        ("$SYS/x", "#", false), ("$SYS/x", "+/x", false), ("$SYS/x", "$SYS/#", true), ("a/b", "$share/g/a/+", true),
        ("a/b", "$share/g/b/#", false), ("a", "A", false), ("ä/ö", "ä/+", true),
    ])
    func `filters match topics`(topic: String, filter: String, isMatch: Bool) {
        #expect(MQTTTopicMatch.matches(topic, filter) == isMatch)
    }
}
