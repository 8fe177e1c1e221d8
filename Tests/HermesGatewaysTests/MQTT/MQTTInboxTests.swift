// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesTestKit
import HermesWire
import NIOCore
import SwiftProtobuf
import Testing

@testable import HermesGateways

/// An account's inbox over `hermes/v1/down` and `hermes/v1/up`.
@Suite(.inTurns, .timeLimit(.minutes(1))) struct MQTTInboxTests {
    private static let down = "hermes/v1/down"

    /// Two accounts: ann owns the inbox, and bob writes to it.
    private struct Pair {
        let harness: GatewayHarness
        let ann: Login
        let bob: Login

        init(_ harness: GatewayHarness) async throws {
            self.harness = harness
            ann = try await harness.register("ann")
            bob = try await harness.register("bob")
        }

        /// Connects ann's device "tablet".
        func client(_ properties: [MQTTProperty] = []) async throws -> MQTTTestClient {
            var connect = MQTTConnect(version: .v5, clientID: "tablet")
            connect.userName = "ann"
            connect.password = ByteBuffer(string: "correct horse")
            connect.properties = MQTTProperties(properties)
            let (client, connack) = try await harness.apply(connect)
            #expect(connack.reason == .success)
            return client
        }

        func write(_ text: String) async throws {
            var content = Hermes_V1_Content()
            content.text = text
            let draft = MessageDraft(
                conversation: .direct(between: ann.principal.user, and: bob.principal.user),
                clientID: nil,
                content: MessageContent(bytes: try content.serializedBytes())
            )
            _ = try await withCheckedThrowingContinuation { continuation in
                harness.messenger.messages.send(draft, from: bob.principal) { continuation.resume(with: $0) }
            }
        }

        /// The device's cursor on the server.
        func cursor() async throws -> UInt64 {
            let devices = try await harness.messenger.accounts.devices(of: ann.principal.user)
            return devices.first { $0.description.id.rawValue == "tablet" }?.cursor ?? 0
        }
    }

    private func with(_ body: (Pair) async throws -> Void) async throws {
        try await GatewayHarness.withMQTT { try await body(try await Pair($0)) }
    }

    private func event(_ publication: MQTTPublish) throws -> Hermes_V1_Event {
        try Hermes_V1_Packet(wire: publication.payload).event
    }

    private func acknowledge(_ publication: MQTTPublish, _ client: MQTTTestClient) async throws {
        let packetID = try #require(publication.packetID)
        try await client.send(.puback(MQTTAcknowledgement(packetID: packetID)))
    }

    // MARK: Too long for the client

    @Test
    func `an entry that is too long for the client is replaced by a word about it, which counts as the entry`()
        async throws
    {
        try await with { pair in
            let client = try await pair.client([.maximumPacketSize(600)])
            _ = try await client.subscribe(Self.down, qos: .atLeastOnce)
            for _ in 0..<3 { try await pair.write(String(repeating: "x", count: 2_000)) }
            try await pair.write("short")
            for seq in 1...3 as ClosedRange<UInt64> {
                let publication = try await client.publication()
                let event = try event(publication)
                #expect(event.seq == seq && event.oversized.kind == "message" && event.oversized.id.count == 26)
                #expect(event.oversized.packetBytes > 2_000 && event.oversized.conversationSeq == seq)
                #expect(event.oversized.hint.contains("after_seq \(seq - 1) and limit 1"))
                try await acknowledge(publication, client)
            }
            let last = try await client.publication()
            #expect(try event(last).message.content.text == "short")
            try await acknowledge(last, client)
            while try await pair.cursor() < 4 { _ = try await client.untilPong() }
            try await client.disconnect()
            let again = try await pair.client()
            _ = try await again.subscribe(Self.down, qos: .atLeastOnce)
            // This message comes after all messages that were not taken.
            try await pair.write("later")
            #expect(try event(try await again.publication()).message.content.text == "later")
            // The client follows the hint in the notice.
            var request = Hermes_V1_Packet()
            request.id = 9
            request.synchronize.limit = 1
            try await again.publish("hermes/v1/up", request)
            #expect(try Hermes_V1_Packet(wire: try await again.publication().payload).result.synchronized.count == 1)
            #expect(try event(try await again.publication()).message.content.text.utf8.count == 2_000)
        }
    }

    @Test(arguments: [MQTTQoS.atMostOnce, .atLeastOnce])
    func `where there is no room for that either the entry counts as taken`(_ qos: MQTTQoS) async throws {
        try await with { pair in
            let client = try await pair.client([.maximumPacketSize(60)])
            _ = try await client.subscribe(Self.down, qos: qos)
            // This is more than may be unacknowledged.
            for number in 0...MQTTInbox.windowSize { try await pair.write("\(number)") }
            var cursor: UInt64 = 0
            while cursor <= MQTTInbox.windowSize {
                #expect(try await client.untilPong().isEmpty)
                cursor = try await pair.cursor()
            }
        }
    }

    @Test
    func `an answer that is too long for the client is replaced by an error`() async throws {
        try await with { pair in
            // Each of these devices is in the account's list of devices.
            for number in 0..<10 {
                _ = try await pair.harness.messenger.accounts.logIn(
                    .password(nickName: "ann", password: "correct horse"),
                    device: DeviceDescription(id: try #require(DeviceID("device-\(number)"))),
                    address: nil
                )
            }
            let client = try await pair.client([.maximumPacketSize(200)])
            _ = try await client.subscribe(Self.down, qos: .atMostOnce)
            var request = Hermes_V1_Packet()
            request.id = 5
            request.device.list = .init()
            try await client.publish("hermes/v1/up", request)
            let answer = try Hermes_V1_Packet(wire: try await client.publication().payload)
            #expect(answer.id == 5 && answer.result.error.code == HermesError.Code.tooLarge.rawValue)
        }
    }

    @Test func `an entry that was asked for has no acknowledgement, which would stand for earlier ones`() async throws {
        try await with { pair in
            let client = try await pair.client()
            _ = try await client.subscribe(Self.down, qos: .atLeastOnce)
            for number in 1...3 { try await pair.write("\(number)") }
            var first: [MQTTPublish] = []
            for _ in 1...3 { first.append(try await client.publication()) }
            #expect(first.allSatisfy { $0.packetID != nil })
            var request = Hermes_V1_Packet()
            request.id = 9
            request.synchronize.afterSeq = 2
            request.synchronize.limit = 1
            try await client.publish("hermes/v1/up", request)
            #expect(try Hermes_V1_Packet(wire: try await client.publication().payload).result.synchronized.count == 1)
            let asked = try await client.publication()
            #expect(try event(asked).seq == 3 && asked.packetID == nil)
            // Entries that arrive without a request are still acknowledged.
            try await acknowledge(first[0], client)
            while try await pair.cursor() < 1 { _ = try await client.untilPong() }
            try await pair.write("4")
            let next = try await client.publication()
            #expect(try event(next).seq == 4 && next.packetID != nil)
            for publication in [first[1], first[2], next] { try await acknowledge(publication, client) }
            while try await pair.cursor() < 4 { _ = try await client.untilPong() }
        }
    }

    @Test(.statements("5.0 [MQTT-3.3.4-9]"))
    func `entries and other publications together keep to the client's receive maximum`() async throws {
        try await with { pair in
            let client = try await pair.client([.receiveMaximum(3)])
            _ = try await client.subscribe(Self.down, "t", qos: .atLeastOnce)
            for number in 1...6 { try await pair.write("\(number)") }
            var sent: [MQTTPublish] = []
            for _ in 1...3 { sent.append(try await client.publication()) }
            let publisher = try await pair.harness.mqtt("publisher", .v5)
            for number in 1...2 { try await publisher.publish("t", "\(number)") }
            #expect(try await client.untilPong().isEmpty)
            // Each acknowledgement makes room for one more publication.
            var topics: [String] = []
            for _ in 1...5 {
                try await acknowledge(sent.removeFirst(), client)
                let next = try await client.publication()
                topics.append(next.topic)
                sent.append(next)
                #expect(try await client.untilPong().isEmpty)
            }
            #expect(topics.filter { $0 == "t" }.count == 2 && topics.filter { $0 == Self.down }.count == 3)
            // A requested page needs no room in the window, so it is sent even if there is none.
            var request = Hermes_V1_Packet()
            request.id = 9
            request.synchronize.limit = 2
            try await client.publish("hermes/v1/up", request)
            #expect(try Hermes_V1_Packet(wire: try await client.publication().payload).result.synchronized.count == 2)
            for seq in 1...2 as ClosedRange<UInt64> {
                let asked = try await client.publication()
                #expect(try event(asked).seq == seq && asked.packetID == nil)
            }
            for publication in sent { try await acknowledge(publication, client) }
            while try await pair.cursor() < 6 { _ = try await client.untilPong() }
            #expect(try await client.untilPong().isEmpty)
        }
    }

    @Test func `entries with QoS 0 do not count against the receive maximum`() async throws {
        try await with { pair in
            let client = try await pair.client([.receiveMaximum(3)])
            _ = try await client.subscribe(Self.down, qos: .atMostOnce)
            for number in 1...6 { try await pair.write("\(number)") }
            for seq in 1...6 as ClosedRange<UInt64> { #expect(try event(try await client.publication()).seq == seq) }
        }
    }

    @Test func `other publications do not hold up the inbox, however many wait`() async throws {
        try await with { pair in
            let client = try await pair.client([.receiveMaximum(3)])
            _ = try await client.subscribe(Self.down, "t", qos: .atLeastOnce)
            let publisher = try await pair.harness.mqtt("publisher", .v5)
            for number in 1...20 { try await publisher.publish("t", "\(number)") }
            for _ in 1...2 { #expect(try await client.publication().topic == "t") }
            for seq in 1...3 as ClosedRange<UInt64> {
                try await pair.write("\(seq)")
                let entry = try await client.publication()
                #expect(entry.topic == Self.down)
                try await acknowledge(entry, client)
                while try await pair.cursor() < seq { #expect(try await client.untilPong().isEmpty) }
            }
        }
    }

    // MARK: While it is subscribed to

    @Test(.statements("5.0 [MQTT-3.10.4-1] [MQTT-3.10.4-2] [MQTT-3.10.4-3]"))
    func `UNSUBSCRIBE stops the inbox; what is under way is taken`() async throws {
        try await with { pair in
            let client = try await pair.client()
            _ = try await client.subscribe(Self.down, qos: .atLeastOnce)
            try await pair.write("one")
            let one = try await client.publication()
            let unsuback = try await client.unsubscribe(Self.down)
            #expect(unsuback.reasons == [.success])
            try await pair.write("two")
            #expect(try await client.untilPong().isEmpty)
            // Nobody would get the answers.
            var request = Hermes_V1_Packet()
            request.id = 1
            request.ping.clientTimeMs = 1
            let refusal = try await client.publish("hermes/v1/up", request)
            #expect(refusal == .notAuthorized)
            try await acknowledge(one, client)
            #expect(try await client.untilPong().isEmpty)
            _ = try await client.subscribe(Self.down, qos: .atLeastOnce)
            let two = try await client.publication()
            #expect(try event(two).message.content.text == "two")
            try await acknowledge(two, client)
            #expect(try await client.untilPong().isEmpty)
        }
    }

    @Test(.statements("3.1.1 [MQTT-3.8.4-3], 5.0 [MQTT-3.8.4-3]"))
    func `subscribing again changes QoS and form`() async throws {
        try await with { pair in
            let client = try await pair.client()
            for (qos, text) in [(MQTTQoS.atMostOnce, "one"), (.exactlyOnce, "two"), (.atMostOnce, "three")] {
                _ = try await client.subscribe(Self.down, qos: qos)
                try await pair.write(text)
                let publication = try await client.publication()
                #expect(try event(publication).message.content.text == text)
                #expect(publication.qos == min(qos, .atLeastOnce))
                if publication.packetID != nil { try await acknowledge(publication, client) }
            }
            _ = try await client.subscribe(Self.down + "/json", qos: .atMostOnce)
            try await pair.write("binary")
            #expect(try await client.publication().topic == Self.down)
            _ = try await client.unsubscribe(Self.down)
            try await pair.write("text")
            let publication = try await client.publication()
            #expect(publication.topic == Self.down + "/json" && publication.text.contains("\"text\":\"text\""))
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `an operator's end of the connection is told in a packet`(_ version: MQTTVersion) async throws {
        try await with { pair in
            var connect = MQTTConnect(version: version, clientID: "tablet")
            connect.userName = "ann"
            connect.password = ByteBuffer(string: "correct horse")
            let (client, _) = try await pair.harness.apply(connect)
            _ = try await client.subscribe(Self.down + "/json", qos: .atMostOnce)
            let state = pair.harness.listener.acceptor.state
            for loop in pair.harness.environment.loops.all {
                try await loop.eventLoop.submit {
                    let clients = loop.connections(of: state).compactMap { $0.events?.operated }
                    for client in clients where client.clientID == "tablet" { client.disconnect() }
                }.get()
            }
            let packets = try await client.untilEnd()
            guard case .publish(let publish)? = packets.first else { throw Unexpected("\(packets)") }
            let kicked = try Hermes_V1_Packet(jsonString: publish.text).kicked
            #expect(kicked.code == HermesError.Code.forbidden.rawValue && kicked.message.contains("operator"))
            #expect(packets.count == (version == .v5 ? 2 : 1))
        }
    }

    @Test
    func `rules that forbid it stop the inbox, and others start it again`() async throws {
        try await with { pair in
            let client = try await pair.client()
            _ = try await client.subscribe(Self.down, qos: .atMostOnce)
            try await pair.write("one")
            #expect(try event(try await client.publication()).message.content.text == "one")
            pair.harness.environment.access.replace(with: try TopicRules(parsing: "deny all read hermes/#"))
            await pair.harness.turnsAreTaken()
            #expect(try await client.untilPong().isEmpty)
            try await pair.write("two")
            #expect(try await client.untilPong().isEmpty)
            pair.harness.environment.access.replace(with: TopicRules())
            #expect(try event(try await client.publication()).message.content.text == "one")
            #expect(try event(try await client.publication()).message.content.text == "two")
        }
    }
}

extension MQTTTestClient {
    /// Publishes a packet of the native protocol.
    ///
    /// - Returns: the reason code of PUBACK.
    @discardableResult
    fileprivate func publish(_ topic: String, _ packet: Hermes_V1_Packet) async throws -> MQTTReasonCode {
        let publication = MQTTPublish(topic: topic, payload: try packet.wireBuffer(), qos: .atLeastOnce, packetID: 77)
        try await send(.publish(publication))
        guard case .puback(let puback) = try await next(), puback.packetID == 77 else { throw Unexpected("no PUBACK") }
        return puback.reason
    }
}
