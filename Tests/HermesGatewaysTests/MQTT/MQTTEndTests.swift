// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import NIOPosix
import Testing

@testable import HermesGateways

/// The end of a connection does not delay other clients.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTEndTests {
    /// A client that never closes its side of the connection.
    private static func stubborn(
        _ harness: GatewayHarness,
        _ connect: MQTTConnect,
        filter: String = "t"
    ) async throws -> any Channel {
        let channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .connect(host: "127.0.0.1", port: harness.listener.port)
            .get()
        var bytes = ByteBuffer()
        try MQTTPacket.connect(connect).write(into: &bytes, version: connect.version)
        let filter = MQTTSubscription(filter: filter, maximumQoS: .atLeastOnce)
        try MQTTPacket.subscribe(MQTTSubscribe(packetID: 1, subscriptions: [filter]))
            .write(into: &bytes, version: connect.version)
        try await channel.writeAndFlush(bytes)
        return channel
    }

    /// Ends the connection of a client as an operator.
    private static func end(_ clientID: String, _ harness: GatewayHarness) async throws {
        let state = harness.listener.acceptor.state
        for loop in harness.environment.loops.all {
            try await loop.eventLoop.submit {
                let clients = loop.connections(of: state).compactMap { $0.events?.operated }
                for client in clients where client.clientID == clientID { client.disconnect() }
            }.get()
        }
    }

    @Test(.statements("5.0 [MQTT-3.1.4-3]"), arguments: [false, true], [false, true])
    func `a take-over does not wait until the other side of the old connection has closed`(
        durable: Bool,
        isEndedBefore: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            var connect = MQTTConnect(version: .v5, clientID: "one", cleanStart: !durable)
            if durable { connect.properties = [.sessionExpiryInterval(600)] }
            let old = try await Self.stubborn(harness, connect)
            // Wait until the subscription takes effect.
            while try await publisher.publish("t", "0") == .noMatchingSubscribers { await Task.yield() }
            if isEndedBefore { try await Self.end("one", harness) }
            let (new, connack) = try await harness.client("one", .v5, durable: durable)
            #expect(harness.listener.openConnections == 3, "the old one is told, but not closed yet")
            #expect(connack.sessionPresent == durable)
            if durable {
                // The message that was sent over the old connection arrives again. Later messages follow in order.
                try await publisher.publish("t", "1")
                var texts: [String] = []
                while texts.last != "1" { texts.append(try await new.taken().text) }
                #expect(texts == ["0", "1"])
            }
            try await old.close()
        }
    }

    @Test(arguments: [false, true])
    func `a group gives nothing to a member that was ended, even if its side does not close`(
        isOtherKept: Bool
    ) async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let connect = MQTTConnect(version: .v5, clientID: "ended", cleanStart: true)
            let ended = try await Self.stubborn(harness, connect, filter: "$share/g/t")
            // Wait until the subscription takes effect.
            while try await publisher.publish("t", "0") == .noMatchingSubscribers { await Task.yield() }
            let other = try await harness.mqtt("other", .v5, durable: isOtherKept)
            _ = try await other.subscribe("$share/g/t", qos: .atLeastOnce)
            try await Self.end("ended", harness)
            for number in 1...10 as ClosedRange<UInt16> {
                #expect(try await publisher.publish("t", "\(number)", packetID: number) == .success)
            }
            #expect(harness.listener.openConnections == 3, "the ended one is told, but not closed yet")
            // The other member also gets the messages that the ended member had not acknowledged.
            var texts: Set<String> = []
            for _ in 0...10 { texts.insert(try await other.taken().text) }
            #expect(texts == Set((0...10).map { "\($0)" }))
            #expect(try await other.untilPong().isEmpty)
            try await ended.close()
        }
    }

    @Test
    func `thousands of subscriptions of an ended connection end in slices, and groups choose others at once`()
        async throws
    {
        try await GatewayHarness.with(MQTTGateway.self) { harness in
            let loop = harness.environment.loops.all[0]
            let leaving = try await harness.mqtt("leaving", .v5)
            let staying = try await harness.mqtt("staying", .v5)
            // An address may have 256 groups.
            let isShared = { $0 % 30 == 1 || $0 == 2_999 }
            let filters = (0..<3_000).map { isShared($0) ? "$share/g/shared/\($0)" : "many/\($0)" }
            let subscriptions = filters.map { MQTTSubscription(filter: $0, maximumQoS: .atLeastOnce) }
            try await leaving.send(.subscribe(MQTTSubscribe(packetID: 7, subscriptions: subscriptions)))
            guard case .suback = try await leaving.next() else { throw Unexpected("no SUBACK") }
            for number in [1, 1_501, 2_999] { _ = try await staying.subscribe("$share/g/shared/\(number)") }
            let state = harness.listener.acceptor.state
            let left = await withCheckedContinuation { continuation in
                loop.post(
                    .run {
                        let shard = loop.topics
                        func count() -> Int {
                            shard.subscriberCounts(withPrefix: "", from: 0, limit: .max).counts.values.reduce(0, +)
                        }
                        let before = count()
                        // This is the first client that connected.
                        loop.connections(of: state).first { $0.indexInLoop == 0 }?.closeAfterPeer()
                        let after = count()
                        for number in [1, 1_501, 2_999] {
                            guard let topic = TopicName("shared/\(number)") else { continue }
                            _ = shard.publish(
                                Publication(
                                    topic: topic,
                                    payload: ByteBuffer(string: "\(number)"),
                                    kind: Publication.plainKind
                                )
                            )
                        }
                        continuation.resume(returning: (before: before, after: after))
                    }
                )
            }
            // Shared subscriptions are not counted.
            #expect(left.before == filters.indices.count { !isShared($0) })
            #expect(left.after >= left.before - LoopContext.leftoversPerTurn && left.after < left.before)
            for number in [1, 1_501, 2_999] { #expect(try await staying.taken().text == "\(number)") }
            // Finally all subscriptions end.
            while await Self.topics(of: loop) > 3 { await Task.yield() }
            #expect(try await staying.untilPong().isEmpty)
        }
    }

    private static func topics(of loop: LoopContext) async -> Int {
        await withCheckedContinuation { continuation in
            loop.post(
                .run {
                    continuation.resume(
                        returning: loop.topics.subscriberCounts(withPrefix: "", from: 0, limit: .max).counts.count
                    )
                }
            )
        }
    }
}
