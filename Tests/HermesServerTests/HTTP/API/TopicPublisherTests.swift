// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesTestKit
import NIOCore
import Testing

@testable import HermesServer

@Suite("Publishing by the API", .timeLimit(.minutes(1)))
struct TopicPublisherTests {
    private static func push(_ title: String) -> HermesCore.Push {
        let content = PushContent(title: title)
        return HermesCore.Push(id: MessageID(high: 0, low: 1), content: content, expiresAt: Timestamp(rawValue: .max))
    }

    @Test("What is not stored reaches nobody, and takes no number")
    func notStored() async throws {
        try await withServer { server in
            let store = ScriptedSessionStore()
            let core = try #require(try server.assembly().api).core
            let durable = DurableSessions(store: store, time: core.messenger.time)
            let publisher = TopicPublisher(plane: core.topics, durable: durable, time: core.messenger.time)
            let client = try MQTTClient(
                MQTTClient.Configuration(server: ServerAddress(port: server.port("mqtt")))
            )
            try await client.connect()
            try await client.subscribe(to: "#", qos: .atLeastOnce)
            let messages = client.messages.makeAsyncIterator()
            let topic = try #require(TopicName("news"))
            func publish(_ text: String, retain: Bool) async throws {
                let payload = ByteBuffer(string: text)
                try await publisher.publish(
                    Publication(
                        topic: topic,
                        payload: payload,
                        kind: Publication.plainKind,
                        qos: .atLeastOnce,
                        retain: retain
                    )
                )
            }
            store.fail([1, 2])
            await #expect(throws: HermesError.self) { try await publish("lost", retain: true) }
            await #expect(throws: HermesError.self) {
                try await publisher.push(Self.push("lost"), expires: false, to: topic, isJSON: true, retains: true)
            }
            // Behind what is being stored, in one order.
            store.close()
            async let first: Void = publish("1", retain: true)
            while durable.statistics.commits.waiting == 0 { await Task.yield() }
            async let second: Void = publish("2", retain: false)
            store.open()
            _ = try await (first, second)
            for text in ["1", "2"] { #expect(await messages.next()?.text == text) }
            try await publisher.push(Self.push("kept"), expires: false, to: topic, isJSON: true, retains: true)
            let push = await messages.next()
            #expect(push?.properties.userProperties.first { $0.name == "seq" }?.value == "1")
            await client.close()
            await durable.shutdown()
        }
    }
}
