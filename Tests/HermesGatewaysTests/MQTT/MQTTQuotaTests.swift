// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesGateways
import HermesTestKit
import HermesWire
import NIOCore
import Testing

/// The limits for clients' data on the disk. Each client has its share, so only a client that floods is refused.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTQuotaTests {
    private func connect(_ clientID: String, _ version: MQTTVersion) -> MQTTConnect {
        MQTTConnect(
            version: version,
            clientID: clientID,
            cleanStart: false,
            properties: version == .v5 ? [.sessionExpiryInterval(600)] : []
        )
    }

    @Test(arguments: MQTTVersion.allCases)
    func `kept sessions and their subscriptions beyond the limits are refused, and clients are told`(
        _ version: MQTTVersion
    ) async throws {
        let settings = DurableSettings(
            sessions: SharedLimit(100, perAddress: 1),
            filters: SharedLimit(100, perAddress: 2)
        )
        try await GatewayHarness.withMQTT(durableSettings: settings) { harness in
            let (first, connack) = try await harness.apply(connect("first", version))
            #expect(connack.reason == .success)
            #expect(try await first.subscribe("a", "b").reasons == [.grantedQoS2, .grantedQoS2])
            // 3.1.1 has one code for every failure: 0x80 [MQTT-3.9.3-2].
            let reason = version == .v5 ? MQTTReasonCode.quotaExceeded : .unspecifiedError
            #expect(try await first.subscribe("c", "d", packetID: 3).reasons == [reason, reason])
            #expect(try await first.subscribe("a", packetID: 4).reasons == [.grantedQoS2])
            let (_, refused) = try await harness.apply(connect("second", version))
            #expect(refused.reason == (version == .v5 ? .quotaExceeded : .serverUnavailable))
            // A session that ends with its connection does not count.
            _ = try await harness.mqtt("second", version)
            let statistics = harness.messenger.durable.statistics
            #expect(statistics.sessions == 1 && statistics.filters == 2)
            #expect(statistics.refusedSessions == 1 && statistics.refusedFilters == 2)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `of the filters of one SUBSCRIBE, only those that do not fit into a kept session are refused`(
        _ version: MQTTVersion
    ) async throws {
        let settings = DurableSettings(filters: SharedLimit(100, perAddress: 4))
        try await GatewayHarness.withMQTT(durableSettings: settings) { harness in
            let (client, _) = try await harness.apply(connect("first", version))
            #expect(try await client.subscribe("a", "b", qos: .atMostOnce).reasons == [.success, .success])
            let no = version == .v5 ? MQTTReasonCode.quotaExceeded : .unspecifiedError
            let reasons = try await client.subscribe("c", "a", "c", "d", "e", "c", "f", "b", packetID: 3).reasons
            let yes = MQTTReasonCode.grantedQoS2
            #expect(reasons == [yes, yes, yes, yes, no, yes, no, yes])
            for topic in ["a", "b", "c", "d", "e", "f"] {
                try await client.send(
                    .publish(MQTTPublish(topic: topic, payload: ByteBuffer(), qos: .atMostOnce, packetID: nil))
                )
            }
            let publications = try await client.untilPong().compactMap { packet -> String? in
                if case .publish(let publication) = packet { publication.topic } else { nil }
            }
            #expect(publications == ["a", "b", "c", "d"])
            let statistics = harness.messenger.durable.statistics
            #expect(statistics.filters == 4 && statistics.refusedFilters == 2)
            // The refused filters have left no reservations.
            _ = try await client.unsubscribe("d", packetID: 4)
            #expect(try await client.subscribe("e", packetID: 5).reasons == [yes])
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `long filters of kept sessions are refused by their bytes, whoever has left them`(
        _ version: MQTTVersion
    ) async throws {
        let settings = DurableSettings(filters: SharedLimit(10_000, perAddress: 200))
        try await GatewayHarness.withMQTT(durableSettings: settings) { harness in
            let (first, _) = try await harness.apply(connect("first", version))
            #expect(try await first.subscribe(String(repeating: "f", count: 60_000) + "/+").reasons == [.grantedQoS2])
            try await first.disconnect()
            // The client has disconnected, but its stored filter still counts.
            let (second, _) = try await harness.apply(connect("second", version))
            let reason = version == .v5 ? MQTTReasonCode.quotaExceeded : .unspecifiedError
            #expect(try await second.subscribe(String(repeating: "g", count: 60_000) + "/+").reasons == [reason])
            #expect(try await second.subscribe("short", packetID: 4).reasons == [.grantedQoS2])
            #expect(harness.messenger.durable.statistics.filters == 119)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `filters with wildcards at too many places are refused, in a kept session as well`(
        _ version: MQTTVersion
    ) async throws {
        // All these filters match a/a/a/a/a/a/a/a.
        let filters = (1...100).map { bits in
            (0..<8).map { bits >> $0 & 1 == 0 ? "a" : "+" }.joined(separator: "/")
        }
        let reason = version == .v5 ? MQTTReasonCode.quotaExceeded : .unspecifiedError
        try await GatewayHarness.withMQTT { harness in
            let (first, _) = try await harness.apply(connect("first", version))
            let reasons = try await first.subscribe(filters).reasons
            #expect(reasons == (1...100).map { $0 <= 64 ? .grantedQoS2 : reason })
            // These are a repeated filter, and a new filter with a known shape.
            #expect(
                try await first.subscribe(filters[5], "b/" + filters[1].dropFirst(2), packetID: 3).reasons == [
                    .grantedQoS2, .grantedQoS2,
                ]
            )
            try await first.disconnect()
            let (again, connack) = try await harness.apply(connect("first", version))
            #expect(connack.sessionPresent)
            #expect(try await again.subscribe(filters[99], packetID: 4).reasons == [reason])
            _ = try await again.unsubscribe(filters[7], packetID: 5)
            #expect(try await again.subscribe(filters[99], packetID: 6).reasons == [.grantedQoS2])
            #expect(try await again.subscribe(filters[7], packetID: 7).reasons == [reason])
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `who floods with retained messages is refused, and who does not never is`(_ version: MQTTVersion) async throws
    {
        let settings = DurableSettings(retainedMessages: SharedLimit(100, perAccount: 30, perAddress: 5))
        try await GatewayHarness.withMQTT(durableSettings: settings) { harness in
            _ = try await harness.register("ann")
            let flooder = try await harness.mqtt("flooder", version)
            var login = MQTTConnect(version: version, clientID: "good")
            login.userName = "ann"
            login.password = ByteBuffer(string: "correct horse")
            let (good, connack) = try await harness.apply(login)
            #expect(connack.reason == .success)
            for number in 0..<40 {
                for qos in [MQTTQoS.atLeastOnce, .exactlyOnce] {
                    let reason = try await flooder.publish("flood/\(number)", "x", qos: qos, retain: true)
                    let isRefused = version == .v5 && number >= 5
                    #expect(reason.isFailure == isRefused && (!isRefused || reason == .quotaExceeded))
                }
                if number < 20 {
                    #expect(!(try await good.publish("good/\(number)", "x", retain: true).isFailure))
                }
            }
            #expect(harness.messenger.durable.retained.statistics.count == 25)
            // A removed message makes room.
            #expect(!(try await flooder.publish("flood/0", "", retain: true).isFailure))
            #expect(!(try await flooder.publish("flood/39", "x", retain: true).isFailure))
            #expect(harness.messenger.durable.retained.statistics.count == 25)
        }
    }

    @Test func `a will that is retained counts for who left it`() async throws {
        let settings = DurableSettings(retainedMessages: SharedLimit(100, perAddress: 1))
        try await GatewayHarness.withMQTT(durableSettings: settings) { harness in
            for name in ["one", "two"] {
                let payload = ByteBuffer(string: "x")
                let will = MQTTWill(topic: "will/\(name)", payload: payload, qos: .atLeastOnce, retain: true)
                let (client, _) = try await harness.client(name, .v5, will: will)
                try await client.disconnect(.disconnectWithWill)
            }
            let watcher = try await harness.mqtt("watcher", .v5)
            _ = try await watcher.untilPong()
            let retained = harness.messenger.durable.retained.statistics
            #expect(retained.count == 1 && retained.refused == 1)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `groups of shared subscriptions beyond the limit are refused, and members of a known group are not`(
        _ version: MQTTVersion
    ) async throws {
        var settings = GatewaySettings()
        settings.broker.sharedGroups = SharedLimit(1_000, perAddress: 3)
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let first = try await harness.mqtt("first", version)
            let reason = version == .v5 ? MQTTReasonCode.quotaExceeded : .unspecifiedError
            let suback = try await first.subscribe("$share/a/#", "$share/b/#", "$share/c/+", "$share/d/#", "e/#")
            #expect(suback.reasons == [.grantedQoS2, .grantedQoS2, .grantedQoS2, reason, .grantedQoS2])
            // The first subscription is repeated. Another client then joins the same group.
            #expect(try await first.subscribe("$share/a/#", packetID: 2).reasons == [.grantedQoS2])
            let second = try await harness.mqtt("second", version)
            #expect(try await second.subscribe("$share/a/#", "$share/a/x").reasons == [.grantedQoS2, reason])
            // A group that all members have left makes room.
            _ = try await first.unsubscribe("$share/a/#")
            #expect(try await second.subscribe("$share/d/#", packetID: 3).reasons == [reason])
            _ = try await first.unsubscribe("$share/b/#")
            #expect(try await second.subscribe("$share/d/#", packetID: 4).reasons == [.grantedQoS2])
            try await second.publish("x", "1", qos: .atMostOnce)
            var received = 0
            while received < 2 {
                received += try await second.untilPong().count { if case .publish = $0 { true } else { false } }
            }
            #expect(received == 2, "one of each group")
            try await first.send(.disconnect(MQTTDisconnect()))
            _ = try await first.untilEnd()
            // The group of $share/c/+ ends with its only member.
            var isRoom = false
            while !isRoom {
                isRoom = try await second.subscribe("$share/f/#", packetID: 5).reasons == [.grantedQoS2]
            }
        }
    }

    @Test func `kept sessions that return with too many groups get them as far as there is room`() async throws {
        var settings = GatewaySettings()
        settings.broker.sharedGroups = SharedLimit(1_000, perAddress: 2)
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let (kept, _) = try await harness.apply(connect("kept", .v5))
            _ = try await kept.subscribe("$share/a/#", "$share/b/#")
            try await kept.send(.disconnect(MQTTDisconnect()))
            _ = try await kept.untilEnd()
            let other = try await harness.mqtt("other", .v5)
            var reasons: [MQTTReasonCode] = []
            while reasons != [.grantedQoS2] { reasons = try await other.subscribe("$share/c/#").reasons }
            let (again, _) = try await harness.apply(connect("kept", .v5))
            #expect(try await again.subscribe("$share/d/#").reasons == [.quotaExceeded])
            // One of the two groups has a place. The other group is refused while there is no place.
            let both = try await again.subscribe("$share/a/#", "$share/b/#", packetID: 2).reasons
            #expect(Set(both) == [.grantedQoS2, .quotaExceeded])
            _ = try await other.unsubscribe("$share/c/#")
            let now = try await again.subscribe("$share/a/#", "$share/b/#", packetID: 3).reasons
            #expect(now.allSatisfy { !$0.isFailure })
        }
    }

    @Test func `who publishes to topics that very many filters match pays for the search`() async throws {
        var settings = GatewaySettings()
        settings.limits.requestsPerSecond = 1_000
        try await GatewayHarness.with(MQTTGateway.self, settings: settings) { harness in
            let subscriber = try await harness.mqtt("subscriber", .v5)
            // This is the largest number of shapes that a client may have.
            let filters = (0..<64).map { number in
                (0..<10).map { number >> $0 & 1 == 0 ? "a" : "+" }.joined(separator: "/") + "/#"
            }
            let reasons = try await subscriber.subscribe(filters, qos: .atMostOnce).reasons
            #expect(reasons == [MQTTReasonCode](repeating: .success, count: 64))
            let flooder = try await harness.mqtt("flooder", .v5)
            let beginning = String(repeating: "a/", count: 10)
            var bytes = ByteBuffer()
            // A search visits 383 nodes and finds 64 filters, which costs 13 units. All searches together cost 5,200
            // units, of which 1,000 may be spent at once.
            for number in 0..<400 {
                let publish = MQTTPublish(topic: beginning + String(number), payload: ByteBuffer(), qos: .atMostOnce)
                try MQTTPacket.publish(publish).write(into: &bytes, version: .v5)
            }
            let start = ContinuousClock.now
            try await flooder.wire.send(bytes)
            // A publication of another client does not wait for them.
            let good = try await harness.mqtt("good", .v5)
            _ = try await good.subscribe("mine")
            var received: [MQTTPacket] = []
            while received.isEmpty {
                try await good.publish("mine", "1", qos: .atMostOnce)
                received = try await good.untilPong()
            }
            #expect(try await flooder.untilPong().isEmpty)
            #expect(ContinuousClock.now - start > .seconds(3))
        }
    }

    @Test func `by default nobody's kept sessions make others' publications wait for long`() {
        let settings = MQTTSettings()
        #expect(settings.keptSessions.perAddress <= 1_000)
        #expect(settings.keptSessions.perAccount <= 10_000)
    }
}
