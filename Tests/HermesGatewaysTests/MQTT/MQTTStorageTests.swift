// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// The server reports success only after the commit. The data that waits for the store is bounded.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTStorageTests {
    @Test(arguments: MQTTVersion.allCases)
    func `UNSUBACK says success once the store has forgotten the subscription`(_ version: MQTTVersion) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let client = try await harness.mqtt("kept", version, durable: true)
            _ = try await client.subscribe("a", "b")
            store.fail([1])
            try await client.send(.unsubscribe(MQTTUnsubscribe(packetID: 5, filters: ["a", "never", "a"])))
            switch version {
            case .v311:
                #expect(try await client.untilEnd().isEmpty)
            case .v5:
                let reasons: [MQTTReasonCode] = [.unspecifiedError, .noSubscriptionExisted, .noSubscriptionExisted]
                #expect(try await client.next() == .unsuback(MQTTUnsuback(packetID: 5, reasons: reasons)))
                // The client still gets publications for its subscriptions.
                try await client.publish("a", "x", qos: .atMostOnce)
                #expect(try await client.taken().text == "x")
                #expect(try await client.unsubscribe("a").reasons == [.success])
                #expect(try await store.filters("kept") == ["b"])
            }
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `the codes of many filters say which of them are stored, if the store fails between two parts`(
        _ version: MQTTVersion
    ) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let client = try await harness.mqtt("kept", version, durable: true)
            let filters = (0..<600).map { "f/\($0)" }
            store.fail([2])
            let reasons = try await client.subscribe(filters).reasons
            #expect(reasons.prefix(256).allSatisfy { $0 == .grantedQoS2 })
            #expect(reasons.dropFirst(256).allSatisfy { $0 == .unspecifiedError })
            #expect(try await store.filters("kept") == Set(filters.prefix(256)))
            try await client.publish("f/255", "x", qos: .atMostOnce)
            try await client.publish("f/256", "y", qos: .atMostOnce)
            #expect(try await client.taken().text == "x")
            #expect(try await client.untilPong().isEmpty)
            #expect(try await client.subscribe(filters).reasons.allSatisfy { $0 == .grantedQoS2 })
            store.fail([2])
            try await client.send(.unsubscribe(MQTTUnsubscribe(packetID: 5, filters: filters)))
            switch version {
            case .v311:
                #expect(try await client.untilEnd().isEmpty)
            case .v5:
                guard case .unsuback(let answer) = try await client.next() else { throw Unexpected("no UNSUBACK") }
                #expect(answer.reasons.prefix(256).allSatisfy { $0 == .success })
                #expect(answer.reasons.dropFirst(256).allSatisfy { $0 == .unspecifiedError })
                try await client.publish("f/256", "still", qos: .atMostOnce)
                #expect(try await client.taken().text == "still")
            }
            #expect(try await store.filters("kept") == Set(filters.dropFirst(256)))
        }
    }

    /// A connection that ignores all events.
    private final class Nobody: DurableAttachment {
        let shown = ShownProof.other
        let order = AttachmentOrder.next()

        func replaced() {}
        func ended(_ reason: AttachmentEnd) {}
        func committed(_ publications: [QueuedPublication]) {}
        func advanced(to head: UInt64) {}
    }

    /// Creates durable sessions without a connection.
    private func absent(_ count: Int, filter: String, in harness: GatewayHarness) async throws -> [DurableSessionID] {
        let durable = harness.messenger.durable
        var ids: [DurableSessionID] = []
        for number in 0..<count {
            let nobody = Nobody()
            let key = SessionKey(owner: .subject("\(number)"), clientID: "absent")
            let opening = try await withCheckedContinuation { done in
                durable.attach(key, clean: false, expiry: nil, attachment: nobody) { done.resume(returning: $0) }
            }.get()
            let subscription = DurableSubscription(filter: filter, options: SubscriptionOptions(qos: .exactlyOnce))
            _ = await withCheckedContinuation { done in
                durable.subscribe(opening.id, [subscription]) { done.resume(returning: $0) }
            }
            durable.detach(opening.id, nobody, sentUpTo: 0, expiry: nil)
            ids.append(opening.id)
        }
        // This subscription is stored after all others.
        guard let last = ids.last else { return ids }
        let options = SubscriptionOptions(qos: .atLeastOnce)
        _ = await withCheckedContinuation { done in
            durable.subscribe(last, [DurableSubscription(filter: "last", options: options)]) {
                done.resume(returning: $0)
            }
        }
        return ids
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a QoS 2 message that is stored for some sessions is not refused: it comes again, and to the others only`(
        _ version: MQTTVersion
    ) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let ids = try await absent(700, filter: "t", in: harness)
            func queues() async throws -> [Int: Int] {
                var found: [Int: Int] = [:]
                for id in ids {
                    let queue = try await store.base.queued(of: id, after: 0, limit: 9, maxBytes: .max)
                    found[queue.count, default: 0] += 1
                }
                return found
            }
            var client = try await harness.mqtt("publisher", version, durable: true)
            let publish = MQTTPublish(
                topic: "t",
                payload: ByteBuffer(string: "x"),
                qos: .exactlyOnce,
                packetID: 9
            )
            store.fail([2])
            try await client.send(.publish(publish))
            let answers = try await client.untilEnd()
            #expect(!answers.contains { if case .pubrec = $0 { true } else { false } })
            #expect(try await queues() == [1: 512, 0: 188])
            client = try await harness.mqtt("publisher", version, durable: true)
            try await client.send(.publish(publish))
            guard case .pubrec(let pubrec) = try await client.next() else { throw Unexpected("no PUBREC") }
            #expect(!pubrec.reason.isFailure)
            #expect(try await queues() == [1: 700])
        }
    }

    /// The acknowledgements that a client has received. The test compares them with the store.
    private struct Told {
        var filters: Set<String> = []
        var gone: Set<String> = []
        var stored: [String] = []
        var retained: Set<String> = []
        var removed: Set<String> = []
    }

    @Test(arguments: 1...12)
    func `success is told after the commit's success, whichever commit fails`(_ failing: Int) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let away = try await harness.mqtt("away", .v5, durable: true)
            _ = try await away.subscribe("t")
            try await away.disconnect()
            store.fail([failing])
            var told = Told()
            // A failed exchange may end the connection. The next step connects again.
            func step(_ body: (MQTTTestClient) async throws -> Void) async throws {
                let properties: [MQTTProperty] = [.sessionExpiryInterval(600)]
                let connect = MQTTConnect(
                    version: .v5,
                    clientID: "client",
                    cleanStart: false,
                    keepAlive: 60,
                    properties: MQTTProperties(properties)
                )
                guard let (client, connack) = try? await harness.apply(connect), connack.reason == .success else {
                    return
                }
                if try await store.base.sessions().allSatisfy({ $0.key.clientID != "client" }) {
                    Issue.record("CONNACK for a session that is not stored")
                }
                try? await body(client)
                try? await client.drop()
            }
            try await step { client in
                if try await client.subscribe("a").reasons == [.grantedQoS2] { told.filters.insert("a") }
                if try await client.unsubscribe("a").reasons == [.success] { told.gone.insert("a") }
                if try await client.subscribe("b").reasons == [.grantedQoS2] { told.filters.insert("b") }
            }
            try await step { client in
                if try await client.publish("t", "one").isSuccess { told.stored.append("one") }
                if try await client.publish("t", "two", qos: .exactlyOnce).isSuccess { told.stored.append("two") }
            }
            try await step { client in
                if try await client.publish("r", "kept", retain: true).isSuccess { told.retained.insert("kept") }
                if try await client.publish("r2", "gone", retain: true).isSuccess { told.retained.insert("gone") }
                if try await client.publish("r2", "", retain: true).isSuccess { told.removed.insert("gone") }
            }
            #expect(store.commits >= failing)
            let filters = try await store.filters("client")
            for filter in told.filters where !told.gone.contains(filter) && filter == "b" {
                #expect(filters.contains(filter))
            }
            for filter in told.gone { #expect(!filters.contains(filter)) }
            let texts = try await store.texts("away")
            for text in told.stored { #expect(texts.count { $0 == text } == 1, "\(text) was acknowledged") }
            let retained = try await store.retainedTexts()
            for text in told.retained.subtracting(told.removed) { #expect(retained.contains(text)) }
            for text in told.removed { #expect(!retained.contains(text)) }
        }
    }

    @Test(
        arguments: [MQTTQoS.atLeastOnce, .exactlyOnce],
        [false, true]
    )
    func `a message that could not be stored reaches nobody, and its repetition everybody once`(
        _ qos: MQTTQoS,
        retains: Bool
    ) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let kept = try await harness.mqtt("kept", .v5, durable: true)
            _ = try await kept.subscribe("t")
            let live = try await harness.mqtt("live", .v5)
            _ = try await live.subscribe("t")
            let publisher = try await harness.mqtt("publisher", .v5)
            store.fail([1])
            #expect(try await publisher.publish("t", "x", qos: qos, retain: retains).isFailure)
            for client in [live, kept] { #expect(try await client.untilPong().isEmpty) }
            for text in ["x", "y"] {
                let isRetained = retains && text == "x"
                #expect(try await publisher.publish("t", text, qos: qos, retain: isRetained).isSuccess)
                for client in [live, kept] {
                    #expect(try await client.taken().text == text)
                    #expect(try await client.untilPong().isEmpty)
                }
            }
        }
    }

    @Test(arguments: [MQTTQoS.atLeastOnce, .exactlyOnce])
    func `what needs no storing waits for what is being stored, also where the publisher has gone [MQTT-4.6.0-5]`(
        _ qos: MQTTQoS
    ) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let live = try await harness.mqtt("live", .v5)
            _ = try await live.subscribe("t")
            let publisher = try await harness.mqtt("publisher", .v5)
            store.close()
            for (id, text) in zip(UInt16(1)..., ["1", "2", "3"]) {
                let payload = ByteBuffer(string: text)
                let retains = text == "1"
                let publish = MQTTPublish(topic: "t", payload: payload, qos: qos, packetID: id, retain: retains)
                try await publisher.send(.publish(publish))
            }
            #expect(try await publisher.untilPong().isEmpty)
            try await publisher.drop()
            #expect(try await live.untilPong().isEmpty)
            store.open()
            for text in ["1", "2", "3"] { #expect(try await live.publication().text == text) }
        }
    }

    @Test(arguments: [false, true])
    func `who is connected gets a will after its commit, and all the same should that fail`(fails: Bool) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let live = try await harness.mqtt("live", .v5)
            _ = try await live.subscribe("t")
            let will = MQTTWill(topic: "t", payload: ByteBuffer(string: "x"), qos: .atLeastOnce, retain: true)
            let client = try await harness.mqtt("client", .v5, will: will)
            store.close()
            store.fail(fails ? [1] : [])
            try await client.drop()
            while harness.messenger.durable.statistics.commits.waiting == 0 { await Task.yield() }
            #expect(try await live.untilPong().isEmpty)
            store.open()
            #expect(try await live.taken().text == "x")
            #expect(try await store.retainedTexts() == (fails ? [] : ["x"]))
        }
    }

    @Test
    func `a QoS 2 message is told to be received once, after it is stored, however often it comes meanwhile`()
        async throws
    {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let client = try await harness.mqtt("client", .v5, durable: true)
            store.close()
            store.fail([1])
            let publish = MQTTPublish(topic: "t", payload: ByteBuffer(string: "x"), qos: .exactlyOnce, packetID: 7)
            try await client.send(.publish(publish), .publish(publish))
            #expect(try await client.untilPong().isEmpty)
            store.open()
            #expect(try await client.next() == .pubrec(MQTTAcknowledgement(packetID: 7, reason: .unspecifiedError)))
            #expect(try await client.untilPong().isEmpty)
        }
    }

    @Test
    func `what is retained and could not be queued for a new kept subscription comes later`() async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            for topic in ["r/1", "r/2", "r/3"] { try await publisher.publish(topic, "old", retain: true) }
            let kept = try await harness.mqtt("kept", .v5, durable: true)
            store.fail { operation in
                guard case .publish(let publication, let targets, _, _) = operation else { return false }
                return !targets.isEmpty && publication.topic.rawValue != "r/1"
            }
            #expect(try await kept.subscribe("r/#").reasons == [.grantedQoS2])
            while store.failures == 0 { await Task.yield() }
            store.recover()
            // The retained message of this topic changes before it is sent.
            try await publisher.publish("r/3", "", retain: true)
            var texts: Set<String> = []
            while !texts.contains("r/2 old true") {
                let publish = try await kept.taken()
                texts.insert("\(publish.topic) \(publish.text) \(publish.retain)")
            }
            #expect(!texts.contains("r/3 old true"))
            #expect(try await store.filters("kept") == ["r/#"])
        }
    }

    @Test
    func `retained messages of QoS 0 wait at their client, not in memory`() async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let flooder = try await harness.mqtt("flooder", .v5)
            let other = try await harness.mqtt("other", .v5)
            store.close()
            let flood = Task {
                for number in 0..<2_000 {
                    let publish = MQTTPublish(
                        topic: "t/\(number % 1000)",
                        payload: ByteBuffer(repeating: 1, count: 8_192),
                        qos: .atMostOnce,
                        retain: true
                    )
                    try await flooder.send(.publish(publish))
                }
            }
            // Wait until no more data arrives: nothing changes during some round trips of another client.
            var (last, quiet) = (0, 0)
            while last == 0 || quiet < 50 {
                #expect(try await other.untilPong().isEmpty)
                let bytes = harness.messenger.durable.statistics.commits.waitingBytes
                quiet = bytes == last ? quiet + 1 : 0
                last = bytes
            }
            #expect(last <= ListenerState.maxUnansweredBytes + 65_536)
            store.open()
            try await flood.value
            #expect(try await flooder.untilPong().isEmpty)
            while harness.messenger.durable.statistics.commits.waiting > 0 { await Task.yield() }
            #expect(try await store.base.retained().count == 1000)
        }
    }
}

extension MQTTReasonCode {
    fileprivate var isSuccess: Bool { !isFailure }
}
