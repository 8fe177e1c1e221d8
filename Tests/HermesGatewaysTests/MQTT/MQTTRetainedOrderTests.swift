// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Retained messages and live messages of one topic. The newest message arrives last, and no message is lost.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTRetainedOrderTests {
    /// Connects a client with a receive maximum of ten, which has received ten of the retained messages.
    private func fullReader(
        _ harness: GatewayHarness
    ) async throws -> (client: MQTTTestClient, unacknowledged: [MQTTPublish]) {
        let reader = try await harness.mqtt("reader", .v5, properties: [.receiveMaximum(10)])
        _ = try await reader.subscribe("r/#", qos: .atLeastOnce)
        var unacknowledged: [MQTTPublish] = []
        for _ in 0..<10 { unacknowledged.append(try await reader.publication()) }
        return (reader, unacknowledged)
    }

    private func acknowledge(_ publications: [MQTTPublish], by reader: MQTTTestClient) async throws {
        for publish in publications {
            let packetID = try #require(publish.packetID)
            try await reader.send(.puback(MQTTAcknowledgement(packetID: packetID)))
        }
    }

    @Test(arguments: [false, true])
    func `no retained message comes after a newer message of its topic`(isRemoved: Bool) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let topics = (0..<50).map { "r/\($0)" }
            for topic in topics { try await publisher.publish(topic, "old", retain: true) }
            let (reader, unacknowledged) = try await fullReader(harness)
            let sent = Set(unacknowledged.map(\.topic))
            let changed = try #require(topics.first(where: { !sent.contains($0) }))
            try await publisher.publish(changed, isRemoved ? "" : "new", retain: true)
            #expect(try await reader.untilPong().isEmpty)
            try await acknowledge(unacknowledged, by: reader)
            var texts: [String: [String]] = [:]
            // The change arrives live. Then the retained message arrives: the new message, or none.
            for _ in 0..<(isRemoved ? 40 : 41) {
                let publish = try await reader.taken()
                texts[publish.topic, default: []].append(publish.text)
            }
            let changes = texts.removeValue(forKey: changed)
            #expect(changes == (isRemoved ? [""] : ["new", "new"]))
            #expect(texts.count == 39 && texts.values.allSatisfy { $0 == ["old"] })
            #expect(try await reader.untilPong().isEmpty)
        }
    }

    @Test func `the newest message of each topic comes even if its live copy found no room`() async throws {
        var settings = GatewaySettings()
        settings[MQTTGateway.self].maxQueuedMessages = 1
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            // These are more messages than one search finds.
            let topics = (0..<2 * MQTTRetainedQueue.pageSize).map { "r/\($0)" }
            for topic in topics { try await publisher.publish(topic, "old", retain: true) }
            let (reader, unacknowledged) = try await fullReader(harness)
            let sent = Set(unacknowledged.map(\.topic))
            let left = Set(topics).subtracting(sent)
            for topic in topics where left.contains(topic) { try await publisher.publish(topic, "new", retain: true) }
            // The live copies have arrived. There was room for only one of them.
            _ = try await publisher.untilPong()
            #expect(try await reader.untilPong().isEmpty)
            try await acknowledge(unacknowledged, by: reader)
            var came: Set<String> = []
            // One of the messages also arrives live.
            for _ in 0...left.count {
                let publish = try await reader.taken()
                #expect(publish.text == "new")
                came.insert(publish.topic)
            }
            #expect(came == left)
            #expect(try await reader.untilPong().isEmpty)
        }
    }

    /// Records the retained message at the moment when a publication arrives.
    private final class Witness: TopicSubscriber {
        private let retained: RetainedMessages
        private let found: AsyncStream<String>.Continuation

        init(_ retained: RetainedMessages, _ found: AsyncStream<String>.Continuation) {
            self.retained = retained
            self.found = found
        }

        func deliver(_ delivery: Delivery, for subscription: TopicSubscription) {
            let publication = retained.publication(of: delivery.publication.topic)
            found.yield(publication.map { String(buffer: $0.payload) } ?? "nothing")
        }
    }

    @Test(arguments: MQTTQoS.allCases)
    func `a message is already retained when it is delivered`(_ qos: MQTTQoS) async throws {
        try await GatewayHarness.with(MQTTGateway.self) { harness in
            let loop = harness.environment.loops.all[0]
            let topic = try #require(TopicName("t"))
            let retained = harness.messenger.durable.retained
            let (found, continuation) = AsyncStream.makeStream(of: String.self)
            let subscription = try await loop.eventLoop.submit {
                let witness = Witness(retained, continuation)
                return NIOLoopBound(loop.topics.subscribe(witness, to: topic), eventLoop: loop.eventLoop)
            }.get()
            let publisher = try await harness.mqtt("publisher", .v5)
            try await publisher.publish("t", "x", qos: qos, retain: true)
            var iterator = found.makeAsyncIterator()
            let first = await iterator.next()
            #expect(first == "x")
            try await loop.eventLoop.submit { loop.topics.unsubscribe(subscription.value) }.get()
        }
    }
}
