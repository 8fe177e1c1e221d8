// Hermes
// SPDX-License-Identifier: Apache-2.0

import Hermes
import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesServer

@Suite("Publishing by the API", .inTurns, .timeLimit(.minutes(1)))
struct TopicPublisherTests {
    private static func push(_ title: String, to topic: TopicName) -> NumberedPublication {
        let id = HermesCore.MessageID(high: 0, low: 1)
        let content = PushContent(title: title)
        let push = HermesCore.Push(id: id, content: content, expiresAt: Timestamp(rawValue: .max))
        return .push(TopicPush(push, to: topic, expires: false, isJSON: true, retains: true))
    }

    @Test
    func `what is not stored reaches nobody, and takes no number`() async throws {
        try await withServer { server in
            let store = ScriptedSessionStore()
            let core = try #require(try server.assembly().api).core
            let durable = DurableSessions(store: store, time: core.messenger.time)
            let time = core.messenger.time
            let publisher = TopicPublisher(plane: core.topics, durable: durable, time: time, cluster: nil)
            let client = try MQTTClient(
                MQTTClient.Configuration(server: ServerAddress(port: server.port("mqtt")))
            )
            try await client.connect()
            try await client.subscribe(to: "#", qos: .atLeastOnce)
            let messages = client.messages.makeAsyncIterator()
            let topic = try #require(TopicName("news"))
            func publish(_ text: String, retain: Bool) async throws {
                let payload = ByteBuffer(string: text)
                _ = try await publisher.publish(
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
            await #expect(throws: HermesError.self) { try await publisher.publish(Self.push("lost", to: topic)) }
            // Later publications wait for the publication that is being stored, so the order stays the same.
            store.close()
            async let first: Void = publish("1", retain: true)
            while durable.statistics.commits.waiting == 0 { await Task.yield() }
            async let second: Void = publish("2", retain: false)
            store.open()
            _ = try await (first, second)
            for text in ["1", "2"] { #expect(await messages.next()?.text == text) }
            #expect(try await publisher.publish(Self.push("kept", to: topic)) == true)
            let push = await messages.next()
            #expect(push?.properties.userProperties.first { $0.name == "seq" }?.value == "1")
            await client.close()
            await durable.shutdown()
        }
    }

    /// Creates disconnected durable sessions that subscribe to a topic. Each has its own owner.
    private static func absent(
        _ count: Int,
        on topic: TopicName,
        in store: ScriptedSessionStore
    ) throws
        -> [DurableSessionID]
    {
        let now = Timestamp(rawValue: 1)
        let opened = try store.base.commit(
            (0..<count).map { number in
                SessionOperation.open(
                    SessionKey(owner: .subject("\(number)"), clientID: "\(number)"),
                    clean: false,
                    expiry: nil
                )
            },
            now: now
        )
        var ids: [DurableSessionID] = []
        for case .opened(let session) in opened { ids.append(session.id) }
        let options = SubscriptionOptions(qos: .atLeastOnce)
        let subscription = DurableSubscription(filter: topic.rawValue, options: options)
        _ = try store.base.commit(ids.map { SessionOperation.subscribe($0, [subscription]) }, now: now)
        _ = try store.base.commit(
            ids.map { SessionOperation.close($0, sentUpTo: 0, expiresAt: nil) },
            now: now
        )
        return ids
    }

    @Test
    func `the number of a push that is stored for some sessions only is not given to another push`() async throws {
        try await withServer { server in
            let store = ScriptedSessionStore()
            let core = try #require(try server.assembly().api).core
            let time = core.messenger.time
            let topic = try #require(TopicName("news"))
            let ids = try Self.absent(600, on: topic, in: store)
            let durable = DurableSessions(store: store, time: time)
            try await durable.load()
            let publisher = TopicPublisher(plane: core.topics, durable: durable, time: time, cluster: nil)
            // First the first part fails, then the second part.
            store.fail([1])
            await #expect(throws: HermesError.self) { try await publisher.publish(Self.push("nowhere", to: topic)) }
            store.fail([2])
            await #expect(throws: HermesError.self) { try await publisher.publish(Self.push("partly", to: topic)) }
            _ = try await publisher.publish(Self.push("everywhere", to: topic))
            var queues: [[UInt64]: Int] = [:]
            for id in ids {
                let queue = try await store.queued(of: id, after: 0, limit: 100, maxBytes: .max)
                queues[queue.map { $0.publication.details?.place?.seq ?? 0 }, default: 0] += 1
            }
            #expect(queues == [[1, 2]: 512, [2]: 88])
            await durable.shutdown()
        }
    }

    @Test(arguments: [("impb/broadcast", 422), ("qsiop/7/lamp/down/1", 422), ("room/lobby", 413)])
    func `a push to a topic has the form and the length that the topic's clients can get`(
        topic: String,
        status: Int
    ) async throws {
        try await withServer { server in
            let client = try await APIClient(server)
            let data = topic == "room/lobby" ? String(repeating: "x", count: 64_000) : "x"
            let body = #"{"to":{"topic":{"name":"\#(topic)"}},"title":"t","data":{"a":"\#(data)"}}"#
            let answer = try await client.send("POST", "/v1/push", body)
            #expect(answer.status == status)
            let other = #"{"to":{"topic":{"name":"news"}},"title":"t"}"#
            #expect(try await client.send("POST", "/v1/push", other).status == 202)
        }
    }

    @Test
    func `a retained push expires after its time, at most after the retention, and without one never`() async throws {
        let clock = ManualClock()
        let day = Duration.seconds(86_400)
        func configure(_ settings: inout ServerSettings) { settings.messages.retention = day }
        try await withServer(time: clock, configure: configure) { server in
            let client = try await APIClient(server)
            let core = try #require(try server.assembly().api).core
            let cases: [(topic: String, ttl: String, life: Duration?)] = [
                ("a", "", nil), ("b", #","ttl_seconds":60"#, .seconds(60)), ("c", #","ttl_seconds":315360000"#, day),
            ]
            for (name, ttl, life) in cases {
                let body = #"{"to":{"topic":{"name":"\#(name)","retain":true}},"title":"t"\#(ttl)}"#
                #expect(try await client.send("POST", "/v1/push", body).status == 202)
                let topic = try #require(TopicName(name))
                let found = try #require(core.messenger.retained.publication(of: topic))
                #expect(found.details?.expiresAt == life.map { clock.now().advanced(by: $0) }, "\(name)")
            }
            clock.advance(by: .seconds(61))
            #expect(try await client.send("GET", "/v1/topics/retained?topic=a").status == 200)
            #expect(try await client.send("GET", "/v1/topics/retained?topic=b").status == 404)
            let tooLong = #"{"to":{"topic":{"name":"d"}},"title":"t","ttl_seconds":315360001}"#
            #expect(try await client.send("POST", "/v1/push", tooLong).status == 422)
        }
    }

    @Test
    func `a publication that finds no room among the retained ones is delivered, and the answer says so`() async throws
    {
        func configure(_ settings: inout ServerSettings) { settings.gateways.broker.retainedMessages = SharedLimit(1) }
        try await withServer(configure: configure) { server in
            let client = try await APIClient(server)
            let subscriber = try MQTTClient(.init(server: ServerAddress(port: server.port("mqtt"))))
            try await subscriber.connect()
            try await subscriber.subscribe(to: "#", qos: .atLeastOnce)
            let messages = subscriber.messages.makeAsyncIterator()
            func publish(_ topic: String, _ text: String, retain: Bool) async throws -> JSON {
                let body = #"{"topic":"\#(topic)","payload":{"text":"\#(text)"},"retain":\#(retain)}"#
                let answer = try await client.send("POST", "/v1/topics/publish", body)
                #expect(answer.status == 202)
                if !text.isEmpty { #expect(await messages.next()?.text == text) }
                return answer.body
            }
            #expect(try await publish("a", "1", retain: true)["retained"]?.boolean == true)
            #expect(try await publish("b", "2", retain: true)["retained"]?.boolean == false)
            #expect(try await publish("a", "3", retain: true)["retained"]?.boolean == true, "it replaces its own")
            #expect(try await publish("b", "4", retain: false)["retained"] == nil)
            #expect(try await client.send("GET", "/v1/topics/retained?topic=b").status == 404)
            for headers in [[], [("Idempotency-Key", "k")]] as [[(String, String)]] {
                let body = #"{"to":{"topic":{"name":"b","retain":true}},"title":"t"}"#
                let push = try await client.send("POST", "/v1/push", body, headers: headers)
                #expect(push.body["retained"]?.boolean == false && push.body["id"] != nil)
                _ = await messages.next()
            }
            #expect(try await publish("a", "", retain: true)["retained"] == nil)
            _ = await messages.next()
            #expect(try await publish("b", "5", retain: true)["retained"]?.boolean == true)
            await subscriber.close()
        }
    }
}
