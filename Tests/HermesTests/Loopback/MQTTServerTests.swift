// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesTestKit
import NIOCore
import Testing

@testable import Hermes

/// The client with a whole server in this process.
@Suite(.inTurns, .timeLimit(.minutes(2)))
struct MQTTServerTests {
    private static func configuration(
        _ server: TestServer,
        _ version: MQTTClient.Version,
        _ clientID: String = ""
    ) -> MQTTClient.Configuration {
        var configuration = MQTTClient.Configuration(
            server: ServerAddress(port: server.port("mqtt")),
            clientID: clientID
        )
        configuration.version = version
        if version == .v311, clientID.isEmpty { configuration.clientID = "c\(UInt32.random(in: 0 ... .max))" }
        configuration.reconnect = ReconnectPolicy(windows: [], delays: [.milliseconds(20)], jitter: 0)
        return configuration
    }

    @Test(arguments: [MQTTClient.Version.v311, .v5], MQTTClient.QoS.allCases)
    func `messages arrive whole, once and in order`(version: MQTTClient.Version, qos: MQTTClient.QoS) async throws {
        try await withServer { server in
            try await MQTTClient.withClient(Self.configuration(server, version)) { receiver, _ in
                #expect(try await receiver.subscribe(to: "a/#", qos: qos) == qos)
                try await MQTTClient.withClient(Self.configuration(server, version)) { sender, _ in
                    for number in 0..<200 { try await sender.publish("\(number)", to: "a/b", qos: qos) }
                }
                var texts: [String?] = []
                for await message in receiver.messages {
                    #expect(message.topic == "a/b" && message.qos == qos)
                    texts.append(message.text)
                    if texts.count == 200 { break }
                }
                #expect(texts == (0..<200).map { "\($0)" })
            }
        }
    }

    @Test func `properties of MQTT 5 arrive as they were sent`() async throws {
        try await withServer { server in
            try await MQTTClient.withClient(Self.configuration(server, .v5)) { client, _ in
                _ = try await client.subscribe([.init("a", qos: .atLeastOnce)], identifier: 7)
                var message = MQTTMessage(topic: "a", text: "hello", qos: .atLeastOnce)
                message.properties.contentType = "text/plain"
                message.properties.responseTopic = "answers"
                message.properties.correlationData = ByteBuffer(bytes: [0, 255])
                message.properties.userProperties = [.init("n", "1"), .init("n", "2")]
                message.properties.isText = true
                message.properties.expiry = .seconds(60)
                #expect(try await client.publish(message) == .success)
                let nobody = try await client.publish("x", to: "b", qos: .atLeastOnce)
                #expect(nobody == .noMatchingSubscribers)
                let received = await client.messages.makeAsyncIterator().next()
                #expect(received?.properties.contentType == "text/plain")
                #expect(received?.properties.responseTopic == "answers")
                #expect(received?.properties.correlationData == ByteBuffer(bytes: [0, 255]))
                #expect(received?.properties.userProperties == [.init("n", "1"), .init("n", "2")])
                #expect(received?.properties.isText == true)
                #expect(received?.properties.subscriptionIdentifiers == [7])
                #expect(try await client.unsubscribe(from: "a") == [.success])
                #expect(try await client.unsubscribe(from: "a") == [.noSubscriptionExisted])
            }
        }
    }

    @Test(arguments: [MQTTClient.Version.v311, .v5])
    func `a kept session and what is on its way outlive the server`(version: MQTTClient.Version) async throws {
        try await withServer(store: .sqlite) { server in
            var configuration = Self.configuration(server, version, "kept")
            configuration.cleanStart = false
            configuration.sessionExpiry = .seconds(600)
            let receiver = try MQTTClient(configuration)
            try await receiver.connect()
            try await receiver.subscribe(to: "a", qos: .exactlyOnce)
            var other = Self.configuration(server, version, "other")
            other.cleanStart = false
            other.sessionExpiry = .seconds(600)
            let sender = try MQTTClient(other)
            try await sender.connect()
            try await sender.publish("before", to: "a", qos: .exactlyOnce)
            try await server.restart()
            try await sender.publish("after", to: "a", qos: .exactlyOnce)
            var texts: [String?] = []
            for await message in receiver.messages {
                texts.append(message.text)
                if texts.count == 2 { break }
            }
            #expect(texts == ["before", "after"])
            await receiver.close()
            await sender.close()
        }
    }
}
