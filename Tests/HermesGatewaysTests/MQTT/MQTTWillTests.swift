// Hermes
// SPDX-License-Identifier: Apache-2.0

import HermesCore
import HermesWire
import NIOCore
import Testing

@testable import HermesGateways

/// A will is held to what holds for a PUBLISH.
@Suite(.timeLimit(.minutes(1))) struct MQTTWillTests {
    private func refusal(_ will: MQTTWill) async throws -> MQTTReasonCode {
        let box = Mailbox()
        try await GatewayHarness.withMQTT { harness in
            var connect = MQTTConnect(version: .v5, clientID: "one")
            connect.will = will
            let (client, connack) = try await harness.apply(connect)
            #expect(try await client.untilEnd().isEmpty)
            await box.put(connack.reason)
        }
        return try #require(await box.reason)
    }

    private actor Mailbox {
        private(set) var reason: MQTTReasonCode?
        func put(_ reason: MQTTReasonCode) { self.reason = reason }
    }

    @Test("a will for a room is what its liveroom-type says, or the CONNECT is refused", arguments: ["2", "8", "x"])
    func notForRooms(_ type: String) async throws {
        let will = MQTTWill(
            topic: "room/hall",
            payload: ByteBuffer(string: "no body of that type"),
            properties: [.userProperty("liveroom-type", type)]
        )
        #expect(try await refusal(will) == .payloadFormatInvalid)
    }

    @Test("a will is no request to the server", arguments: ["hermes/v1/up", "hermes/v1/up/json"])
    func notForTheServer(_ topic: String) async throws {
        #expect(try await refusal(MQTTWill(topic: topic, payload: ByteBuffer(string: "{}"))) == .notAuthorized)
    }

    @Test("5.0 [MQTT-3.3.2-14]: the response topic of a will has no wildcard")
    func responseTopic() async throws {
        let will = MQTTWill(topic: "t", payload: ByteBuffer(), properties: [.responseTopic("a/#")])
        #expect(try await refusal(will) == .protocolError)
    }

    @Test("a room sees a will as what it is")
    func kind() async throws {
        try await GatewayHarness.withMQTT { harness in
            var gift = LiveRoom_GiftMessage()
            gift.user.level = 1
            gift.user.name = "ann"
            gift.user.iconURL = ""
            gift.giftname = "rose"
            gift.giftURL = ""
            gift.giftcount = 1
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("room/hall")
            let will = MQTTWill(
                topic: "room/hall",
                payload: try gift.wireBuffer(),
                properties: [.userProperty("liveroom-type", "3")]
            )
            let client = try await harness.mqtt("one", .v5, will: will)
            try await client.drop()
            let publication = try await watch.taken()
            #expect(publication.payload == (try gift.wireBuffer()))
            #expect(Set(publication.properties.userProperties.map(\.value)) == ["3"])
        }
    }

    @Test("a will that the rules of the day do not allow any more is not published")
    func forbiddenMeanwhile() async throws {
        try await GatewayHarness.withMQTT { harness in
            let watch = try await harness.mqtt("watch", .v5)
            _ = try await watch.subscribe("t")
            let will = MQTTWill(topic: "t", payload: ByteBuffer(string: "gone"))
            let client = try await harness.mqtt("one", .v5, will: will)
            harness.environment.access.replace(with: try TopicRules(parsing: "deny client one write t"))
            try await client.drop()
            // Once the client is accepted again, the connection before has ended.
            let again = try await harness.mqtt("one", .v5)
            try await again.publish("other", "x", qos: .atLeastOnce)
            #expect(try await watch.untilPong().isEmpty)
        }
    }
}
