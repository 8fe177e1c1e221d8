// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// Messages that wait for the client, and events during the wait.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTWaitingTests {
    private static let jobs = "$share/group/jobs/#"

    @Test(arguments: [false, true])
    func `a job goes to a member with room, not to one whose queue is full`(isOtherKept: Bool) async throws {
        var settings = GatewaySettings()
        settings[MQTTGateway.self].maxQueuedMessages = 4
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let stuck = try await harness.mqtt("stuck", .v5, properties: [.receiveMaximum(1)])
            _ = try await stuck.subscribe("flood/#", Self.jobs, qos: .atLeastOnce)
            let other = try await harness.mqtt("other", .v5, durable: isOtherKept)
            _ = try await other.subscribe(Self.jobs, qos: .atLeastOnce)
            for _ in 0..<8 { try await publisher.publish("flood/x", "x") }
            for number in 1...20 { try await publisher.publish("jobs/a", "\(number)") }
            var came: Set<String> = []
            for _ in 1...20 { came.insert(try await other.taken().text) }
            #expect(came == Set((1...20).map { "\($0)" }))
            // When the client has room again, it gets its turn.
            for _ in 1...5 { #expect(try await stuck.taken().topic == "flood/x") }
            _ = try await stuck.untilPong()
            for number in 1...4 { try await publisher.publish("jobs/b", "\(number)") }
            #expect(try await stuck.taken().topic == "jobs/b")
        }
    }

    @Test func `a job that is too large for any queue does not keep the next ones away`() async throws {
        var settings = GatewaySettings()
        settings[MQTTGateway.self].maxQueuedBytes = 65_536
        try await GatewayHarness.withMQTT(settings: settings) { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let worker = try await harness.mqtt("worker", .v5, properties: [.receiveMaximum(1)])
            _ = try await worker.subscribe(Self.jobs, qos: .atLeastOnce)
            try await publisher.publish("jobs/a", "first")
            let first = try await worker.publication()
            try await publisher.publish("jobs/a", String(repeating: "x", count: 70_000))
            // The job reaches the worker's loop while the worker is busy.
            await harness.turnsAreTaken()
            try await worker.send(.puback(MQTTAcknowledgement(packetID: try #require(first.packetID))))
            _ = try await worker.untilPong()
            try await publisher.publish("jobs/a", "next")
            #expect(try await worker.taken().text == "next")
        }
    }

    @Test func `what waits is not sent after the rules have changed`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let one = try await harness.mqtt("one", .v5, properties: [.receiveMaximum(1)])
            _ = try await one.subscribe("secret/#", Self.jobs, qos: .atLeastOnce)
            for number in 1...3 { try await publisher.publish("secret/a", "\(number)") }
            for number in 1...2 { try await publisher.publish("jobs/secret", "\(number)") }
            let two = try await harness.mqtt("two", .v5)
            _ = try await two.subscribe(Self.jobs, qos: .atLeastOnce)
            let first = try await one.publication()
            let rules = "deny client one read secret/#\ndeny client one read jobs/secret"
            harness.environment.access.replace(with: try TopicRules(parsing: rules))
            await harness.turnsAreTaken()
            try await one.send(.puback(MQTTAcknowledgement(packetID: try #require(first.packetID))))
            #expect(try await one.untilPong().isEmpty)
            // Another member of the shared subscription gets its jobs.
            #expect(try await two.taken().text == "1")
            #expect(try await two.taken().text == "2")
            harness.environment.access.replace(with: TopicRules())
            try await publisher.publish("secret/a", "later")
            #expect(try await one.taken().text == "later")
        }
    }

    /// The message is stored for a durable session. Before that, its group chooses a connected member.
    @Test func `a message for a member that may not read it any more goes to another one`() async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let kept = try await harness.mqtt("kept", .v5, durable: true)
            _ = try await kept.subscribe(Self.jobs, qos: .atLeastOnce)
            try await kept.disconnect()
            let watcher = try await harness.mqtt("watcher", .v5, durable: true)
            _ = try await watcher.subscribe("jobs/#", qos: .atLeastOnce)
            try await watcher.disconnect()
            let one = try await harness.mqtt("one", .v5)
            _ = try await one.subscribe(Self.jobs, qos: .atLeastOnce)
            let publisher = try await harness.mqtt("publisher", .v5)
            let durable = harness.messenger.durable
            while durable.statistics.commits.waiting > 0 || durable.statistics.online > 0 { await Task.yield() }
            store.close()
            let payload = ByteBuffer(string: "x")
            try await publisher.send(
                .publish(MQTTPublish(topic: "jobs/a", payload: payload, qos: .atLeastOnce, packetID: 7))
            )
            while durable.statistics.commits.waiting == 0 { await Task.yield() }
            let two = try await harness.mqtt("two", .v5)
            _ = try await two.subscribe(Self.jobs, qos: .atLeastOnce)
            harness.environment.access.replace(with: try TopicRules(parsing: "deny client one read jobs/a"))
            await harness.turnsAreTaken()
            store.open()
            guard case .puback(let answer) = try await publisher.next() else { throw Unexpected("no PUBACK") }
            #expect(answer.packetID == 7 && !answer.reason.isFailure)
            #expect(try await one.untilPong().isEmpty)
            // The member with the durable session may also be chosen.
            let back = try await harness.mqtt("kept", .v5, durable: true)
            var texts: [String] = []
            while texts.isEmpty {
                for client in [two, back] {
                    for case .publish(let publish) in try await client.untilPong() { texts.append(publish.text) }
                }
            }
            #expect(texts == ["x"])
        }
    }

    @Test(.statements("5.0 [MQTT-3.3.2-5]"))
    func `what has expired while it waited with a member goes to no other`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let publisher = try await harness.mqtt("publisher", .v5)
            let first = try await harness.mqtt("first", .v5, properties: [.receiveMaximum(1)])
            _ = try await first.subscribe(Self.jobs, qos: .atLeastOnce)
            for number in 1...3 {
                try await publisher.publish("jobs/a", "\(number)", properties: [.messageExpiryInterval(1)])
            }
            #expect(try await first.publication().text == "1")
            let second = try await harness.mqtt("second", .v5)
            _ = try await second.subscribe(Self.jobs, qos: .atLeastOnce)
            try await Task.sleep(for: .milliseconds(1_200))
            try await first.disconnect()
            // The first message was already sent, so it is not dropped.
            #expect(try await second.taken().text == "1")
            #expect(try await second.untilPong().isEmpty)
        }
    }

    @Test func `a repetition that is not published again sets its topic alias`() async throws {
        try await GatewayHarness.withMQTT { harness in
            let subscriber = try await harness.mqtt("subscriber", .v5)
            _ = try await subscriber.subscribe("a/#", qos: .atLeastOnce)
            let publisher = try await harness.mqtt("publisher", .v5)
            func publish(_ topic: String, alias: UInt16, isDuplicate: Bool) async throws {
                var publish = MQTTPublish(
                    topic: topic,
                    payload: ByteBuffer(string: "x"),
                    qos: .exactlyOnce,
                    packetID: 5,
                    properties: [.topicAlias(alias)]
                )
                publish.isDuplicate = isDuplicate
                try await publisher.send(.publish(publish))
                guard case .pubrec(let answer) = try await publisher.next() else { throw Unexpected("no PUBREC") }
                #expect(answer.reason.rawValue < 0x80)
            }
            try await publish("a/old", alias: 1, isDuplicate: false)
            #expect(try await subscriber.taken().topic == "a/old")
            try await publish("a/new", alias: 1, isDuplicate: true)
            #expect(try await publisher.publish("", "y", packetID: 6, properties: [.topicAlias(1)]) == .success)
            let second = try await subscriber.taken()
            #expect(second.topic == "a/new" && second.text == "y")
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `the keep alive does not end while the server does not read because the store is slow`(
        _ version: MQTTVersion
    ) async throws {
        let store = ScriptedSessionStore()
        try await GatewayHarness.withMQTT(sessionStore: store) { harness in
            let subscriber = try await harness.mqtt("subscriber", version, durable: true)
            _ = try await subscriber.subscribe("t", qos: .atLeastOnce)
            let publisher = try await harness.client("publisher", version, keepAlive: 1).client
            store.close()
            let payload = ByteBuffer(repeating: 7, count: 60_000)
            for number in 1...6 as ClosedRange<UInt16> {
                try await publisher.send(
                    .publish(MQTTPublish(topic: "t", payload: payload, qos: .atLeastOnce, packetID: number))
                )
            }
            for _ in 0..<7 {
                try await Task.sleep(for: .milliseconds(500))
                try await publisher.send(.pingreq)
            }
            store.open()
            for _ in 1...6 {
                while true {
                    let packet = try await publisher.next()
                    if packet == .pingresp { continue }
                    guard case .puback = packet else { throw Unexpected("\(packet) in place of PUBACK") }
                    break
                }
            }
        }
    }
}
